//! Simulated nodes on both control planes that make new bans: when do all of them have the same?

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use palisade_bench::link::connect;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::process::wait_for;
use snapshot::{BanRequest, Up};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::pair::Pair;

/// From the last ban until all nodes have the same bans, in seconds.
const MOST_SECONDS: f64 = 2.0;
/// It bounds a run that fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an idle fleet is measured.
const IDLE: Duration = Duration::from_secs(10);

/// What is done.
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) rate: u64,
    pub(crate) seconds: u64,
}

/// What a node has been told.
#[derive(Default)]
struct Told {
    /// Until when each key is banned; lifted ones are missing.
    bans: HashMap<String, u64>,
    /// When each ban came first, and the last change of all.
    times: Vec<(String, Instant)>,
    last: Option<Instant>,
}

type Node = Arc<Mutex<Told>>;

pub(crate) fn measure(runtime: &Runtime, plan: &Plan, figures: &mut Figures) -> Result<(), String> {
    let mut pair = Pair::start("redis")?;
    println!("{} nodes on two control planes on Redis, {} bans/s for {} s", plan.nodes, plan.rate, plan.seconds);
    let start = Instant::now();
    let linked = Arc::new(AtomicUsize::new(0));
    let failed = Arc::new(Mutex::new(None));
    let changes = Arc::new(AtomicU64::new(0));
    let mut nodes: Vec<(Node, mpsc::Sender<Up>)> = Vec::new();
    for number in 0..plan.nodes {
        let control = pair.controls[number % pair.controls.len()].xds();
        let (asks, asked) = mpsc::channel(64);
        let node = Node::default();
        let (linked, failed, told) = (Arc::clone(&linked), Arc::clone(&failed), Arc::clone(&node));
        let changes = Arc::clone(&changes);
        runtime.spawn(async move {
            if let Err(why) = live(control, number, asked, &told, &linked, &changes).await {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        });
        nodes.push((node, asks));
    }
    wait_for("all links", PATIENCE, || (linked.load(Ordering::SeqCst) == plan.nodes).then_some(()))?;
    figures.add("nodes: all of them linked after", start.elapsed().as_secs_f64(), "s", Target::None);
    idle(&mut pair, figures)?;
    let before = (pair.cpu()?, pair.redis_cpu()?, pair.redis_commands()?, pair.redis_memory()?, pair.resident()?);
    let made = make_bans(runtime, plan, &nodes)?;
    let last = made.iter().map(|(_, at)| *at).max().unwrap_or(start);
    let agreed = wait_for("all nodes have the same bans", PATIENCE, || {
        if failed.lock().is_ok_and(|failed| failed.is_some()) {
            return Some(Err(()));
        }
        nodes.iter().all(|(node, _)| lock(node).bans.len() >= made.len()).then_some(Ok(()))
    })?;
    if agreed.is_err() {
        let why = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        return Err(why.unwrap_or_else(|| "a link has ended".to_owned()));
    }
    // A late correction would come within this.
    std::thread::sleep(Duration::from_secs(1));
    let first = lock(&nodes[0].0).bans.clone();
    let same = nodes.iter().filter(|(node, _)| lock(node).bans == first).count();
    let complete = made.iter().all(|(key, _)| first.contains_key(key)) && first.len() == made.len();
    if !complete {
        return Err(format!("{} bans were made, a node has {}", made.len(), first.len()));
    }
    let settled = nodes.iter().filter_map(|(node, _)| lock(node).last).max().unwrap_or(last);
    let seconds = settled.saturating_duration_since(last).as_secs_f64();
    figures.add("nodes: with the same bans in the end", same as f64, "nodes", Target::AtLeast(plan.nodes as f64));
    figures.add("nodes: agree after the last ban within", seconds, "s", Target::AtMost(MOST_SECONDS));
    let mut millis = spread(&made, &nodes);
    figures.add("nodes: one ban until the last node has it, median", quantile(&mut millis, 0.5), "ms", Target::None);
    figures.add("nodes: one ban until the last node has it, 99th", quantile(&mut millis, 0.99), "ms", Target::None);
    figures.add("nodes: one ban until the last node has it, longest", quantile(&mut millis, 1.0), "ms", Target::None);
    let bans = made.len() as f64;
    let told = changes.load(Ordering::SeqCst) as f64;
    let cpu = pair.cpu()? - before.0;
    figures.add("nodes: bans made", bans, "bans", Target::None);
    figures.add("nodes: changes sent to nodes", told, "changes", Target::None);
    figures.add("nodes: CPU of control planes", cpu / plan.seconds as f64 * 100.0, "% of one", Target::None);
    figures.add("nodes: CPU of control planes for a change at a node", cpu / told * 1e6, "us", Target::None);
    figures.add("nodes: CPU of Redis for a ban", (pair.redis_cpu()? - before.1) / bans * 1e6, "us", Target::None);
    let commands = pair.redis_commands()?.since(before.2);
    figures.add("nodes: commands of Redis for a ban", commands.all() / bans, "commands", Target::None);
    figures.add("nodes: scripts among them", commands.scripts / bans, "scripts", Target::None);
    let kib = (pair.redis_memory()? - before.3) * 1024.0 / bans;
    figures.add("nodes: memory of Redis for a ban", kib, "KiB", Target::None);
    figures.add("nodes: memory of both control planes, grown by", pair.resident()? - before.4, "MiB", Target::None);
    Ok(())
}

/// What a fleet costs that does nothing.
fn idle(pair: &mut Pair, figures: &mut Figures) -> Result<(), String> {
    let before = (pair.cpu()?, pair.redis_cpu()?, pair.redis_commands()?);
    std::thread::sleep(IDLE);
    let seconds = IDLE.as_secs_f64();
    let commands = pair.redis_commands()?.since(before.2);
    figures.add("idle: commands of Redis", commands.all() / seconds, "per s", Target::None);
    figures.add("idle: scripts among them", commands.scripts / seconds, "per s", Target::None);
    figures.add("idle: reads of the version among them", commands.reads / seconds, "per s", Target::None);
    figures.add("idle: CPU of control planes", (pair.cpu()? - before.0) / seconds * 100.0, "% of one", Target::None);
    figures.add("idle: CPU of Redis", (pair.redis_cpu()? - before.1) / seconds * 100.0, "% of one", Target::None);
    Ok(())
}

/// Has nodes in turn make bans at an even pace; the key of each, and when it was sent.
fn make_bans(
    runtime: &Runtime,
    plan: &Plan,
    nodes: &[(Node, mpsc::Sender<Up>)],
) -> Result<Vec<(String, Instant)>, String> {
    let until_millis = now_millis() + 86_400_000;
    let all = plan.rate * plan.seconds;
    let mut made = Vec::new();
    runtime.block_on(async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1).div_f64(plan.rate as f64));
        for number in 0..all {
            ticks.tick().await;
            let place = (number * 37) as usize % nodes.len();
            let address = Ipv4Addr::from(0x0a00_0000 | (number as u32).wrapping_mul(0x9e37_79b1) >> 8);
            let key = format!("ip:{address}");
            let ban = BanRequest {
                key: key.clone(),
                until_millis,
                reason: "score 60 reaches tier 0 of policy `main`".to_owned(),
                score: 60.0,
                tags: vec!["waf:blocked".to_owned(), "sqli".to_owned()],
                issued_at_millis: now_millis(),
                address: address.to_string(),
            };
            let up = Up { node: format!("node-{place}"), bans: vec![ban], ..Up::default() };
            made.push((key, Instant::now()));
            nodes[place].1.send(up).await.map_err(|_| format!("the link of node {place} has ended"))?;
        }
        Ok(made)
    })
}

