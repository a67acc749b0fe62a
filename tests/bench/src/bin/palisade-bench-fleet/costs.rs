//! What one decision costs over the node link, in a file and in Redis, and what an open link costs.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use palisade_bench::link::connect;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::process::wait_for;
use snapshot::{
    Ask, BudgetTaken, CountGroup, CountKind, Down, KeyCount, Message as _, SpendPuzzle, TakeBudget, Topic, Up, YesNo,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::pair::{Commands, Pair};

/// Questions of one node at a time where many are asked.
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);
/// The window of the budget, in milliseconds.
const WINDOW: u64 = 3_600_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Budget,
    Puzzle,
}

impl Decision {
    fn title(self) -> &'static str {
        match self {
            Decision::Budget => "one admission to a budget",
            Decision::Puzzle => "one spent puzzle",
        }
    }

    fn ask(self, id: u64) -> Ask {
        let (topic, data) = match self {
            Decision::Budget => (TakeBudget::TOPIC, budget(id).encode_to_vec()),
            Decision::Puzzle => {
                let puzzle = SpendPuzzle { id: format!("puzzle-{id}"), until_millis: now_millis() + WINDOW };
                (SpendPuzzle::TOPIC, puzzle.encode_to_vec())
            }
        };
        Ask { id, topic: topic.to_owned(), data, wait_millis: 10_000, ..Ask::default() }
    }

    fn granted(self, data: &[u8]) -> bool {
        match self {
            Decision::Budget => BudgetTaken::decode(data).is_ok_and(|answer| answer.taken),
            Decision::Puzzle => YesNo::decode(data).is_ok_and(|answer| answer.yes),
        }
    }
}

/// So many questions about one decision.
#[derive(Clone, Copy)]
struct Asked {
    decision: Decision,
    count: usize,
}

pub(crate) fn measure(runtime: &Runtime, decisions: usize, links: usize, figures: &mut Figures) -> Result<(), String> {
    for store in ["file", "redis"] {
        let mut pair = Pair::start(store)?;
        println!("{decisions} decisions of each kind, one after the other and {AT_ONCE} at once; {}", pair.title());
        for decision in [Decision::Budget, Decision::Puzzle] {
            one_by_one(runtime, &mut pair, Asked { decision, count: decisions }, figures)
                .map_err(|why| pair.explain(why))?;
            many(runtime, &mut pair, Asked { decision, count: decisions * 10 }, figures)
                .map_err(|why| pair.explain(why))?;
        }
        if store == "file" {
            memory(runtime, &mut pair, links, figures)?;
        }
    }
    Ok(())
}

/// Each after the answer to the one before, at the first control plane.
fn one_by_one(runtime: &Runtime, pair: &mut Pair, asked: Asked, figures: &mut Figures) -> Result<(), String> {
    let Asked { decision, count } = asked;
    let what = format!("{}, {}", decision.title(), pair.title());
    let before = used(pair)?;
    let mut millis = runtime.block_on(asker(pair.controls[0].xds(), decision, 1, 0, count))?;
    figures.add(&format!("{what}: median"), quantile(&mut millis, 0.5), "ms", Target::None);
    figures.add(&format!("{what}: 99th percentile"), quantile(&mut millis, 0.99), "ms", Target::None);
    report_cpu(&what, pair, before, count as f64, figures)
}

/// Many at once, at both control planes if there are two.
fn many(runtime: &Runtime, pair: &mut Pair, asked: Asked, figures: &mut Figures) -> Result<(), String> {
    let Asked { decision, count } = asked;
    let what = format!("{}, {}, {AT_ONCE} at once at each", decision.title(), pair.title());
    let before = used(pair)?;
    let start = Instant::now();
    let mut millis = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        let each = count / pair.controls.len();
        for (number, control) in pair.controls.iter().enumerate() {
            tasks.spawn(asker(control.xds(), decision, AT_ONCE, (number + 1) * 1_000_000, each));
        }
        let mut all = Vec::new();
        while let Some(millis) = tasks.join_next().await {
            all.extend(millis.map_err(|error| error.to_string())??);
        }
        Ok::<_, String>(all)
    })?;
    figures.add(&format!("{what}: rate"), millis.len() as f64 / start.elapsed().as_secs_f64(), "per s", Target::None);
    figures.add(&format!("{what}: 99th percentile"), quantile(&mut millis, 0.99), "ms", Target::None);
    report_cpu(&what, pair, before, count as f64, figures)
}

