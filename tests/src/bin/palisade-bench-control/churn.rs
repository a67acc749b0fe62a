//! Twenty changes a second while requests go through Envoy.

use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};
use palisade_tests::process::wait_for;
use serde_json::json;

use palisade_tests::figures::{Figures, Target};

/// Between two changes.
const PERIOD: Duration = Duration::from_millis(50);
/// The last one to be in force.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measure(time: Duration, figures: &mut Figures) -> Result<(), String> {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let load = Load::start(Plan {
        to: gateway.address,
        connections: 8,
        requests: vec![Request::get("/catalogue?q=garden+chairs&page=2").encode()],
        pause: Duration::from_millis(2),
        cpu: None,
    });
    let start = Instant::now();
    let mut changes = 0_u32;
    let rule =
        |status: u32| json!([format!("SecRule ARGS:probe \"@streq 1\" \"id:10001,phase:1,deny,status:{status}\"")]);
    let mut status = 0;
    while start.elapsed() < time {
        // Of the rules as well, so that a new program is compiled, sent and loaded.
        status = 400 + changes % 90;
        let change = json!({"rules": ["@import_preset crs"], "description": changes.to_string()});
        let answer = match changes % 2 {
            0 => gateway.control.call("PATCH", &ControlPlane::path("waf-configs", "demo"), Some(&change)),
            _ => {
                let tier = json!({"tiers": [{"min_score": 40, "action": "deny", "status": status}]});
                gateway.control.call("PATCH", &ControlPlane::path("threat-policies", "demo"), Some(&tier))
            }
        };
        if answer.status != 200 {
            return Err(format!("a change was refused: {} {}", answer.status, answer.text()));
        }
        changes += 1;
        thread::sleep((PERIOD * changes).saturating_sub(start.elapsed()));
    }
    let per_second = f64::from(changes) / start.elapsed().as_secs_f64();
    // One more, which must be the one that stays.
    let last = json!({"rules": rule(status)});
    let _ = gateway.control.call("PATCH", &ControlPlane::path("waf-configs", "demo"), Some(&last));
    let settled = gateway.until(&Request::get("/?probe=1"), u16::try_from(status).unwrap_or_default(), PATIENCE);
    let report = load.stop();
    let bad: u64 = report.statuses.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count).sum();
    wait_for("every version is acknowledged", PATIENCE, || {
        let nodes = gateway.control.call("GET", "/api/extensions/svc/waf/api/_nodes", None).json();
        let types = nodes["nodes"][0]["types"].as_array()?.clone();
        types.iter().all(|one| one["sent_version"] == one["acked_version"] && one["nack"].is_null()).then_some(())
    })?;
    let failures = gateway.envoy.vm_failures();
    if !failures.is_empty() {
        return Err(format!("VMs failed: {failures:?}"));
    }
    figures.add("changes under load", per_second, "per s", Target::AtLeast(19.0));
    #[allow(clippy::cast_precision_loss, reason = "counts of a minute")]
    {
        figures.add("requests meanwhile", report.answers() as f64, "", Target::None);
        figures.add(
            "requests dropped or not answered as they should",
            (report.dropped + bad) as f64,
            "",
            Target::AtMost(0.0),
        );
    }
    figures.add("99th of their times", f64::from(report.quantile(0.99)) / 1000.0, "ms", Target::None);
    figures.add("the last change in force after", settled.as_secs_f64() * 1000.0, "ms", Target::None);
    Ok(())
}
