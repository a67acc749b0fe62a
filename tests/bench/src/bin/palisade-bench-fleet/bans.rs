//! How long a ban takes from one Envoy to every worker of another, which has another control plane on the same Redis.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use palisade_bench::site::{NAMES, protect};
use palisade_bench::workers::{
    Node, PATIENCE, WORKERS, ask, attack, each_worker, harmless, let_in_by_all, refused_by_all,
};
use palisade_tests::backend::Backend;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::fleet::bootstrap;
use palisade_tests::process::wait_for;
use palisade_tests::redis::Redis;

/// From the answer that banned until every worker of the other Envoy refuses, at the 99th percentile, in milliseconds.
const MOST_MILLIS: f64 = 1000.0;
/// Workers send events and bans in batches, this long apart.
const FLUSH_MILLIS: u64 = 200;

/// Two Envoys, each with a control plane of its own, which share a Redis.
struct Site {
    nodes: [Node; 2],
    controls: [ControlPlane; 2],
    _backend: Backend,
    _redis: Redis,
}

pub(crate) fn measure(bans: u32, figures: &mut Figures) -> Result<(), String> {
    println!("two Envoys with {WORKERS} workers each, two control planes on one Redis, {bans} bans each way");
    let mut site = Site::start()?;
    follow(&mut site, "a ban by a tier", bans, 0, figures)?;
    follow(&mut site, "a ban by a tier, the other way", bans, 1, figures)?;
    site.controls[0].kill();
    let start = Instant::now();
    // The Envoy whose control plane is gone turns to the other one; a ban of its own shows that its link is back.
    let status = ask(&mut site.nodes[0].workers[0], &attack("first-after-the-kill"))?;
    if status != 403 {
        return Err(format!("an attack is answered with {status} while the control plane is gone"));
    }
    let [_, west] = &mut site.nodes;
    let millis = refused_by_all(start, &mut [west], "first-after-the-kill")?;
    figures.add("kill -9 of a control plane: until a ban of its Envoy arrives", millis / 1000.0, "s", Target::None);
    follow(&mut site, "one control plane killed: a ban by a tier", bans, 0, figures)?;
    follow(&mut site, "one control plane killed: the other way", bans, 1, figures)?;
    for node in &site.nodes {
        let failures = node.envoy.vm_failures();
        if !failures.is_empty() {
            return Err(format!("a filter's VM failed: {failures:?}"));
        }
    }
    Ok(())
}

/// Has workers of one Envoy ban callers in turn, and follows each ban to every worker of the other.
fn follow(site: &mut Site, what: &str, bans: u32, from: usize, figures: &mut Figures) -> Result<(), String> {
    let [east, west] = &mut site.nodes;
    let (own, other) = if from == 0 { (east, west) } else { (west, east) };
    let mut millis = Vec::new();
    for number in 0..bans {
        let caller = format!("{}-{number}", what.replace([' ', ',', ':'], "-"));
        let_in_by_all(&mut [own, other], &caller)?;
        // Bans are to fall on all times between two batches alike.
        std::thread::sleep(Duration::from_millis(u64::from(number) * 73 % FLUSH_MILLIS));
        let status = ask(&mut own.workers[number as usize % WORKERS], &attack(&caller))?;
        let at = Instant::now();
        if status != 403 {
            return Err(format!("an attack is answered with {status}"));
        }
        millis.push(refused_by_all(at, &mut [other], &caller)?);
    }
    figures.add(&format!("{what}: every worker refuses, median"), quantile(&mut millis, 0.5), "ms", Target::None);
    let p99 = quantile(&mut millis, 0.99);
    figures.add(&format!("{what}: every worker refuses, 99th"), p99, "ms", Target::AtMost(MOST_MILLIS));
    figures.add(&format!("{what}: every worker refuses, longest"), quantile(&mut millis, 1.0), "ms", Target::None);
    Ok(())
}

impl Site {
    fn start() -> Result<Self, String> {
        let (backend, redis) = (Backend::start(), Redis::start());
        let first = ControlPlane::start_with(&["--store".to_owned(), redis.url()]);
        let ports = protect(&first, backend.address());
        let second = ControlPlane::start_beside(&first);
        let controls = [first, second];
        let xds = controls.each_ref().map(|control| control.xds().port());
        let east = node(NAMES[0], &[xds[0], xds[1]], ports[0])?;
        let west = node(NAMES[1], &[xds[1], xds[0]], ports[1])?;
        Ok(Self { nodes: [east, west], controls, _backend: backend, _redis: redis })
    }
}

fn node(name: &str, xds: &[u16], port: u16) -> Result<Node, String> {
    let envoy = Envoy::start_with(&bootstrap(name, name, xds), WORKERS, None)?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    wait_for(&format!("{name} answers"), PATIENCE, || {
        let answer = harmless("nobody").send(address).ok()?;
        (answer.status == 200).then_some(())
    })
    .map_err(|why| format!("{why}\n{}", envoy.log_tail(40)))?;
    let workers = each_worker(&envoy, address)?;
    Ok(Node { envoy, workers, address })
}
