//! The kit itself, with a bare Envoy: what it reports must be true before anything is built on it.

use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::{self, Envoy};
use palisade_tests::h2;
use palisade_tests::http::Request;
use palisade_tests::load::{Load, Plan};
use palisade_tests::process::wait_for;

#[test]
fn a_bare_envoy_serves_and_is_read() {
    let backend = Backend::start();
    let mut envoy = Envoy::start(&Static::to(backend.address()).access_log().render());
    let to = envoy.listener(Static::LISTENER);

    let seen = Request::post("/echo", "text/plain", "hello")
        .chunked(3)
        .send(to)
        .unwrap()
        .json();
    assert_eq!(seen["body_length"], 5);

    let answers = h2::exchange(
        to,
        &[
            h2::Request::get("/status/201"),
            h2::Request::post("/echo", "text/plain", "hi"),
        ],
    )
    .unwrap();
    assert_eq!(answers[0].as_ref().unwrap().status, 201);
    assert_eq!(answers[1].as_ref().unwrap().json()["body_length"], 2);

    let report = Load::during(
        Plan {
            to,
            connections: 8,
            requests: vec![Request::get("/").encode()],
            pause: Duration::ZERO,
            cpu: None,
        },
        Duration::from_millis(500),
    );
    assert_eq!(report.dropped, 0, "{:?}", report.reasons);
    assert_eq!(report.statuses.keys().collect::<Vec<_>>(), [&200]);

    let workers = envoy.worker_connections();
    assert_eq!(workers.len(), 2, "{workers:?}");
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
    wait_for("the access log", Duration::from_secs(10), || {
        envoy.access_log().contains("POST /echo").then_some(())
    })
    .unwrap();
    assert!(envoy.lives());
    envoy.process().terminate(Duration::from_secs(20)).unwrap();
}

#[test]
fn a_wrong_configuration_is_refused_with_envoys_own_words() {
    let why = envoy::validate(
        "static_resources: {listeners: [{name: broken}]}",
        std::path::Path::new("/"),
    )
    .unwrap_err();
    assert!(why.contains("ddress"), "{why}");
    let why = Envoy::start_with("no_such_field: 1", 1, None).unwrap_err();
    assert!(why.contains("no_such_field"), "{why}");
}