/// One node: it sends what it is given, and notes what it is told.
async fn live(
    control: SocketAddr,
    number: usize,
    mut asked: mpsc::Receiver<Up>,
    told: &Node,
    linked: &AtomicUsize,
    changes: &AtomicU64,
) -> Result<(), String> {
    let name = format!("node-{number}");
    let (up, mut down) = connect(control).await?;
    up.send(Up { node: name.clone(), ..Up::default() }).await.map_err(|error| error.to_string())?;
    let mut greeted = false;
    loop {
        tokio::select! {
            ask = asked.recv() => match ask {
                Some(ask) => up.send(ask).await.map_err(|_| format!("the link of {name} has ended"))?,
                None => return Ok(()),
            },
            message = down.message() => {
                let message = message.map_err(|status| format!("the link of {name}: {status}"))?;
                let message = message.ok_or_else(|| format!("the link of {name} has ended"))?;
                if !std::mem::replace(&mut greeted, true) {
                    linked.fetch_add(1, Ordering::SeqCst);
                }
                if message.bans.is_empty() {
                    continue;
                }
                changes.fetch_add(message.bans.len() as u64, Ordering::Relaxed);
                let now = Instant::now();
                let mut told = lock(told);
                for ban in message.bans {
                    let change = match ban.until_millis {
                        0 => told.bans.remove(&ban.key).is_some(),
                        until => told.bans.insert(ban.key.clone(), until) != Some(until),
                    };
                    if change {
                        told.last = Some(now);
                        told.times.push((ban.key, now));
                    }
                }
            }
        }
    }
}

/// For each ban the milliseconds until the last node had it.
fn spread(made: &[(String, Instant)], nodes: &[(Node, mpsc::Sender<Up>)]) -> Vec<f64> {
    let mut last: HashMap<String, Instant> = HashMap::new();
    for (node, _) in nodes {
        for (key, at) in &lock(node).times {
            last.entry(key.clone()).and_modify(|known| *known = (*known).max(*at)).or_insert(*at);
        }
    }
    let millis =
        |(key, at): &(String, Instant)| Some(last.get(key)?.saturating_duration_since(*at).as_secs_f64() * 1e3);
    made.iter().filter_map(millis).collect()
}

fn lock(node: &Node) -> std::sync::MutexGuard<'_, Told> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