/// CPU of control planes and of Redis in seconds, and commands of Redis so far.
type Used = (f64, f64, Commands);

fn used(pair: &mut Pair) -> Result<Used, String> {
    Ok((pair.cpu()?, pair.redis_cpu()?, pair.redis_commands()?))
}

fn report_cpu(what: &str, pair: &mut Pair, before: Used, count: f64, figures: &mut Figures) -> Result<(), String> {
    figures.add(&format!("{what}: CPU of control planes"), (pair.cpu()? - before.0) / count * 1e6, "us", Target::None);
    if pair.redis.is_some() {
        figures.add(&format!("{what}: CPU of Redis"), (pair.redis_cpu()? - before.1) / count * 1e6, "us", Target::None);
        let commands = pair.redis_commands()?.since(before.2).all() / count;
        figures.add(&format!("{what}: commands of Redis"), commands, "commands", Target::None);
    }
    Ok(())
}

/// Asks on a link of its own, with some questions open at a time; the milliseconds of each. Every one must be granted.
async fn asker(
    control: SocketAddr,
    decision: Decision,
    at_once: usize,
    first: usize,
    count: usize,
) -> Result<Vec<f64>, String> {
    let (up, mut down) = connect(control).await?;
    up.send(Up { node: format!("asker-{first}"), ..Up::default() }).await.map_err(|error| error.to_string())?;
    greeting(&mut down).await?;
    let (mut sent, mut answered, mut millis) = (0, 0, Vec::with_capacity(count));
    let mut times = vec![Instant::now(); count];
    while answered < count {
        while sent < count && sent - answered < at_once {
            times[sent] = Instant::now();
            ask(&up, decision.ask((first + sent) as u64)).await?;
            sent += 1;
        }
        let message = down.message().await.map_err(|status| status.to_string())?.ok_or("the link has ended")?;
        for answer in message.answers {
            let place = answer.id as usize - first;
            millis.push(times[place].elapsed().as_secs_f64() * 1e3);
            answered += 1;
            if !answer.data.as_deref().is_some_and(|data| decision.granted(data)) {
                return Err(format!("{} was not granted: {:?}", decision.title(), answer.data));
            }
        }
    }
    Ok(millis)
}

async fn ask(up: &mpsc::Sender<Up>, ask: Ask) -> Result<(), String> {
    up.send(Up { asks: vec![ask], ..Up::default() }).await.map_err(|error| error.to_string())
}

async fn greeting(down: &mut Streaming<Down>) -> Result<(), String> {
    down.message().await.map_err(|status| status.to_string())?.ok_or("the link has ended")?;
    Ok(())
}

/// A budget of an hour, a key of its own for each question.
fn budget(key: u64) -> TakeBudget {
    let group = CountGroup {
        name: "bench.budget".to_owned(),
        kind: CountKind::Budget.into(),
        slice_millis: WINDOW,
        slices: 1,
        cap: 1000,
        everywhere_from: 0,
        max_keys: 100_000,
    };
    let own = KeyCount { key, newest: now_millis() / WINDOW, counts: vec![0] };
    TakeBudget { group: Some(group), incarnation: 1, own: Some(own), amount: 1, limit: 10 }
}

/// Opens links of nodes, each on a connection of its own, and holds them.
fn memory(runtime: &Runtime, pair: &mut Pair, links: usize, figures: &mut Figures) -> Result<(), String> {
    println!("{links} links, each on a connection of its own");
    let control = pair.controls[0].xds();
    let open = |from: usize, to: usize| {
        runtime.block_on(async {
            let mut held = Vec::new();
            for number in from..to {
                let (up, mut down) = connect(control).await?;
                let node = format!("held-{number}");
                up.send(Up { node, ..Up::default() }).await.map_err(|error| error.to_string())?;
                greeting(&mut down).await?;
                held.push((up, down));
            }
            Ok::<_, String>(held)
        })
    };
    // What the first ones cost, further ones do not.
    let first = open(0, 50)?;
    let before = pair.resident()?;
    let further = open(50, 50 + links)?;
    wait_for("the metric of links", PATIENCE, || {
        let streams: u64 = pair.metrics().iter().map(|scrape| scrape.sum("palisade_link_streams", "")).sum();
        (streams >= links as u64 + 50).then_some(())
    })?;
    let kib = (pair.resident()? - before) * 1024.0 / links as f64;
    figures.add("an open link: memory of its control plane", kib, "KiB", Target::None);
    drop((first, further));
    Ok(())
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
