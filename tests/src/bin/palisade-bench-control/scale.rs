//! Many entities: pages, changes until a real Envoy has acknowledged them, memory, and how building grows.

use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT};
use palisade_tests::http::{Connection, Request};
use palisade_tests::ports;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

use crate::{population, throughput};
use palisade_tests::figures::{Figures, Target, quantile};

/// A change to be acknowledged.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pages that are asked for.
const PAGES: usize = 200;

pub(crate) fn measure(
    entities: usize,
    routes: usize,
    changes: usize,
    time: Duration,
    figures: &mut Figures,
) -> Result<(), String> {
    growth(routes, figures)?;
    let backend = Backend::start();
    let mut control = ControlPlane::start();
    control.configure(&json!({"gateway": {"address": "127.0.0.1", "port": ports::free()}}));
    let start = Instant::now();
    population::create(&control, entities, routes, backend.address().port())?;
    figures.add(
        &format!("{entities} entities, {routes} routes created"),
        start.elapsed().as_secs_f64(),
        "s",
        Target::None,
    );
    pages(&control, figures)?;

    let ports = [(WRITTEN_XDS_PORT, control.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let envoy = Envoy::start_with(&shipped("xds.yaml", &ports), 1, None)?;
    let mut acknowledged = wait_for("Envoy has the configuration", PATIENCE, || acknowledged(&control, &[]))?;
    let (mut answered, mut taken) = (Vec::new(), Vec::new());
    for number in 0..changes {
        let path = ControlPlane::path("threat-policies", "policy-7");
        let tiers = json!({"tiers": [{"min_score": 50 + number % 9, "action": "deny", "status": 403}]});
        let start = Instant::now();
        let answer = control.call("PATCH", &path, Some(&tiers));
        answered.push(start.elapsed().as_secs_f64() * 1000.0);
        if answer.status != 200 {
            return Err(format!("PATCH {path}: {} {}", answer.status, answer.text()));
        }
        acknowledged =
            wait_for("Envoy has acknowledged a change", PATIENCE, || self::acknowledged(&control, &acknowledged))?;
        taken.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    figures.add("one PATCH answered, median", quantile(&mut answered, 0.5), "ms", Target::None);
    figures.add(
        "one PATCH until Envoy acknowledged it, median",
        quantile(&mut taken, 0.5),
        "ms",
        Target::AtMost(500.0),
    );
    figures.add("one PATCH until Envoy acknowledged it, 99th", quantile(&mut taken, 0.99), "ms", Target::AtMost(500.0));
    throughput::of("many entities: ", &control, "route-3", "routes", time, figures)?;
    let (now, most) = memory(control.process().id())?;
    figures.add("control plane's memory now", now, "MiB", Target::AtMost(300.0));
    figures.add("control plane's memory, the most", most, "MiB", Target::AtMost(300.0));
    drop(envoy);
    Ok(())
}

/// How the time of a change grows with the routes.
fn growth(routes: usize, figures: &mut Figures) -> Result<(), String> {
    let (mut times, mut builds) = (Vec::new(), Vec::new());
    for part in [4, 2, 1] {
        let control = ControlPlane::start();
        population::create(&control, 0, routes / part, 9)?;
        let mut answered: Vec<f64> = (0..9)
            .map(|number| {
                let change = json!({"tiers": [{"min_score": 50 + number, "action": "deny", "status": 403}]});
                let start = Instant::now();
                let answer = control.call("PATCH", &ControlPlane::path("threat-policies", "policy-7"), Some(&change));
                assert_eq!(answer.status, 200, "{}", answer.text());
                start.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        let median = quantile(&mut answered, 0.5);
        figures.add(&format!("one PATCH with {} routes", routes / part), median, "ms", Target::None);
        let built = built(&control)?;
        figures.add(&format!("snapshots built with {} routes, mean", routes / part), built, "ms", Target::None);
        builds.push(built);
        times.push(median);
    }
    figures.add("a PATCH with twice the routes takes", times[2] / times[1].max(1e-9), "times", Target::AtMost(2.4));
    let more = builds[2] / builds[1].max(1e-9);
    figures.add("a build with twice the routes takes", more, "times", Target::AtMost(2.4));
    Ok(())
}

/// How long snapshots took to be compiled so far, in milliseconds on average; the first of them compiles the rules as well.
fn built(control: &ControlPlane) -> Result<f64, String> {
    let read = || {
        let text = control.call("GET", "/metrics", None).text();
        let value = |name: &str| -> Option<f64> {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}{{purpose=\"publish\"}}")))?;
            line.rsplit_once(' ')?.1.parse().ok()
        };
        Some((value("palisade_compile_seconds_sum")?, value("palisade_compile_seconds_count")?))
    };
    let before = read().ok_or("nothing was published yet")?;
    for number in 0..20 {
        let change = json!({"tiers": [{"min_score": 70 + number, "action": "deny", "status": 403}]});
        let _ = control.call("PATCH", &ControlPlane::path("threat-policies", "policy-7"), Some(&change));
        thread::sleep(Duration::from_millis(100));
    }
    let after = read().ok_or("nothing was published yet")?;
    Ok((after.0 - before.0) / (after.1 - before.1).max(1.0) * 1000.0)
}

fn pages(control: &ControlPlane, figures: &mut Figures) -> Result<(), String> {
    for (what, path) in [
        ("a page of 50 routes", "routes?pageSize=50&page=7"),
        ("a page of 50 feeds, sorted", "threat-feeds?pageSize=50&page=11&sorted=name:desc"),
        ("a page of 50 feeds, filtered", "threat-feeds?pageSize=50&filter.name=threat-feeds%20number%2017"),
    ] {
        let mut connection = Connection::open(control.rest()).map_err(|error| error.to_string())?;
        let request = Request::get(format!("{ENTITIES}/{path}")).header("authorization", control.authorization());
        let mut times = Vec::new();
        for _ in 0..PAGES {
            let start = Instant::now();
            let answer = connection.exchange(&request).map_err(|error| format!("{path}: {error}"))?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            if answer.status != 200 {
                return Err(format!("GET {path}: {} {}", answer.status, answer.text()));
            }
        }
        figures.add(&format!("{what}, 99th"), quantile(&mut times, 0.99), "ms", Target::AtMost(20.0));
    }
    Ok(())
}

/// The versions of every type that the node has acknowledged, once there are any and none is that of `before`'s snapshots.
fn acknowledged(control: &ControlPlane, before: &[String]) -> Option<Vec<String>> {
    thread::sleep(Duration::from_millis(2));
    let nodes = control.call("GET", "/api/extensions/svc/waf/api/_nodes", None).json();
    let types = nodes["nodes"][0]["types"].as_array()?.clone();
    let version = |one: &Value| one["acked_version"].as_str().unwrap_or_default().to_owned();
    let extension =
        types.iter().find(|one| one["type_url"].as_str().is_some_and(|url| url.contains("TypedExtension")))?;
    let all: Vec<String> = types.iter().map(version).collect();
    let settled = types.iter().all(|one| one["sent_version"] == one["acked_version"] && one["acked_version"] != "");
    (settled && types.len() == 4 && !before.contains(&version(extension))).then_some(all)
}

/// Resident memory now and at its most, in MiB.
pub(crate) fn memory(process: u32) -> Result<(f64, f64), String> {
    let file = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let field = |name: &str| -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let mib = |name| field(name).map(|kib| kib / 1024.0).ok_or(format!("{file} has no {name}"));
    Ok((mib("VmRSS:")?, mib("VmHWM:")?))
}
