//! The kit itself, with a bare Envoy: what it reports must be true before anything is built on it.

use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::{self, Envoy};
use palisade_tests::gateway::threat_policy;
use palisade_tests::h2;
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};
use palisade_tests::parts;
use palisade_tests::process::wait_for;
use serde_json::json;

#[test]
fn a_bare_envoy_serves_and_is_read() {
    let backend = Backend::start();
    let mut envoy = Envoy::start(&Static::to(backend.address()).access_log().render());
    let to = envoy.listener(Static::LISTENER);

    let seen = Request::post("/echo", "text/plain", "hello").chunked(3).send(to).unwrap().json();
    assert_eq!(seen["body_length"], 5);

    let answers =
        h2::exchange(to, &[h2::Request::get("/status/201"), h2::Request::post("/echo", "text/plain", "hi")]).unwrap();
    assert_eq!(answers[0].as_ref().unwrap().status, 201);
    assert_eq!(answers[1].as_ref().unwrap().json()["body_length"], 2);

    let report = Load::during(
        Plan { to, connections: 8, requests: vec![Request::get("/").encode()], pause: Duration::ZERO, cpu: None },
        Duration::from_millis(500),
    );
    assert_eq!(report.dropped, 0, "{:?}", report.reasons);
    assert_eq!(report.statuses.keys().collect::<Vec<_>>(), [&200]);

    let workers = envoy.worker_connections();
    assert_eq!(workers.len(), 2, "{workers:?}");
    let asked = envoy.every_worker(|| Ok(Request::get("/").send(to)?.status)).unwrap();
    assert!(asked.len() >= 4 && asked.iter().all(|status| *status == 200), "{asked:?}");
    // Nothing reaches a worker from here.
    assert!(envoy.every_worker(|| Ok(())).is_err());
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
    wait_for("the access log", Duration::from_secs(10), || envoy.access_log().contains("POST /echo").then_some(()))
        .unwrap();
    assert!(envoy.lives());
    envoy.process().terminate(Duration::from_secs(20)).unwrap();
}

#[test]
fn a_wrong_configuration_is_refused_with_envoys_own_words() {
    let why =
        envoy::validate("static_resources: {listeners: [{name: broken}]}", std::path::Path::new("/")).unwrap_err();
    assert!(why.contains("ddress"), "{why}");
    let why = Envoy::start_with("no_such_field: 1", 1, None).unwrap_err();
    assert!(why.contains("no_such_field"), "{why}");
}

#[test]
fn an_empty_filter_changes_nothing_and_reports_no_failure() {
    let backend = Backend::start();
    let bootstrap = Static::to(backend.address()).wasm("noop", &parts::filter("noop"), b"");
    let mut envoy = Envoy::start(&bootstrap.render());
    let to = envoy.listener(Static::LISTENER);
    for _ in 0..20 {
        assert_eq!(Request::get("/").send(to).unwrap().status, 200);
        let seen = Request::post("/echo", "text/plain", "hello").send(to).unwrap().json();
        assert_eq!(seen["body_length"], 5);
    }
    assert!(envoy.stats("wasm.*active").values().any(|vms| *vms > 0), "no VM runs");
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
    assert!(envoy.lives());
}

#[test]
fn a_vm_that_fails_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("trap.wasm");
    std::fs::write(&module, trap_module()).unwrap();
    let backend = Backend::start();
    let envoy = Envoy::start(&Static::to(backend.address()).wasm("trap", &module, b"").render());
    let to = envoy.listener(Static::LISTENER);
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
    assert_eq!(Request::get("/").send(to).unwrap().status, 503);
    wait_for("the failure is reported", Duration::from_secs(10), || (!envoy.vm_failures().is_empty()).then_some(()))
        .unwrap();
}

/// A filter whose only act is to trap at a request's headers, in the binary format of WebAssembly.
fn trap_module() -> Vec<u8> {
    const I32: u8 = 0x7f;
    // The functions that a host wants: name, how many parameters, how many results, body.
    let functions: [(&str, usize, usize, &[u8]); 7] = [
        ("proxy_abi_version_0_2_1", 0, 0, &[]),
        ("proxy_on_memory_allocate", 1, 1, &[0x41, 0x80, 0x08]),
        ("proxy_on_vm_start", 2, 1, &[0x41, 0x01]),
        ("proxy_on_configure", 2, 1, &[0x41, 0x01]),
        ("proxy_on_context_create", 2, 0, &[]),
        ("proxy_on_request_headers", 3, 1, &[0x00]),
        ("_initialize", 0, 0, &[]),
    ];
    // Lengths are LEB128.
    let number = |mut value: usize| {
        let mut out = Vec::new();
        loop {
            let low = u8::try_from(value & 0x7f).unwrap();
            value >>= 7;
            if value == 0 {
                out.push(low);
                return out;
            }
            out.push(low | 0x80);
        }
    };
    let sized = |bytes: &[u8]| [number(bytes.len()), bytes.to_vec()].concat();
    let vector = |items: Vec<Vec<u8>>| [number(items.len()), items.concat()].concat();
    let section = |id: u8, content: Vec<u8>| [vec![id], sized(&content)].concat();
    let types = functions
        .map(|(_, parameters, results, _)| {
            let list = |count| vector(vec![vec![I32]; count]);
            [vec![0x60], list(parameters), list(results)].concat()
        })
        .to_vec();
    let mut exports: Vec<Vec<u8>> = functions
        .iter()
        .enumerate()
        .map(|(index, (name, ..))| [sized(name.as_bytes()), vec![0x00], number(index)].concat())
        .collect();
    exports.push([sized(b"memory"), vec![0x02, 0x00]].concat());
    let bodies = functions.map(|(.., body)| sized(&[&[0x00], body, &[0x0b]].concat())).to_vec();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vector(types)),
        section(3, vector((0..functions.len()).map(number).collect())),
        section(5, vector(vec![vec![0x00, 0x01]])),
        section(7, vector(exports)),
        section(10, vector(bodies)),
    ]
    .concat()
}

#[test]
fn a_control_plane_is_killed_and_comes_back() {
    let mut control = ControlPlane::start();
    let (rest, xds) = (control.rest(), control.xds());
    let stored = control.create("threat-policies", &threat_policy("kept", json!({})));
    assert_eq!(stored["dry_run"], false);
    control.patch("threat-policies", "kept", &json!({"dry_run": true}));
    control.kill();
    assert!(Request::get("/").send(rest).is_err(), "it was killed");
    control.restart();
    assert_eq!((control.rest(), control.xds()), (rest, xds));
    let again = control.call("GET", &ControlPlane::path("threat-policies", "kept"), None);
    assert_eq!(again.json()["dry_run"], true);
    assert_eq!(Request::get(ControlPlane::path("routes", "")).send(rest).unwrap().status, 401);
    control.process().terminate(Duration::from_secs(20)).unwrap();
}
