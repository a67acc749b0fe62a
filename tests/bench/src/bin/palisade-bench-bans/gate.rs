//! The gate's share of a request: the shipped module in a VM, with none and with many bans on its node.

use std::path::Path;
use std::time::Duration;

use palisade_bench::waf::{median, nanos};
use palisade_tests::figures::{Figures, Target};
use proxy_host::traffic::{Exchange, Request, Response};
use proxy_host::{Module, Node, Vm, cpu_time};
use snapshot::{BanChange, Down, LinkSettings, Message as _, Snapshot, Step, seal};
use threat_gate::ThreatGateStep;

use crate::crowd;

const NOW_MILLIS: u64 = 1_750_000_000_000;
/// What the control plane sends in one message.
const PER_MESSAGE: usize = 500;
/// Callers that take turns: more than fit where the last request left anything warm.
const CALLERS: u32 = 500;
/// The most that many bans may add to a request, in microseconds.
const MOST_MICROS: f64 = 2.0;
/// The most memory of a VM for all bans, in MiB.
const MOST_MIB: f64 = 16.0;

/// A node with some bans, and its worker.
struct Population {
    name: String,
    vm: Vm,
    /// Callers of each kind, and how long a request of theirs took in each round, in nanoseconds.
    callers: Vec<(&'static str, Vec<Exchange>, Vec<u64>)>,
}

pub(crate) fn measure(filter: &Path, bans: u32, rounds: usize, figures: &mut Figures) -> Result<(), String> {
    println!("the gate in a VM, {rounds} rounds of {CALLERS} requests of each kind");
    let bytes = std::fs::read(filter)
        .map_err(|error| format!("{}: {error}; `make filters` builds the modules", filter.display()))?;
    let module = Module::compile(&bytes).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for (count, ranges, v6) in [
        (0, 0, false),
        (1000, 0, false),
        (bans / 10, 0, false),
        (bans, 0, false),
        (bans, 0, true),
        (bans, 256, false),
        (bans, 4096.min(bans / 2), false),
    ] {
        all.push(Population::new(&module, count, ranges, v6, figures)?);
    }
    for round in 0..rounds.max(1) {
        // Nobody always follows the same neighbour.
        for turn in 0..all.len() {
            let place = (turn + round) % all.len();
            all[place].round()?;
        }
    }
    report(&all, figures);
    Ok(())
}

impl Population {
    fn new(module: &Module, bans: u32, ranges: u32, v6: bool, figures: &mut Figures) -> Result<Self, String> {
        let name = match (ranges, v6) {
            (0, false) => format!("{bans} bans"),
            (0, true) => format!("{bans} bans of IPv6"),
            _ => format!("{bans} bans, {ranges} of them ranges"),
        };
        let node = Node::new("bench", NOW_MILLIS, 7);
        let mut vm = worker(module, &node)?;
        let started = vm.memory_size();
        let keys = crowd::keys(bans, ranges, v6);
        let times = deliver(&mut vm, &keys)?;
        // The other workers of the node are told the same.
        let mut second = worker(module, &node)?;
        let again = deliver(&mut second, &keys)?;
        let mut population = Self { name, vm, callers: callers(bans, ranges, v6) };
        population.judge()?;
        if bans > 0 {
            population.tell(&times, &again, started, figures);
        }
        Ok(population)
    }

    fn tell(&self, first: &[u64], again: &[u64], started: usize, figures: &mut Figures) {
        let name = &self.name;
        let grown = mib(self.vm.memory_size().saturating_sub(started));
        figures.add(&format!("{name}: memory of the VM for them"), grown, "MiB", Target::AtMost(MOST_MIB));
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let all = |times: &[u64]| millis(times.iter().sum());
        figures.add(&format!("{name}: taken by the first worker in"), all(first), "ms", Target::None);
        figures.add(&format!("{name}: taken by a further worker in"), all(again), "ms", Target::None);
        let longest = first.iter().chain(again).max().copied().unwrap_or_default();
        figures.add(&format!("{name}: longest of one message"), millis(longest), "ms", Target::None);
    }

    /// Whether everybody is treated as they should be.
    fn judge(&mut self) -> Result<(), String> {
        for (kind, exchanges, _) in &self.callers {
            let status = if kind.starts_with("banned") { 403 } else { 200 };
            for exchange in exchanges {
                let outcome = self.vm.pass(exchange);
                if outcome.status != status {
                    let peer = &exchange.request.peer;
                    return Err(format!("{}: {peer}, {kind}, is answered with {}", self.name, outcome.status));
                }
            }
        }
        Ok(())
    }

