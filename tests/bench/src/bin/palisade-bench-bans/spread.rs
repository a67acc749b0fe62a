//! How long a ban takes to every worker of another Envoy.

use std::time::{Duration, Instant};

use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::http::Connection;
use palisade_tests::process::wait_for;
use serde_json::json;

use crate::console::Console;
use crate::nodes::{Node, PATIENCE, Site, WORKERS, ask, attack, harmless};

/// From the answer that banned until every worker of the other Envoy refuses, at the 99th percentile, in milliseconds.
const MOST_MILLIS: f64 = 1000.0;
/// Workers send what they have so often.
const FLUSH_MILLIS: u64 = 200;
/// Between two questions to one worker.
const PAUSE: Duration = Duration::from_micros(500);

pub(crate) fn measure(bans: u32, figures: &mut Figures) -> Result<(), String> {
    println!("two Envoys with {WORKERS} workers each, {bans} bans by a tier and by hand");
    let site = Site::start();
    let mut console = Console::login(&site.control)?;
    let (mut east, mut west) = (site.node(0)?, site.node(1)?);
    by_tier("a ban by a tier", "tier", bans, (&mut east, &mut west), figures)?;
    let mut hand = Vec::new();
    // The control plane closes connections that are idle for half a minute.
    console.reconnect(&site.control)?;
    for number in 0..bans {
        let caller = format!("hand-{number}");
        let_in_by_all(&mut [&mut east, &mut west], &caller)?;
        stagger(number);
        let at = console.post("_ban", &json!({"ref": format!("user:{caller}"), "duration_seconds": 86_400}))?;
        hand.push(refused_by_all(at, &mut [&mut east, &mut west], &caller)?);
    }
    tell("a ban by hand, on both", &mut hand, figures);
    working(&[&east, &west])
}

/// The same with two control planes on one Redis, and once more after one of them was killed.
pub(crate) fn measure_shared(bans: u32, figures: &mut Figures) -> Result<(), String> {
    println!("two Envoys with {WORKERS} workers each, two control planes on one Redis, {bans} bans by a tier");
    let mut site = Site::start_shared();
    let mut console = Console::login(&site.control)?;
    let (mut east, mut west) = (site.node(0)?, site.node(1)?);
    by_tier("two control planes, a ban by a tier", "two", bans, (&mut east, &mut west), figures)?;
    let Some((mut other, _redis)) = site.other.take() else { return Err("there is one control plane".to_owned()) };
    other.kill();
    let killed = Instant::now();
    console.reconnect(&site.control)?;
    wait_for("all links are at the other one", PATIENCE, || {
        let status = console.get("_status").ok()?.json();
        (status["nodes"]["links"].as_u64()? >= 2 * WORKERS as u64).then_some(())
    })?;
    figures.add(
        "one control plane killed: all workers are linked to the other",
        killed.elapsed().as_secs_f64(),
        "s",
        Target::None,
    );
    by_tier("one of two control planes killed, a ban by a tier", "one", bans, (&mut east, &mut west), figures)?;
    working(&[&east, &west])
}

/// Bans by a tier at the first Envoy, until every worker of the second one refuses.
fn by_tier(
    what: &str,
    prefix: &str,
    bans: u32,
    (east, west): (&mut Node, &mut Node),
    figures: &mut Figures,
) -> Result<(), String> {
    let (mut other, mut own) = (Vec::new(), 0);
    for number in 0..bans {
        let caller = format!("{prefix}-{number}");
        let_in_by_all(&mut [&mut *east, &mut *west], &caller)?;
        stagger(number);
        let worker = number as usize % WORKERS;
        let status = ask(&mut east.workers[worker], &attack(&caller))?;
        let at = Instant::now();
        if status != 403 {
            return Err(format!("an attack is answered with {status}"));
        }
        // On its own node a ban is in shared data before it is answered.
        for connection in &mut east.workers {
            own += u32::from(ask(connection, &harmless(&caller))? != 403);
        }
        other.push(refused_by_all(at, &mut [&mut *west], &caller)?);
    }
    tell(what, &mut other, figures);
    figures.add(&format!("{what}: let in by its own Envoy after it"), f64::from(own), "requests", Target::AtMost(0.0));
    Ok(())
}

fn working(nodes: &[&Node]) -> Result<(), String> {
    for node in nodes {
        let failures = node.envoy.vm_failures();
        if !failures.is_empty() {
            return Err(format!("a filter's VM failed: {failures:?}"));
        }
    }
    Ok(())
}

fn tell(what: &str, millis: &mut [f64], figures: &mut Figures) {
    figures.add(&format!("{what}: every worker refuses, median"), quantile(millis, 0.5), "ms", Target::None);
    let p99 = quantile(millis, 0.99);
    figures.add(&format!("{what}: every worker refuses, 99th percentile"), p99, "ms", Target::AtMost(MOST_MILLIS));
    figures.add(&format!("{what}: every worker refuses, longest"), quantile(millis, 1.0), "ms", Target::None);
}

/// What follows an answer follows a worker's timer: bans are to fall on all of its times alike.
fn stagger(number: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(number) * 73 % FLUSH_MILLIS));
}

/// Nobody may be refused before they are banned.
fn let_in_by_all(nodes: &mut [&mut Node], caller: &str) -> Result<(), String> {
    for connection in nodes.iter_mut().flat_map(|node| &mut node.workers) {
        let status = ask(connection, &harmless(caller))?;
        if status != 200 {
            return Err(format!("{caller}, whom nobody has banned, is answered with {status}"));
        }
    }
    Ok(())
}

/// Asks every worker again and again, each by itself; the milliseconds until the last of them refused.
fn refused_by_all(since: Instant, nodes: &mut [&mut Node], caller: &str) -> Result<f64, String> {
    let until = |connection: &mut Connection| {
        let request = harmless(caller);
        loop {
            if ask(connection, &request)? == 403 {
                return Ok(since.elapsed());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("{caller} is not refused after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(PAUSE);
        }
    };
    let times: Vec<Result<Duration, String>> = std::thread::scope(|scope| {
        let workers = nodes.iter_mut().flat_map(|node| &mut node.workers);
        let asking: Vec<_> = workers.map(|connection| scope.spawn(move || until(connection))).collect();
        asking.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect()
    });
    let last = times.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or_default();
    Ok(last.as_secs_f64() * 1000.0)
}
