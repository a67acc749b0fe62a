//! What is known of callers, in the VM of a worker: the memory of all tables, and the time that a fingerprint takes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bot_guard::{BotGuardStep, BotList, BotReaction, FingerprintList, FingerprintPair, FingerprintStep};
use ip_reputation::{CLASSES, DECISIONS, FeedOfStep, IpReputationStep, NETWORKS, TABLE};
use proxy_host::traffic::{Exchange, Request, Response};
use proxy_host::{Module, Node, Vm, cpu_time};
use snapshot::{Down, LinkSettings, Message as _, Part, Snapshot, Step, TableChange, content_hash, seal};
use tables::{LabelWidth, RangesBuilder, SourceBuilder, State};

use crate::waf::{median, nanos};

const NOW_MILLIS: u64 = 1_750_000_000_000;
/// The entries of the feeds of the catalogue: of IPv4, and the two of IPv6.
const FEEDS_V4: [u32; 12] = [1_300, 4_500, 20_000, 19_000, 500, 1_500, 10_000, 8_500, 800, 1_300, 15, 10_500];
const FEEDS_V6: [u32; 2] = [4_000, 7];
/// Networks of autonomous systems of both families, as many as are announced, and decisions of a service.
const NETWORKS_V4: u32 = 412_000;
const NETWORKS_V6: u32 = 103_000;
const DECIDED: u32 = 10_000;
/// One network of so many is of a class.
const CLASSED: u32 = 10;
/// The bytes of a table in one message of the control plane.
const CHUNK: usize = 64 * 1024;
const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const OF_CHROME: &str = "t13d1516h2_8daaf6152771_02713d6af862";

/// What the tables of all lists take in one VM, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct TablesMemory {
    /// The tables themselves.
    pub tables: usize,
    /// What the memory of the VM grew by when it took them.
    pub first: usize,
    /// What it grew by in all, once every table had been replaced as a whole.
    pub replaced: usize,
}

/// The memory that all lists take in a VM: fourteen feeds of the sizes of the catalogue, the networks of both families and their classes,
/// and 10,000 decisions. The module is that of the preset.
///
/// # Errors
///
/// The VM does not start, or dies; for people.
pub fn tables_memory(module: &Module) -> Result<TablesMemory, String> {
    let feed = |key: &str| FeedOfStep { key: key.to_owned(), id: key.to_owned(), weight: 1.0, ..FeedOfStep::default() };
    let mut feeds: Vec<FeedOfStep> = (0..FEEDS_V4.len() + FEEDS_V6.len()).map(|number| feed(&key(number))).collect();
    feeds.push(FeedOfStep { class: true, ..feed("hosting") });
    feeds.push(FeedOfStep { bouncer: true, ..feed("decided") });
    let step = IpReputationStep { feeds, status: 403, by_network: true, ..IpReputationStep::default() };
    let mut vm = worker(module, &Node::new("bench", NOW_MILLIS, 7), "ip-reputation", step.encode_to_vec(), Vec::new())?;
    let started = vm.memory_size();
    let grown = |vm: &Vm| vm.memory_size().saturating_sub(started);
    let all = all_tables(1)?;
    let tables = all.iter().map(|(_, base)| base.len()).sum();
    all.iter().try_for_each(|(name, base)| deliver(&mut vm, name, base))?;
    let first = grown(&vm);
    all_tables(2)?.iter().try_for_each(|(name, base)| deliver(&mut vm, name, base))?;
    Ok(TablesMemory { tables, first, replaced: grown(&vm) })
}

/// What the fingerprint of a client costs a request in the bot guard, in nanoseconds of processor time: a request without fingerprints,
/// and one whose fingerprint is compared with known pairs and learned. Medians of rounds in turns.
///
/// # Errors
///
/// The VM does not start, or dies; for people.
pub fn fingerprint_nanos(module: &Module, rounds: usize) -> Result<[u64; 2], String> {
    let step = FingerprintStep {
        mismatch_weight: 40.0,
        unknown_weight: 5.0,
        rotation_weight: 10.0,
        rotation_families: 3,
        rotation_networks: 2,
        learn: true,
    };
    let mut without = guard(module, None)?;
    let mut with = guard(module, Some(step))?;
    let mut times = [Vec::new(), Vec::new()];
    // The first round warms up.
    for round in 0..=rounds {
        for (vm, times) in [&mut without, &mut with].into_iter().zip(&mut times) {
            let mut spent = Vec::new();
            for number in 0..1_000_u32 {
                let peer = format!("203.0.{}.{}:4711", number >> 8, number & 255);
                let mut request = Request { peer, ..Request::get("/products?page=2") };
                request.headers.push((b"user-agent".to_vec(), CHROME.as_bytes().to_vec()));
                let exchange = Exchange { request, response: Response::default() };
                let before = cpu_time();
                let outcome = vm.pass(&exchange);
                spent.push(nanos(cpu_time().saturating_sub(before)));
                if let Some(fault) = outcome.fault {
                    return Err(format!("the filter died in {}: {}", fault.callback, fault.message));
                }
                if outcome.status != 200 {
                    return Err(format!("a browser is answered with {}", outcome.status));
                }
            }
            if round > 0 {
                times.push(median(&spent));
            }
        }
    }
    Ok([median(&times[0]), median(&times[1])])
}

