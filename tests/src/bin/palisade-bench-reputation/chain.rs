//! The processor time of a request and the memory of a VM, with the whole chain and all lists, beside a gateway without them.

use std::path::Path;
use std::time::Duration;

use palisade_tests::figures::{Figures, Target, quantile};
use palisade_tests::gateway::{Gateway, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};
use palisade_tests::process::{resident_mib, wait_for};
use recording::varied;
use serde_json::{Value, json};

use crate::lists::{CATALOGUE, Files, Random, networks, systems};

/// How many different requests there are, each from a caller of its own.
const DIFFERENT: u64 = 10_000;
const CONNECTIONS: usize = 16;
/// VMs of a gateway with one worker: the worker's, and the main thread's.
const VMS: f64 = 2.0;
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn measure(file: Option<&Path>, rounds: usize, seconds: f64, figures: &mut Figures) -> Result<(), String> {
    let lines = file.map(std::fs::read_to_string).transpose().map_err(|error| format!("the networks: {error}"))?;
    let files = Files::start().map_err(|error| error.to_string())?;
    let mut random = Random(1);
    for (id, entries, prefix) in CATALOGUE {
        files.put(id, networks(entries, prefix, &mut random));
    }
    files.put("systems", systems(lines.as_deref()));
    let mut gateways = [gateway(None), gateway(Some(&files))];
    let ranges = in_force(&gateways[1])?;
    figures.add("entries of the feeds and of the networks", ranges, "ranges", Target::None);
    let requests = requests();
    let mut times: [Vec<f64>; 2] = Default::default();
    // Round 0 warms up.
    for round in 0..=rounds {
        for (gateway, kept) in gateways.iter_mut().zip(&mut times) {
            let plan = Plan {
                to: gateway.address,
                connections: CONNECTIONS,
                requests: requests.clone(),
                pause: Duration::ZERO,
                cpu: None,
            };
            let before = gateway.envoy.worker_cpu_time();
            let report = Load::during(plan, Duration::from_secs_f64(seconds));
            let spent = gateway.envoy.worker_cpu_time().saturating_sub(before);
            let failures = gateway.envoy.vm_failures();
            if report.dropped > 0 || report.statuses.keys().any(|status| *status != 200) || !failures.is_empty() {
                let statuses = &report.statuses;
                return Err(format!("not every request was served: {statuses:?}, {:?} {failures:?}", report.reasons));
            }
            if round > 0 {
                #[allow(clippy::cast_precision_loss, reason = "counts of one run are small")]
                kept.push(spent.as_secs_f64() * 1e6 / report.answers().max(1) as f64);
            }
        }
    }
    // Neighbouring measurements share the machine's mood: the ratio is taken round by round.
    let mut ratios: Vec<f64> = times[1].iter().zip(&times[0]).map(|(with, without)| with / without).collect();
    let [without, with] = &mut times;
    figures.add("a request with the preset without reputation and bots", quantile(without, 0.5), "us", Target::None);
    figures.add("with 14 feeds, networks, decisions and bots", quantile(with, 0.5), "us", Target::None);
    let more = (quantile(&mut ratios, 0.5) - 1.0) * 100.0;
    figures.add("more processor time, of that of the preset (median)", more, "%", Target::AtMost(15.0));
    let mut memory = Vec::new();
    for gateway in &mut gateways {
        memory.push(resident_mib(gateway.envoy.process().id())?);
    }
    figures.add("memory of the gateway without", memory[0], "MiB", Target::None);
    figures.add("memory of the gateway with", memory[1], "MiB", Target::None);
    figures.add("more memory for each VM", (memory[1] - memory[0]) / VMS, "MiB", Target::AtMost(32.0));
    Ok(())
}

/// A gateway with one worker and the preset; with reputation and bots where there are lists.
fn gateway(files: Option<&Files>) -> Gateway {
    let mut gateway = Gateway::start_workers(1, &[], |control, backend| {
        control.configure(&json!({
            "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 },
            "security": { "ledger": { "enabled": false } },
        }));
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        if let Some(files) = files {
            for (id, ..) in CATALOGUE {
                let feed = json!({ "id": id, "url": files.url(id), "allow_private": true, "weight": 1 });
                control.create("threat-feeds", &feed);
            }
            control.create(
                "asn-databases",
                &json!({ "id": "networks", "url": files.url("systems"), "allow_private": true, "gzip": false }),
            );
            // Decisions on networks: gateways get the number of the network of each address.
            files.put("v1/decisions/stream", decisions());
            control.create(
                "svc-bouncers",
                &json!({
                    "id": "service", "lapi_url": format!("http://{}", files.address), "api_key": "key", "allow_private": true,
                    "scopes": ["ip", "range", "as"], "action": "monitor", "weight": 1,
                }),
            );
            control.create("bot-policies", &json!({ "id": "bots", "name": "Bots" }));
        }
        let on = files.is_some();
        let config = json!({ "threat_policy": "demo", "waf_config": "demo", "reputation": on, "bots": on });
        let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": config }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}

/// 10,000 decisions on addresses, and one on a network.
fn decisions() -> String {
    let mut random = Random(4);
    let decision = |scope: &str, value: String| json!({ "id": 1, "origin": "bench", "scenario": "bench", "type": "ban", "duration": "4h", "scope": scope, "value": value });
    let mut new: Vec<Value> = (0..10_000).map(|_| decision("Ip", random.address().to_string())).collect();
    new.push(decision("AS", "64496".to_owned()));
    json!({ "new": new, "deleted": null }).to_string()
}

/// Waits until all workers have all tables; the ranges in them.
fn in_force(gateway: &Gateway) -> Result<f64, String> {
    let console = palisade_tests::console::Console::login(&gateway.control);
    let wanted = ["ip-reputation.feeds", "ip-reputation.classes", "ip-reputation.networks", "ip-reputation.decisions"];
    let entries = wait_for("the lists", PATIENCE, || {
        let status = console.show("reputation/_status");
        let all = [&status["feeds"], &status["asn"]].into_iter().filter_map(Value::as_array).flatten();
        let entries: Option<Vec<f64>> = all.map(|one| one["snapshot"]["entries"].as_f64()).collect();
        entries.filter(|entries| entries.len() == CATALOGUE.len() + 1).map(|entries| entries.iter().sum())
    })?;
    wait_for("all tables on all workers", PATIENCE, || {
        let status = console.show("security/_status");
        let tables = status["tables"].as_array()?;
        let is_there = |name: &&str| {
            tables.iter().any(|table| {
                table["name"] == **name
                    && table["workers"]["behind"] == 0
                    && table["workers"]["current"].as_u64() >= Some(2)
            })
        };
        wanted.iter().all(is_there).then_some(())
    })?;
    Ok(entries)
}

/// Requests of a shop that all differ, each from a caller of its own behind the proxy.
fn requests() -> Vec<Vec<u8>> {
    let mut random = Random(2);
    let request = |number| {
        let (_, exchange) = varied::exchange(1, number);
        let wire = exchange.request.on_wire();
        let head = wire.windows(2).position(|end| end == b"\r\n").map_or(wire.len(), |at| at + 2);
        let (line, rest) = wire.split_at(head);
        let caller = format!("x-forwarded-for: {}\r\n", random.address());
        [line, caller.as_bytes(), rest].concat()
    };
    (0..DIFFERENT).map(request).collect()
}
