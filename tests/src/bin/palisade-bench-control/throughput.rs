//! Reads and durable writes a second, by keep-alive connections.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::http::{Connection, Request};
use palisade_tests::load::{Load, Plan};
use serde_json::json;

use crate::population;
use palisade_tests::figures::{Figures, Target};

const CONNECTIONS: usize = 16;

pub(crate) fn measure(time: Duration, figures: &mut Figures) -> Result<(), String> {
    let control = ControlPlane::start();
    population::create(&control, 200, 20, 9)?;
    of("200 entities: ", &control, "route-3", "routes", time, figures)
}

/// What a control plane does as it is.
pub(crate) fn of(
    prefix: &str,
    control: &ControlPlane,
    id: &str,
    collection: &str,
    time: Duration,
    figures: &mut Figures,
) -> Result<(), String> {
    let get = |path: String| Request::get(path).header("authorization", control.authorization()).encode();
    let one = get(format!("{ENTITIES}/{collection}/{id}"));
    let page = get(format!("{ENTITIES}/{collection}?pageSize=20"));
    for (what, request, target) in [("reads of one entity", one, 2000.0), ("pages of 20", page, 2000.0)] {
        let plan = Plan {
            to: control.rest(),
            connections: CONNECTIONS,
            requests: vec![request],
            pause: Duration::ZERO,
            cpu: None,
        };
        let report = Load::during(plan, time);
        if report.dropped > 0 || report.statuses.keys().any(|status| *status != 200) {
            return Err(format!("{prefix}{what}: {:?}, {} dropped", report.statuses, report.dropped));
        }
        let target = if what.starts_with("reads") { Target::AtLeast(target) } else { Target::None };
        figures.add(&format!("{prefix}{what}"), report.per_second(), "per s", target);
    }
    let writes = writes(control, time)?;
    figures.add(&format!("{prefix}durable writes"), writes, "per s", Target::AtLeast(300.0));
    Ok(())
}

/// Writers that each change an entity of their own, again and again.
fn writes(control: &ControlPlane, time: Duration) -> Result<f64, String> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    let failures: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..CONNECTIONS)
            .map(|writer| {
                let (stop, done) = (&stop, &done);
                scope.spawn(move || -> Result<(), String> {
                    let mut connection = Connection::open(control.rest()).map_err(|error| error.to_string())?;
                    for round in 0_u64.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let change = json!({"description": format!("round {round}")});
                        let path = ControlPlane::path("routes", &format!("route-{writer}"));
                        let request = Request::new("PATCH", &path)
                            .header("authorization", control.authorization())
                            .header("content-type", "application/json")
                            .body(change.to_string());
                        let answer = connection.exchange(&request).map_err(|error| error.to_string())?;
                        if answer.status != 200 {
                            return Err(format!("PATCH {path}: {} {}", answer.status, answer.text()));
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().filter_map(|writer| writer.join().expect("a writer does not panic").err()).collect()
    });
    match failures.first() {
        Some(why) => Err(why.clone()),
        #[allow(clippy::cast_precision_loss, reason = "a count of some seconds")]
        None => Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()),
    }
}
