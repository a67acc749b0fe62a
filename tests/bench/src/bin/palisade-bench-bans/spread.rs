//! How long a ban takes to every worker of another Envoy.

use std::time::{Duration, Instant};

use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::http::Connection;
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
    let (mut other, mut own) = (Vec::new(), 0);
    for number in 0..bans {
        let caller = format!("tier-{number}");
        let_in_by_all(&mut [&mut east, &mut west], &caller)?;
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
        other.push(refused_by_all(at, &mut [&mut west], &caller)?);
    }
    tell("a ban by a tier", &mut other, figures);
    figures.add("a ban by a tier: let in by its own Envoy after it", f64::from(own), "requests", Target::AtMost(0.0));
    let mut hand = Vec::new();
    // The control plane lets go of connections that say nothing for half a minute.
    console.reconnect(&site.control)?;
    for number in 0..bans {
        let caller = format!("hand-{number}");
        let_in_by_all(&mut [&mut east, &mut west], &caller)?;
        stagger(number);
        let at = console.post("_ban", &json!({"ref": format!("user:{caller}"), "duration_seconds": 86_400}))?;
        hand.push(refused_by_all(at, &mut [&mut east, &mut west], &caller)?);
    }
    tell("a ban by hand, on both", &mut hand, figures);
    for node in [&east, &west] {
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
