//! How long a ban takes to every worker of another Envoy.

use std::time::{Duration, Instant};

use palisade_bench::console::Console;
use palisade_bench::workers::{Node, WORKERS, ask, attack, harmless, let_in_by_all, refused_by_all};
use palisade_tests::figures::{Figures, Target, quantile};
use serde_json::json;

use crate::nodes::Site;

/// From the answer that banned until every worker of the other Envoy refuses, at the 99th percentile, in milliseconds.
const MOST_MILLIS: f64 = 1000.0;
/// Workers send what they have so often.
const FLUSH_MILLIS: u64 = 200;

pub(crate) fn measure(bans: u32, figures: &mut Figures) -> Result<(), String> {
    println!("two Envoys with {WORKERS} workers each, {bans} bans by a tier and by hand");
    let site = Site::start();
    let mut console = Console::login(&site.control)?;
    let (mut east, mut west) = (site.node(0)?, site.node(1)?);
    by_tier(bans, (&mut east, &mut west), figures)?;
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

/// Bans by a tier at the first Envoy, until every worker of the second one refuses.
fn by_tier(bans: u32, (east, west): (&mut Node, &mut Node), figures: &mut Figures) -> Result<(), String> {
    let (mut other, mut own) = (Vec::new(), 0);
    for number in 0..bans {
        let caller = format!("tier-{number}");
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
    tell("a ban by a tier", &mut other, figures);
    figures.add("a ban by a tier: let in by its own Envoy after it", f64::from(own), "requests", Target::AtMost(0.0));
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
