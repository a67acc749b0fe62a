//! A gateway that joins a control plane with many bans, and what they cost everybody else.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant, SystemTime};

use palisade_bench::console::Console;
use palisade_bench::site::NAMES;
use palisade_bench::workers::{Node, PATIENCE, WORKERS, ask, each_worker, harmless};
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::{resident_mib, wait_for};
use serde_json::json;

use crate::nodes::Site;
use crate::{crowd, link};

/// From the first connection of a gateway that joins until each of its workers refuses the last of the bans, in seconds.
const MOST_SECONDS: f64 = 2.0;
/// Connections that ask while a gateway joins: enough that each worker has some.
const ASKING: usize = 8;
/// Between two questions on one connection.
const PAUSE: Duration = Duration::from_millis(2);
/// How long requests are timed where nothing happens, as a measure for where something does.
const CALM: Duration = Duration::from_secs(3);
/// Bans by hand, the last of all.
const BY_HAND: u32 = 20;
/// A caller that is never banned.
const CLEAN: &str = "nobody";

pub(crate) fn measure(bans: u32, joins: usize, figures: &mut Figures) -> Result<(), String> {
    println!("{bans} bans: recorded, told, joined, lifted");
    let mut site = Site::start();
    let mut console = Console::login(&site.control)?;
    let mut west = site.node(1)?;
    recorded(&mut site, &mut console, &mut west, bans, figures)?;
    let last = crowd::user(bans - 1);
    joined(&site, joins, bans, &last, figures)?;
    started_anew(&mut site, &mut console, &mut west, &last, figures)?;
    lifted(&mut console, &mut west, bans, figures)
}

/// A running Envoy is told of every ban that another node asks for.
fn recorded(
    site: &mut Site,
    console: &mut Console,
    west: &mut Node,
    bans: u32,
    figures: &mut Figures,
) -> Result<(), String> {
    let calm = slowest_during(west, || {
        std::thread::sleep(CALM);
        Ok(())
    })?;
    figures.add("slowest request of a calm Envoy", calm.1, "ms", Target::None);
    let control = site.control.process().id();
    let before = (resident_mib(control)?, allocated(&west.envoy)?);
    let keys: Vec<String> = (0..bans - BY_HAND).map(crowd::mixed).collect();
    let until = now_millis() + 86_400_000;
    let address = site.control.xds();
    let (seconds, slowest) = slowest_during(west, || {
        let start = Instant::now();
        link::ban(address, &keys, until)?;
        Ok(start.elapsed().as_secs_f64())
    })?;
    figures.add(
        "bans recorded for a node, durable and told",
        f64::from(bans - BY_HAND) / seconds,
        "per s",
        Target::None,
    );
    figures.add("slowest request of an Envoy that is told meanwhile", slowest, "ms", Target::None);
    let mut hand = Vec::new();
    for number in bans - BY_HAND..bans {
        let key = format!("user:{}", crowd::user(number));
        let start = Instant::now();
        let at = console.post("_ban", &json!({"ref": key, "duration_seconds": 86_400}))?;
        hand.push(at.duration_since(start).as_secs_f64() * 1000.0);
    }
    figures.add(&format!("a ban by hand beside {bans} others"), quantile(&mut hand, 0.5), "ms", Target::None);
    until_all(west, &crowd::user(bans - 1), 403)?;
    figures.add("memory of the control plane for them", resident_mib(control)? - before.0, "MiB", Target::None);
    figures.add("memory of a running Envoy for them", allocated(&west.envoy)? - before.1, "MiB", Target::None);
    let start = Instant::now();
    let answer = console.get("_bans")?;
    figures.add("GET _bans (a page of 1000)", start.elapsed().as_secs_f64(), "s", Target::None);
    figures.add("GET _bans: its answer", answer.body.len() as f64 / 1_048_576.0, "MiB", Target::None);
    let listed = answer.header("x-total").and_then(|total| total.parse::<u32>().ok()).unwrap_or_default();
    if listed != bans {
        return Err(format!("{bans} bans were set, and {listed} are listed"));
    }
    figures.add("memory of the control plane after it", resident_mib(control)? - before.0, "MiB", Target::None);
    Ok(())
}

