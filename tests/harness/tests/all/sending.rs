//! Bodies that go with questions, in a real gateway: large ones, many at once, clients that leave, links and configurations that end
//! meanwhile; and messages that change where a gateway cannot hold their headers.

use std::net::Ipv4Addr;
use std::thread;

use palisade_tests::bootstrap::wasm_filter;
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

use crate::asking::{Gateway, PATIENCE, configuration, module, refuse, resource, upload, without_holding};

/// 12.5 MiB, the most that a step asks for, and what the gateway buffers.
const LARGEST: usize = 12_800 << 10;
const BUFFERS: usize = 16 << 20;

fn scan(script: &str) -> Value {
    let on = json!({ "infected": refuse(403), "unavailable": refuse(503), "overrun": refuse(503) });
    json!({ "at": "request-body", "ask": script, "send": true, "limit": LARGEST, "millis": 10_000, "on": on })
}

fn now() -> Value {
    json!({ "at": "access", "ask": "say no", "on": { "no": refuse(403), "unavailable": refuse(503) } })
}

fn gateway(steps: &[(&str, Value)]) -> Gateway {
    Gateway::with_buffers(wasm_filter("probe", &module(), &configuration(steps)), BUFFERS)
}

/// Waits until something is so.
fn until(what: &str, gateway: &Gateway, is: impl Fn() -> bool) {
    wait_for(what, PATIENCE, || is().then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
}

#[test]
fn the_largest_body_is_scanned_as_a_whole_beside_others() {
    let gateway = gateway(&[("scan", scan("scan")), ("early", scan("scan 65536")), ("now", now())]);
    let to = gateway.to;
    let mut bad = vec![b'x'; LARGEST];
    bad[LARGEST - 5..].copy_from_slice(b"EICAR");
    let bad = Request::post("/scan", "application/octet-stream", bad);
    let good = upload("/scan", LARGEST);
    let all: Vec<_> = [good.clone(), bad.clone(), good, bad]
        .into_iter()
        .map(|request| thread::spawn(move || request.send(to).map(|answer| answer.status).unwrap_or_default()))
        .collect();
    gateway.questions(4);
    // A short question does not wait for the bodies.
    assert_eq!(gateway.status(&Request::get("/now")), 403);
    assert_eq!(all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>(), [200, 403, 200, 403]);
    let chunks = 4 * LARGEST.div_ceil(snapshot::ASK_CHUNK) as u64;
    assert_eq!((gateway.control.seen().chunks(), gateway.unanswered()), (chunks, 0));
    // An answer that comes early ends the sending: what was granted before may be on its way.
    assert_eq!(gateway.status(&upload("/early", LARGEST)), 200);
    assert_eq!(gateway.status(&Request::get("/now")), 403);
    let granted = snapshot::ASK_WINDOW / snapshot::ASK_CHUNK as u64;
    assert!(gateway.control.seen().chunks() <= chunks + granted, "{} of {chunks}", gateway.control.seen().chunks());
    gateway.is_well();
}

/// A caller of its own.
fn caller(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, number)
}

#[test]
fn bodies_are_bounded_and_end_with_their_clients() {
    let gateway = gateway(&[("stall", scan("stall")), ("scan", scan("scan")), ("now", now())]);
    let granted = snapshot::ASK_WINDOW / snapshot::ASK_CHUNK as u64;
    // As many as a worker has places, of as many callers as that takes: of all of them, no more is sent than may be.
    let (most, own) = (exchange::MAX_SENDINGS as u64, exchange::MAX_SENDINGS_OF_CALLER as u64);
    let callers: Vec<Ipv4Addr> = (1..=most / own).map(|number| caller(u8::try_from(number).unwrap())).collect();
    let mut stalled = Vec::new();
    for source in &callers {
        for _ in 0..own {
            let mut connection = Connection::open_from(*source, gateway.to).unwrap();
            connection.write(&upload("/stall", 200_000).encode()).unwrap();
            stalled.push(connection);
            gateway.questions(stalled.len() as u64);
        }
        let further = upload("/scan", 100).send_from(*source, gateway.to).unwrap();
        assert_eq!(further.status, 503, "the caller {source} has its share");
    }
    let refused = callers.len() as u64 + 1;
    let sent = (most * granted).min((exchange::MAX_UNDER_WAY / snapshot::ASK_CHUNK) as u64);
    until("the chunks", &gateway, || gateway.control.seen().chunks() == sent);
    let further = upload("/scan", 100).send_from(caller(99), gateway.to).unwrap();
    assert_eq!(further.status, 503, "one more has no answer, of any caller");
    assert_eq!(gateway.status(&Request::get("/now")), 403, "other questions have");
    assert_eq!(gateway.unanswered(), refused);
    assert_eq!(gateway.control.seen().chunks(), sent);
    // Each takes its place along, and the control plane learns it.
    drop(stalled);
    until("the end of all", &gateway, || gateway.control.seen().abandoned() == most);
    assert_eq!(gateway.status(&upload("/scan", LARGEST)), 200);
    assert_eq!((gateway.control.seen().taking(), gateway.unanswered()), (0, refused));
    gateway.is_well();
}

