//! A body that a plugin has replaced goes to the backend, whatever the steps behind it do: in the shipped host and in the native
//! replay alike.

use harness::engine::{Engine, Native};
use prost::Message;
use proxy_host::traffic::{Exchange, Outcome, Request};
use proxy_host::{Module, Node, Vm};
use snapshot::{Snapshot, Step};

use crate::kit::{NOW_MILLIS, filter};

#[path = "../../../modules/rewrite/src/plugins.rs"]
mod rewrite;

fn snapshot_of(behind: &str) -> Vec<u8> {
    let step = |plugin: &str, config: &str| Step { plugin: plugin.into(), config: config.into(), ..Step::default() };
    let global = vec![step("rewrite", ""), step("wait", behind)];
    snapshot::seal(&Snapshot { filter: "rewrite".into(), global, ..Snapshot::default() }).encode_to_vec()
}

fn post(body: &str) -> Exchange {
    let mut request = Request { body: body.into(), ..Request::get("/") };
    request.headers.push((b"content-length".to_vec(), body.len().to_string().into_bytes()));
    Exchange { request, ..Exchange::default() }
}

fn arrived(outcome: Outcome, what: &str) -> (Vec<u8>, Vec<u8>, bool) {
    assert!(outcome.reached_backend && outcome.fault.is_none(), "{what}: {outcome:?}");
    let length = outcome.request_headers.into_iter().find(|(name, _)| name == b"content-length");
    (outcome.request_body, length.map(|(_, length)| length).unwrap_or_default(), outcome.held_millis > 0)
}

#[test]
fn a_replaced_body_survives_what_steps_behind_do() {
    let module = Module::compile(&filter("rewrite")).unwrap();
    for (behind, held) in [
        ("nothing", false),
        ("hold at headers", true),
        ("need", false),
        ("read", false),
        ("need, then hold at body", true),
        ("read, then hold at body", true),
    ] {
        let snapshot = snapshot_of(behind);
        let mut vm = Vm::load(&module, &snapshot, &Node::new("node", NOW_MILLIS, 7)).unwrap();
        let mut native = Native::load_of(rewrite::PLUGINS, &snapshot, "node", NOW_MILLIS, 7).unwrap();
        let padding = "x".repeat(40_000);
        for (sent, expected) in [
            ("cut:secret".to_owned(), "secret".to_owned()),
            (format!("grow:{padding}"), padding.repeat(2)),
            ("plain".to_owned(), "plain".to_owned()),
        ] {
            let what = format!("{behind}: {sent:.12}");
            let expected = (expected.clone().into_bytes(), expected.len().to_string().into_bytes(), held);
            assert_eq!(arrived(vm.exchange(&post(&sent)), &what), expected, "in the host, {what}");
            assert_eq!(arrived(native.exchange(&post(&sent)), &what), expected, "natively, {what}");
        }
    }
}
