//! Without a control plane: it dies while Envoy serves, or was never there and a file holds the snapshot.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::envoy::{self, Envoy};
use palisade_tests::gateway::{
    Gateway, WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config,
};
use palisade_tests::http::{Request, percent};
use palisade_tests::load::{Load, Plan};
use palisade_tests::parts;
use palisade_tests::ports;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const SQL: &str = "1' UNION SELECT password FROM users-- -";
const PATIENCE: Duration = Duration::from_secs(30);
/// The ports and the file that `envoy/standalone.yaml` has.
const WRITTEN_PORT: u16 = 10000;
const WRITTEN_BACKEND_PORT: u16 = 18081;
const WRITTEN_FILE: &str = "target/preset.json";

#[test]
fn envoy_outlives_the_control_plane() {
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let probe = Request::get("/?probe=1");
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    assert_eq!(gateway.status(&attack), 403);

    assert_eq!(losses(&gateway), (0, 0), "the gateway has its control plane");
    // A worker that has not served yet opens its link a little later than the first one.
    let linked =
        wait_for("a link of each worker", PATIENCE, || Some(links(&gateway)).filter(|&links| links > 1)).unwrap();
    gateway.control.kill();
    for _ in 0..20 {
        assert_eq!(gateway.status(&Request::get("/")), 200);
        assert_eq!(gateway.status(&attack), 403);
    }
    assert_eq!(gateway.status(&probe), 200);
    wait_for("the loss in the statistics", PATIENCE, || (losses(&gateway) == (1, 1)).then_some(())).unwrap();
    // What happens now waits, over any number of tries to connect.
    let lonely = Request::get(format!("/lonely?q={}", percent(SQL)));
    assert_eq!(gateway.status(&lonely), 403);
    std::thread::sleep(Duration::from_secs(5));
    let told = gateway.envoy.log().matches("no link to the control plane").count();
    assert_eq!(told, 1, "one line for all workers");

    // It comes back with what it had acknowledged, and is followed again.
    gateway.control.restart();
    let event = gateway.control.event("the loss", |event| event["outage"].is_object());
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("dependency"), &json!("observed")));
    assert!(event["outage"]["since"].as_str() < event["outage"]["until"].as_str(), "{event}");
    assert_eq!(event["outage"]["dropped"], 0, "{event}");
    assert!(event["route"]["node"].as_str().is_some_and(|node| !node.is_empty()), "{event}");
    let told = |event: &Value| event["http"]["path"] == "/lonely" && event["event"]["outcome"] == "blocked";
    let _waited = gateway.control.event("the attack of the outage", told);
    wait_for("the end of the loss", PATIENCE, || (losses(&gateway) == (0, 1)).then_some(())).unwrap();
    assert_eq!(gateway.status(&attack), 403);
    let rule = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,deny,status:403,msg:'probe'""#;
    gateway.control.patch("waf-configs", "demo", &json!({"rules": ["@import_preset crs", rule]}));
    let took = gateway.until(&probe, 403, PATIENCE);
    println!("the change of the new control plane was in force after {took:?}");
    // A second loss, with more events than wait: it is an outage of its own, and says how many were dropped.
    gateway.control.kill();
    wait_for("the second loss", PATIENCE, || (losses(&gateway) == (1, 2)).then_some(())).unwrap();
    let load = Load::start(Plan {
        to: gateway.address,
        connections: 4,
        requests: vec![attack.encode()],
        pause: Duration::ZERO,
        cpu: None,
    });
    let dropped = || gateway.envoy.stats(r"palisade\.events_dropped$").values().sum::<u64>();
    let full = wait_for("dropped events", 4 * PATIENCE, || (dropped() > 100).then_some(()));
    let _report = load.stop();
    full.unwrap();
    gateway.control.restart();
    let loss = |event: &Value| event["outage"]["dropped"].as_u64().is_some_and(|dropped| dropped > 0);
    let found = wait_for("the second loss", 2 * PATIENCE, || gateway.control.events().into_iter().find(loss));
    let event = found.unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    assert!(event["outage"]["dropped"].as_u64() <= Some(dropped()), "{event}");
    // Every worker is back, and none of them tells of the same loss.
    wait_for("all workers", 2 * PATIENCE, || (links(&gateway) >= linked).then_some(())).unwrap();
    let outages: Vec<Value> =
        gateway.control.events().into_iter().filter(|event| event["outage"].is_object()).collect();
    assert_eq!(outages.len(), 2, "{outages:?}");
    assert_eq!(losses(&gateway), (0, 2));
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    assert!(gateway.envoy.lives());
}

