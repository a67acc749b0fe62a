//! The shipped .wasm files by themselves, in a real Envoy without a control plane.

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::Envoy;
use palisade_tests::h2;
use palisade_tests::http::Request;
use palisade_tests::parts;
use prost::Message;
use snapshot::{Snapshot, seal};

const FILTERS: [&str; 4] = ["threat-gate", "waf", "threat-response", "preset"];

fn empty(filter: &str) -> Vec<u8> {
    let snapshot = Snapshot { filter: filter.into(), ..Snapshot::default() };
    seal(&snapshot).encode_to_vec()
}

#[test]
fn filters_with_nothing_to_do_let_everything_pass() {
    let backend = Backend::start();
    let bootstrap = FILTERS.iter().fold(Static::to(backend.address()), |gateway, filter| {
        gateway.wasm(filter, &parts::filter(filter), &empty(filter))
    });
    let mut envoy = Envoy::start(&bootstrap.render());
    let to = envoy.listener(Static::LISTENER);
    let bytes: Vec<u8> = (0x80..=0xff).collect();
    let many = (0..1500).fold(Request::get("/"), |request, index| request.header(format!("x-odd-{index}"), "value"));
    for (what, request, status) in [
        ("a page", Request::get("/?q=1'+OR+'1'='1"), 200),
        ("a body", Request::post("/echo", "text/plain", "hello"), 200),
        ("bytes", Request::get("/").header("x-odd", &bytes), 200),
        ("a long path", Request::get(format!("/{}", "a".repeat(60 << 10))), 200),
        ("an unusual method", Request::new("PROPFIND", "/"), 200),
    ] {
        let answer = request.send(to).unwrap_or_else(|error| panic!("{what}: {error}\n{}", envoy.log_tail(40)));
        assert_eq!(answer.status, status, "{what}: {}\n{}", answer.text(), envoy.log_tail(40));
    }
    // More headers than the host hands to a filter: whatever it answers, the filter lives.
    let answer = many.send(to).unwrap();
    println!("1500 headers: {}", answer.status);
    let body = "0123456789".repeat(10_000);
    let seen = Request::post("/echo", "text/plain", &body).chunked(777).send(to).unwrap().json();
    assert_eq!(seen["body_length"], body.len());
    let answers = h2::exchange(to, &[h2::Request::get("/"), h2::Request::post("/echo", "text/plain", "hi")]).unwrap();
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.status == 200)), "{answers:?}");
    let statuses = envoy.every_worker(|| Ok(Request::get("/").send(to)?.status)).unwrap();
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let failures = envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    assert!(envoy.lives());
}

#[test]
fn a_snapshot_that_cannot_be_used_is_refused_with_the_reason() {
    let backend = Backend::start();
    let mut damaged = seal(&Snapshot::default());
    damaged.body = b"not what was sealed".to_vec();
    for (configuration, reason) in [
        (b"no snapshot at all".to_vec(), "this is no snapshot"),
        (damaged.encode_to_vec(), "damaged"),
        (empty("waf"), "waf"),
    ] {
        let gateway = Static::to(backend.address()).wasm("preset", &parts::filter("preset"), &configuration);
        let why = Envoy::start_with(&gateway.render(), 1, None).unwrap_err();
        assert!(why.contains(reason), "no {reason:?} in:\n{why}");
    }
}