    fn round(&mut self) -> Result<(), String> {
        for (_, exchanges, times) in &mut self.callers {
            let mut spent = Vec::with_capacity(exchanges.len());
            for exchange in exchanges.iter() {
                let before = cpu_time();
                let outcome = self.vm.pass(exchange);
                spent.push(nanos(cpu_time().saturating_sub(before)));
                if let Some(fault) = outcome.fault {
                    return Err(format!("the filter died in {}: {}", fault.callback, fault.message));
                }
            }
            times.push(median(&spent));
        }
        Ok(())
    }

    fn micros(&self, kind: &str) -> Option<f64> {
        let (_, _, times) = self.callers.iter().find(|(known, ..)| *known == kind)?;
        Some(median(times) as f64 / 1000.0)
    }
}

fn report(all: &[Population], figures: &mut Figures) {
    let Some(none) = all.first() else { return };
    for (kind, title) in [("clean", "a request"), ("clean in IPv6", "a request in IPv6")] {
        let base = none.micros(kind).unwrap_or_default();
        figures.add(&format!("{}: {title}", none.name), base, "us", Target::None);
        for population in &all[1..] {
            let more = population.micros(kind).unwrap_or_default() - base;
            figures.add(
                &format!("{}: {title} costs more by", population.name),
                more,
                "us",
                Target::AtMost(MOST_MICROS),
            );
        }
    }
    // With none there is no such request: those with few are the measure.
    for kind in ["banned", "banned by a range"] {
        for population in all {
            if let Some(micros) = population.micros(kind) {
                figures.add(&format!("{}: a request of one {kind}", population.name), micros, "us", Target::None);
            }
        }
    }
}

/// A worker whose link to the control plane stands.
fn worker(module: &Module, node: &Node) -> Result<Vm, String> {
    let config = ThreatGateStep::default().encode_to_vec();
    let step = Step { plugin: "threat-gate".to_owned(), config, ..Step::default() };
    let link = LinkSettings { cluster: "control".to_owned(), flush_millis: 100, max_queued: 10 };
    let snapshot =
        Snapshot { filter: "threat-gate".to_owned(), global: vec![step], link: Some(link), ..Snapshot::default() };
    let mut vm = Vm::load(module, &seal(&snapshot).encode_to_vec(), node).map_err(|error| error.to_string())?;
    vm.advance(100).map_err(|fault| fault.message)?;
    Ok(vm)
}

/// Gives a worker all bans as the control plane does; how long its thread ran for each message, in nanoseconds.
fn deliver(vm: &mut Vm, keys: &[String]) -> Result<Vec<u64>, String> {
    let token = vm.grpc_streams().first().map(|stream| stream.token).ok_or("the filter opened no link")?;
    let until_millis = NOW_MILLIS + Duration::from_secs(86_400).as_millis() as u64;
    let mut times = Vec::new();
    for keys in keys.chunks(PER_MESSAGE) {
        let change = |key: &String| BanChange {
            key: key.clone(),
            until_millis,
            reason: crowd::REASON.to_owned(),
            ..BanChange::default()
        };
        let message = Down { bans: keys.iter().map(change).collect(), ..Down::default() }.encode_to_vec();
        let before = cpu_time();
        vm.deliver(token, &message).map_err(|fault| fault.message)?;
        times.push(nanos(cpu_time().saturating_sub(before)));
    }
    Ok(times)
}

fn callers(bans: u32, ranges: u32, v6: bool) -> Vec<(&'static str, Vec<Exchange>, Vec<u64>)> {
    let from = |address: String| {
        let peer = if address.contains(':') { format!("[{address}]:40000") } else { format!("{address}:40000") };
        let request = Request { peer, ..Request::get("/products?page=2") };
        Exchange { request, response: Response::default() }
    };
    let some = |address: &dyn Fn(u32) -> String| (0..CALLERS).map(|number| from(address(number))).collect::<Vec<_>>();
    let mut callers = vec![
        ("clean", some(&|number| crowd::clean(number).to_string()), Vec::new()),
        ("clean in IPv6", some(&|number| crowd::clean_v6(number).to_string()), Vec::new()),
    ];
    if bans > ranges {
        // All over the list.
        let place = |number: u32| ranges + (bans - ranges) / CALLERS * number;
        let address = |number| match v6 {
            true => crowd::banned_v6(place(number)).to_string(),
            false => crowd::banned(place(number)).to_string(),
        };
        callers.push(("banned", some(&address), Vec::new()));
    }
    if ranges > 0 {
        callers.push(("banned by a range", some(&|number| crowd::within(number % ranges)), Vec::new()));
    }
    callers
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / 1_048_576.0
}