/// The links that the control plane has.
fn links(gateway: &Gateway) -> u64 {
    let metrics = gateway.control.call("GET", "/metrics", None).text();
    let found = metrics.lines().find_map(|line| line.strip_prefix("palisade_link_streams "));
    found.and_then(|streams| streams.parse().ok()).unwrap_or_default()
}

/// Whether the gateway is without its control plane, and how many times it was.
fn losses(gateway: &Gateway) -> (u64, u64) {
    let sum = |name: &str| gateway.envoy.stats(&format!(r"palisade\.{name}$")).values().sum();
    (sum("control_plane_lost"), sum("control_plane_losses"))
}

#[test]
fn a_file_holds_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let entities = folder.path().join("entities");
    copy(&parts::root().join("envoy/entities"), &entities);
    let file = folder.path().join("preset.json");
    compile(&entities, &file).unwrap();

    let backend = Backend::start();
    let port = ports::free();
    let bootstrap = shipped(
        "standalone.yaml",
        &[(WRITTEN_PORT, port), (WRITTEN_BACKEND_PORT, backend.address().port()), (WRITTEN_ADMIN_PORT, 0)],
    );
    assert!(bootstrap.contains(WRITTEN_FILE), "standalone.yaml names no {WRITTEN_FILE}");
    let bootstrap = bootstrap.replace(WRITTEN_FILE, file.to_str().unwrap()).replace("/dev/stdout", "ACCESS_LOG");
    let envoy = Envoy::start(&bootstrap);
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let probe = Request::get("/?probe=1");
    let status = |request: &Request| request.send(to).map_or(0, |answer| answer.status);
    wait_for("the gateway serves", PATIENCE, || (status(&Request::get("/")) == 200).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", envoy.log_tail(40)));
    assert_eq!(status(&attack), 403, "{}", envoy.log_tail(40));
    assert_eq!(status(&probe), 200);
    wait_for("the event in the access log", PATIENCE, || envoy.access_log().contains("SvcSecurityEvent").then_some(()))
        .unwrap();

    // A body that is longer than what is inspected is refused, however the network cuts it.
    let large = vec![b'a'; 5 << 20];
    for round in 0..40 {
        let mut request = Request::post("/echo", "application/x-www-form-urlencoded", &large);
        if round % 2 == 1 {
            request = request.chunked(64 << 10);
        }
        assert_eq!(status(&request), 413, "round {round}\n{}", envoy.log_tail(40));
    }

    // Entities that do not compile leave the file as it was.
    let waf = entities.join("waf-configs/demo.yaml");
    let good = std::fs::read_to_string(&waf).unwrap();
    let before = std::fs::read(&file).unwrap();
    std::fs::write(&waf, format!("{good}  - 'SecRule ARGS \"@rx (\" \"id:10002,phase:1,deny\"'\n")).unwrap();
    let why = compile(&entities, &file).unwrap_err();
    assert!(why.contains("10002") && why.contains('^'), "{why}");
    assert_eq!(std::fs::read(&file).unwrap(), before);

    // New rules are taken up from the file.
    std::fs::write(&waf, format!("{good}  - 'SecRule ARGS:probe \"@streq 1\" \"id:10001,phase:1,deny,status:403\"'\n"))
        .unwrap();
    compile(&entities, &file).unwrap();
    wait_for("the new rules are in force", PATIENCE, || (status(&probe) == 403).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", envoy.log_tail(40)));
    assert_eq!(status(&Request::get("/")), 200);
    let failures = envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn envoy_accepts_the_shipped_configurations_as_they_are() {
    envoy::validate(&shipped("xds.yaml", &[]), &parts::root()).unwrap();
    // The file that `palisade compile` writes, here without a filter in it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(WRITTEN_FILE);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, r#"{"version_info": "0", "resources": []}"#).unwrap();
    envoy::validate(&shipped("standalone.yaml", &[]), folder.path()).unwrap();
    // What the tests replace is there.
    let _ = shipped("xds.yaml", &[(WRITTEN_XDS_PORT, 1), (WRITTEN_ADMIN_PORT, 1)]);
}

fn compile(entities: &Path, out: &Path) -> Result<(), String> {
    let output = Command::new(parts::palisade())
        .arg("compile")
        .arg("--entities")
        .arg(entities)
        .arg("--filters-dir")
        .arg(parts::filters())
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", parts::palisade().display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