fn joined(site: &Site, joins: usize, bans: u32, last: &str, figures: &mut Figures) -> Result<(), String> {
    let (mut seconds, mut since_start, mut pauses, mut calm) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..joins.max(1) {
        let links = settled_links(&site.control)?;
        let start = Instant::now();
        let (stop, control) = (AtomicBool::new(false), &site.control);
        let (mut envoy, address, first_link) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| first_link(control, links, &stop));
            let launched = site.launch(0).and_then(|(envoy, address)| {
                wait_for(&format!("{} listens", NAMES[0]), PATIENCE, || Connection::open(address).ok())?;
                Ok((envoy, address))
            });
            // A link comes with the first timer of a worker that is configured; the watch ends by itself then.
            stop.store(launched.is_err(), Ordering::Relaxed);
            let first = join(watch);
            launched.map(|(envoy, address)| (envoy, address, first))
        })?;
        let asked = ask_until(address, last)?;
        let all = asked.iter().map(|asked| asked.refused_at).max().unwrap_or(start);
        seconds.push(all.saturating_duration_since(first_link?).as_secs_f64());
        since_start.push(all.duration_since(start).as_secs_f64());
        pauses.push(asked.iter().map(|asked| asked.slowest).fold(0.0, f64::max));
        let taken = envoy.worker_connections();
        if taken.values().filter(|count| **count > 0).count() < WORKERS {
            return Err(format!("a worker was asked nothing: {taken:?}"));
        }
        let mut node = Node { workers: each_worker(&envoy, address)?, address, envoy };
        let (_, slowest) = slowest_during(&mut node, || {
            std::thread::sleep(Duration::from_secs(1));
            Ok(())
        })?;
        calm.push(slowest);
        for number in (0..bans - BY_HAND).step_by(crowd::NAMED as usize) {
            let caller = crowd::user(number);
            for connection in &mut node.workers {
                if ask(connection, &harmless(&caller))? != 403 {
                    return Err(format!("a gateway that has joined lets {caller} in, number {number} of {bans}"));
                }
            }
        }
        envoy = node.envoy;
        let failures = envoy.vm_failures();
        if !failures.is_empty() {
            return Err(format!("a filter's VM failed: {failures:?}"));
        }
    }
    let target = Target::AtMost(MOST_SECONDS);
    figures.add("join: first link to the last ban on every worker, median", quantile(&mut seconds, 0.5), "s", target);
    figures.add("join: first link to the last ban on every worker, longest", quantile(&mut seconds, 1.0), "s", target);
    figures.add("join: Envoy's start to the last ban, median", quantile(&mut since_start, 0.5), "s", Target::None);
    figures.add("join: slowest request meanwhile, longest of all", quantile(&mut pauses, 1.0), "ms", Target::None);
    figures.add("join: slowest request within 1 s after it, longest", quantile(&mut calm, 1.0), "ms", Target::None);
    Ok(())
}

/// A control plane that is killed and comes back: its gateways keep their bans, and are given them all again.
fn started_anew(
    site: &mut Site,
    console: &mut Console,
    west: &mut Node,
    last: &str,
    figures: &mut Figures,
) -> Result<(), String> {
    let workers = west.address;
    let ((), slowest) = slowest_during(west, || {
        site.control.kill();
        let alone = harmless(last).send(workers).map_err(|error| error.to_string())?;
        if alone.status != 403 {
            return Err(format!("without its control plane an Envoy answers a banned caller with {}", alone.status));
        }
        site.control.restart();
        wait_for("the links are back", PATIENCE, || (links(&site.control).ok()? >= WORKERS as f64).then_some(()))?;
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    })?;
    figures.add("slowest request while a killed control plane comes back", slowest, "ms", Target::None);
    console.reconnect(&site.control)
}

fn lifted(console: &mut Console, west: &mut Node, bans: u32, figures: &mut Figures) -> Result<(), String> {
    let start = Instant::now();
    let at = console.post("_unban", &json!({"all": true}))?;
    figures.add("all bans lifted: the answer", at.duration_since(start).as_secs_f64(), "s", Target::None);
    for number in (0..bans - BY_HAND).step_by(crowd::NAMED as usize).chain([bans - 1]) {
        until_all(west, &crowd::user(number), 200)?;
    }
    figures.add("all bans lifted: every worker lets them in", at.elapsed().as_secs_f64(), "s", Target::None);
    let failures = west.envoy.vm_failures();
    if failures.is_empty() { Ok(()) } else { Err(format!("a filter's VM failed: {failures:?}")) }
}