fn guard(module: &Module, fingerprints: Option<FingerprintStep>) -> Result<Vm, String> {
    let pair = FingerprintPair { family: "chrome".to_owned(), fingerprints: vec![OF_CHROME.to_owned()] };
    let known = FingerprintList { pairs: vec![pair], rules: Vec::new() };
    let list = BotList { fingerprints: Some(known), ..BotList::default() }.encode_to_vec();
    let hash = content_hash(&list).to_vec();
    let step = BotGuardStep {
        bots: hash.clone(),
        name: "bots".to_owned(),
        impersonator: BotReaction::Monitor.into(),
        status: 403,
        fingerprints,
        ..BotGuardStep::default()
    };
    let node = Node::new("bench", NOW_MILLIS, 7);
    node.set_filter_state("svc.ja4", OF_CHROME.as_bytes());
    worker(module, &node, "bot-guard", step.encode_to_vec(), vec![Part { hash, data: list }])
}

/// A worker with one plugin, whose link to the control plane stands.
fn worker(module: &Module, node: &Node, plugin: &str, config: Vec<u8>, parts: Vec<Part>) -> Result<Vm, String> {
    let step = Step { plugin: plugin.to_owned(), config, ..Step::default() };
    let link = LinkSettings { cluster: "control".to_owned(), flush_millis: 100, max_queued: 10 };
    let snapshot =
        Snapshot { filter: "preset".to_owned(), global: vec![step], parts, link: Some(link), ..Snapshot::default() };
    let mut vm = Vm::load(module, &seal(&snapshot).encode_to_vec(), node).map_err(|error| error.to_string())?;
    vm.advance(100).map_err(|fault| fault.message)?;
    let token = vm.grpc_streams().first().map(|stream| stream.token).ok_or("the filter opened no link")?;
    vm.deliver(token, b"").map_err(|fault| fault.message)?;
    Ok(vm)
}

/// Gives a worker a table as the control plane does.
fn deliver(vm: &mut Vm, name: &str, base: &[u8]) -> Result<(), String> {
    let token = vm.grpc_streams().last().map(|stream| stream.token).ok_or("the filter opened no link")?;
    let number = |count: usize| u32::try_from(count).map_err(|_| "a table is too large".to_owned());
    let state = State::of_base(base).0.to_vec();
    for (at, data) in base.chunks(CHUNK).enumerate() {
        let change = TableChange {
            name: name.to_owned(),
            state: state.clone(),
            data: data.to_vec(),
            offset: number(at * CHUNK)?,
            size: number(base.len())?,
            ..TableChange::default()
        };
        let message = Down { tables: vec![change], ..Down::default() }.encode_to_vec();
        vm.deliver(token, &message).map_err(|fault| fault.message)?;
    }
    Ok(())
}

fn key(number: usize) -> String {
    format!("feed-{number:02}")
}

/// All tables, by name; another seed makes others.
fn all_tables(seed: u64) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let mut random = Random(seed);
    let built = |base: Result<Vec<u8>, tables::BaseError>| base.map_err(|error| error.to_string());
    let wrong = |error: tables::OpError| error.to_string();
    let (mut feeds, mut decisions, mut classes) =
        (SourceBuilder::default(), SourceBuilder::default(), SourceBuilder::default());
    for (number, entries) in FEEDS_V4.iter().chain(&FEEDS_V6).enumerate() {
        let source = feeds.source(&key(number)).map_err(wrong)?;
        for _ in 0..*entries {
            let first: IpAddr = match number < FEEDS_V4.len() {
                true => Ipv4Addr::from(random.next() as u32).into(),
                false => Ipv6Addr::from(0x2400 << 112 | u128::from(random.next()) << 48).into(),
            };
            feeds.add(source, first, first).map_err(wrong)?;
        }
    }
    let source = decisions.source("decided").map_err(wrong)?;
    for _ in 0..DECIDED {
        let address = Ipv4Addr::from(random.next() as u32).into();
        decisions.add(source, address, address).map_err(wrong)?;
    }
    let mut networks = RangesBuilder::new(LabelWidth::Four);
    let class = classes.source("hosting").map_err(wrong)?;
    // Side by side, each of its own size.
    let mut next = 0x0100_0000_u32;
    for number in 0..NETWORKS_V4 {
        let size = 256_u32 << (random.next() % 6);
        let (first, last) = (Ipv4Addr::from(next).into(), Ipv4Addr::from(next.saturating_add(size - 1)).into());
        networks.set(first, last, 1 + number % 70_000).map_err(wrong)?;
        if number % CLASSED == 0 {
            classes.add(class, first, last).map_err(wrong)?;
        }
        next = next.saturating_add(size);
    }
    for number in 0..NETWORKS_V6 {
        let network = 0x2400 << 112 | u128::from(number) << 84;
        let (first, last) = (Ipv6Addr::from(network).into(), Ipv6Addr::from(network | ((1 << 84) - 1)).into());
        networks.set(first, last, 1 + number % 70_000).map_err(wrong)?;
        if number % CLASSED == 0 {
            classes.add(class, first, last).map_err(wrong)?;
        }
    }
    Ok(vec![
        (TABLE, built(feeds.build())?),
        (DECISIONS, built(decisions.build())?),
        (CLASSES, built(classes.build())?),
        (NETWORKS, built(networks.build())?),
    ])
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