#[test]
fn a_link_that_is_lost_ends_the_bodies_on_it() {
    let gateway = gateway(&[
        ("stall", scan("stall")),
        ("scan", scan("scan")),
        ("lose", json!({ "at": "access", "ask": "lose" })),
        ("now", now()),
    ]);
    let to = gateway.to;
    let stalled = thread::spawn(move || upload("/stall", 1 << 20).send(to).unwrap().status);
    until("the first chunks", &gateway, || gateway.control.seen().chunks() >= 2);
    assert_eq!(gateway.status(&upload("/lose", 10)), 200);
    assert_eq!(stalled.join().unwrap(), 503);
    until("the link", &gateway, || gateway.status(&Request::get("/now")) == 403);
    assert_eq!(gateway.status(&upload("/scan", 1 << 20)), 200);
    gateway.is_well();
}

#[test]
fn a_body_goes_on_on_the_link_of_the_configuration_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.json");
    let steps = |status| {
        let now = json!({ "at": "access", "ask": "say no", "on": { "no": refuse(status) } });
        [("stall", scan("stall")), ("now", now)]
    };
    let put = |status| resource(&file, &wasm_filter("probe", &module(), &configuration(&steps(status))));
    put(403);
    let filter = json!({
        "name": "probe",
        "config_discovery": {
            "config_source": {
                "resource_api_version": "V3",
                "path_config_source": { "path": file, "watched_directory": { "path": folder.path() } },
            },
            "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
        },
    });
    let gateway = Gateway::with_buffers(filter, BUFFERS);
    let to = gateway.to;
    until("the configuration", &gateway, || gateway.status(&Request::get("/now")) == 403);
    let stalled = thread::spawn(move || upload("/stall", LARGEST).send(to).unwrap().status);
    until("the first chunks", &gateway, || gateway.control.seen().chunks() >= 2);
    put(418);
    until("the next configuration", &gateway, || gateway.status(&Request::get("/now")) == 418);
    gateway.control.release();
    assert_eq!((stalled.join().unwrap(), gateway.unanswered()), (200, 0));
    gateway.is_well();
}

#[test]
fn where_headers_are_not_held_they_change_before_the_body_and_no_body_is_replaced() {
    let set = |name: &str| json!([["set", name, "1"]]);
    let gateway = Gateway::with(without_holding(&[
        ("echo", json!({ "at": "access", "request": set("x-early") })),
        ("echo", json!({ "at": "request-body", "request": set("x-late"), "response": [] })),
        ("replaced", json!({ "at": "request-body", "replace": "short" })),
        ("page", json!({ "at": "response-body", "replace": "short" })),
    ]));
    let answer = upload("/echo", 10).send(gateway.to).unwrap();
    let headers = answer.json()["headers"].to_string();
    assert!(headers.contains("x-early") && !headers.contains("x-late"), "{headers}");
    assert_eq!(gateway.status(&upload("/replaced", 10)), 500);
    // The response's headers have gone: all that the gateway can do is to break it off.
    let page = upload("/page", 10).send(gateway.to);
    assert!(page.as_ref().map_or(true, |page| page.status == 500), "{page:?}");
    gateway.is_well();
}