/// What one connection has seen.
struct Asked {
    refused_at: Instant,
    /// In milliseconds.
    slowest: f64,
}

/// Asks for a banned caller on many connections until each of them is refused.
fn ask_until(address: SocketAddr, caller: &str) -> Result<Vec<Asked>, String> {
    let asking = || {
        let start = Instant::now();
        let mut connection = Connection::open(address).map_err(|error| format!("{address}: {error}"))?;
        let request = harmless(caller);
        let mut slowest = 0.0;
        loop {
            let (status, millis) = timed(&mut connection, &request)?;
            slowest = f64::max(slowest, millis);
            if status == 403 {
                return Ok(Asked { refused_at: Instant::now(), slowest });
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{caller} is not refused after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(PAUSE);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ASKING).map(|_| scope.spawn(asking)).collect();
        threads.into_iter().map(join).collect()
    })
}

/// Does something while every worker is asked again and again for a caller that nobody bans; what came of it, and how long
/// the slowest request took, in milliseconds.
fn slowest_during<T>(node: &mut Node, work: impl FnOnce() -> Result<T, String>) -> Result<(T, f64), String> {
    let stop = AtomicBool::new(false);
    let asking = |connection: &mut Connection| {
        let (request, mut slowest) = (harmless(CLEAN), 0.0);
        while !stop.load(Ordering::Relaxed) {
            let (status, millis) = timed(connection, &request)?;
            if status != 200 {
                return Err(format!("{CLEAN} is answered with {status}"));
            }
            slowest = f64::max(slowest, millis);
            std::thread::sleep(PAUSE);
        }
        Ok(slowest)
    };
    std::thread::scope(|scope| {
        let asking = &asking;
        let threads: Vec<_> =
            node.workers.iter_mut().map(|connection| scope.spawn(move || asking(connection))).collect();
        let outcome = work();
        stop.store(true, Ordering::Relaxed);
        let slowest: Vec<f64> = threads.into_iter().map(join).collect::<Result<_, String>>()?;
        Ok((outcome?, slowest.into_iter().fold(0.0, f64::max)))
    })
}

fn timed(connection: &mut Connection, request: &Request) -> Result<(u16, f64), String> {
    let start = Instant::now();
    let status = ask(connection, request)?;
    Ok((status, start.elapsed().as_secs_f64() * 1000.0))
}

/// Waits until every worker answers a caller so.
fn until_all(node: &mut Node, caller: &str, status: u16) -> Result<(), String> {
    for connection in &mut node.workers {
        wait_for(&format!("{caller} is answered with {status}"), PATIENCE, || {
            (ask(connection, &harmless(caller)).ok()? == status).then_some(())
        })?;
    }
    Ok(())
}

/// When there was one more link than before.
fn first_link(control: &ControlPlane, before: f64, stop: &AtomicBool) -> Result<Instant, String> {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) && start.elapsed() < PATIENCE {
        if links(control)? > before {
            return Ok(Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
    Err(format!("no worker has opened its link: there were {before}, there are {}", links(control)?))
}

/// How many links the control plane has, once that has not changed for a while: a link that has ended is counted until the
/// control plane notices.
fn settled_links(control: &ControlPlane) -> Result<f64, String> {
    let (mut known, mut since) = (links(control)?, Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let now = links(control)?;
        if now != known {
            (known, since) = (now, Instant::now());
        }
    }
    Ok(known)
}

/// How many links the control plane has.
fn links(control: &ControlPlane) -> Result<f64, String> {
    let answer = Request::get("/metrics").send(control.rest()).map_err(|error| format!("/metrics: {error}"))?;
    let text = answer.text();
    let line = text.lines().find_map(|line| line.strip_prefix("palisade_link_streams "));
    Ok(line.and_then(|number| number.trim().parse().ok()).unwrap_or_default())
}

/// What an Envoy has allocated, in MiB. Its resident memory says less: compiling a filter leaves free memory in it.
fn allocated(envoy: &Envoy) -> Result<f64, String> {
    let memory = envoy.admin_get("/memory").map_err(|error| format!("/memory: {error}"))?.json();
    let bytes = memory["allocated"].as_str().and_then(|bytes| bytes.parse::<f64>().ok());
    bytes.map(|bytes| bytes / 1_048_576.0).ok_or_else(|| format!("/memory does not say what is allocated: {memory}"))
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a thread of the benchmark panicked".to_owned()))
}
