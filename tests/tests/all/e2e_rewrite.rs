//! What the host layer does when a filter replaces a body: the length that is announced is the length that is sent.

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::{Connection, Request};
use palisade_tests::parts;
use prost::Message;
use serde_json::json;
use snapshot::{Snapshot, Step, seal};

/// A gateway with a step that replaces bodies, and one behind it that waits.
fn gateway(backend: &Backend, behind: &str) -> Envoy {
    let step = |plugin: &str, config: &str| Step { plugin: plugin.into(), config: config.into(), ..Step::default() };
    let global = vec![step("rewrite", ""), step("wait", behind)];
    let snapshot = Snapshot { filter: "rewrite".into(), global, ..Snapshot::default() };
    let configuration = seal(&snapshot).encode_to_vec();
    Envoy::start(&Static::to(backend.address()).wasm("rewrite", &parts::filter("rewrite"), &configuration).render())
}

#[test]
fn a_replaced_body_has_its_own_length() {
    let backend = Backend::start();
    let envoy = gateway(&backend, "nothing");
    let to = envoy.listener(Static::LISTENER);
    // One connection for all: were a length wrong, the rest of one body would be read as the next request or response.
    let mut connection = Connection::open(to).unwrap();
    let long = "0123456789".repeat(3000);
    for (what, sent, length) in [
        ("shorter", format!("cut:{long}"), long.len()),
        ("longer", format!("grow:{long}"), 2 * long.len()),
        ("nothing left", "cut:".to_owned(), 0),
        ("as it was", long.clone(), long.len()),
    ] {
        for chunked in [false, true] {
            let mut request = Request::post("/echo", "text/plain", &sent);
            if chunked {
                request = request.chunked(1000);
            }
            let answer = connection.exchange(&request).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            assert_eq!(answer.json()["body_length"], length, "{what}, chunked {chunked}");
        }
        let reflected = json!({ "status": 200, "headers": { "content-type": "text/plain" }, "body": sent });
        let answer = connection.exchange(&Request::json("/reflect", &reflected)).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, length), "the response, {what}");
        assert_eq!(answer.header("content-length").map_or(length, |text| text.parse().unwrap()), length, "{what}");
    }
    assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
}

#[test]
fn a_replaced_body_survives_a_hold_and_a_step_that_wants_more_of_it() {
    let backend = Backend::start();
    for behind in ["hold at headers", "need", "read, then hold at body"] {
        let envoy = gateway(&backend, behind);
        let mut connection = Connection::open(envoy.listener(Static::LISTENER)).unwrap();
        let long = "0123456789".repeat(3000);
        for (sent, length) in [(format!("cut:{long}"), long.len()), (format!("grow:{long}"), 2 * long.len())] {
            for chunked in [false, true] {
                let request = Request::post("/echo", "text/plain", &sent);
                let request = if chunked { request.chunked(1000) } else { request };
                let answer = connection.exchange(&request).unwrap_or_else(|error| panic!("{behind}: {error}"));
                assert_eq!(answer.json()["body_length"], length, "{behind}, chunked {chunked}");
            }
        }
        assert!(envoy.vm_failures().is_empty(), "{:?}", envoy.vm_failures());
    }
}
