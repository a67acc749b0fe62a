//! A new configuration in a VM that runs: what did not change is not decoded again.

use std::path::Path;

use proxy_host::traffic::{Exchange, Request, Response};
use proxy_host::{Module, Node, Vm};
use snapshot::{LinkSettings, LoadReport, Message, Part, RouteChain, Snapshot, Step, Up, content_hash, seal};
use waf::WafStep;

struct Nothing;

impl seclang::DataFiles for Nothing {
    fn read(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}

fn module() -> Module {
    let folder = std::env::var_os("PALISADE_FILTERS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/filters"), Into::into);
    let file = folder.join("preset.wasm");
    let bytes =
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; `make filters` builds it", file.display()));
    Module::compile(&bytes).unwrap()
}

/// A snapshot of one route for each rule.
fn snapshot(rules: &[&str], version: u32) -> Vec<u8> {
    let mut all = Snapshot { filter: "preset".into(), ..Snapshot::default() };
    let user_header = format!("x-user-{version}");
    all.identity = Some(snapshot::IdentitySource { user_header, ..Default::default() });
    all.link = Some(LinkSettings { cluster: "control".into(), flush_millis: 100, max_queued: 10 });
    for (number, word) in rules.iter().enumerate() {
        let text = format!("SecRuleEngine On\nSecRule ARGS \"@streq {word}\" \"id:1,phase:1,deny,status:403\"");
        let source = seclang::Source::new("test", text);
        let program = seclang::compile(&[source], &Nothing).unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
        let hash = content_hash(&program).to_vec();
        let step = WafStep { program: hash.clone(), block: true, ..WafStep::default() };
        let config = step.encode_to_vec();
        let steps = vec![Step { plugin: "waf".into(), config, ..Step::default() }];
        all.routes.push(RouteChain { name: format!("r{number}"), steps, ..RouteChain::default() });
        all.parts.push(Part { hash, data: program });
    }
    seal(&all).encode_to_vec()
}

/// What the filter has reported since the last call: parts decoded, parts reused.
fn reported(vm: &mut Vm) -> Vec<(u32, u32)> {
    vm.advance(1000).unwrap();
    let sent = vm.take_grpc_messages().into_iter().flat_map(|stream| stream.sent);
    let loads = sent.flat_map(|message| Up::decode(message.as_slice()).unwrap().loads);
    loads.map(|LoadReport { parts_decoded, parts_reused, .. }| (parts_decoded, parts_reused)).collect()
}

#[test]
fn only_what_changed_is_decoded() {
    let node = Node::new("node-1", 1_000_000, 1);
    let mut vm = Vm::load(&module(), &snapshot(&["one", "two"], 0), &node).unwrap();
    assert_eq!(reported(&mut vm), [(2, 0)]);
    vm.reconfigure(&snapshot(&["one", "two"], 1)).unwrap();
    assert_eq!(reported(&mut vm), [(0, 2)]);
    vm.reconfigure(&snapshot(&["one", "three"], 1)).unwrap();
    assert_eq!(reported(&mut vm), [(1, 1)]);
    let logs: Vec<String> = vm.take_logs().into_iter().map(|line| line.text).collect();
    assert!(logs.iter().any(|line| line.contains("parts_decoded=1 parts_reused=1")), "{logs:?}");
    // Only the parts of the configuration that is replaced are kept: the one before it is forgotten.
    vm.reconfigure(&snapshot(&["two", "three"], 1)).unwrap();
    assert_eq!(reported(&mut vm), [(1, 1)]);
    // What is refused leaves everything as it was.
    assert!(vm.reconfigure(b"nonsense").is_err());
    vm.reconfigure(&snapshot(&["two", "three"], 2)).unwrap();
    assert_eq!(reported(&mut vm), [(0, 2)]);
}

/// The events and reports that came up on streams of one root context since the last call.
fn sent_by(vm: &mut Vm, root: u32) -> Vec<Up> {
    let streams = vm.take_grpc_messages().into_iter().filter(|stream| stream.context == root);
    streams.flat_map(|stream| stream.sent).map(|message| Up::decode(message.as_slice()).unwrap()).collect()
}

#[test]
fn a_configuration_that_comes_back_while_it_is_in_use_has_the_link_again() {
    let node = Node::new("node-1", 1_000_000, 1);
    let (one, two) = (snapshot(&["one"], 0), snapshot(&["two"], 1));
    let mut vm = Vm::load(&module(), &one, &node).unwrap();
    let first = vm.root();
    vm.advance(1000).unwrap();
    let version = |ups: &[Up]| ups.iter().flat_map(|up| &up.loads).map(|load| load.version.clone()).next_back();
    let running = version(&sent_by(&mut vm, first)).expect("the first one reports itself");
    // An exchange holds the first one; the second takes its place, and the first comes back without a word to it.
    assert_eq!(vm.reconfigure_beside(&two).unwrap(), first);
    let second = vm.root();
    vm.advance(1000).unwrap();
    assert_ne!(version(&sent_by(&mut vm, second)).expect("the second one has the link"), running);
    vm.go_back(first);
    vm.advance(1000).unwrap();
    vm.end_root(second).unwrap();
    vm.advance(1000).unwrap();
    let stream = vm.grpc_streams().iter().rfind(|stream| stream.context == first).expect("no stream").clone();
    assert_eq!(version(&sent_by(&mut vm, first)), Some(running), "the control plane learns what runs");
    vm.deliver(stream.token, b"").unwrap();
    let request = Request { route: "r0".into(), ..Request::get("/?q=one") };
    let outcome = vm.exchange(&Exchange { request, response: Response::default() });
    assert_eq!(outcome.status, 403);
    vm.advance(1000).unwrap();
    assert!(sent_by(&mut vm, first).iter().any(|up| !up.events.is_empty()), "the event of the refusal");
    // The link that ends is tried again, which timers do.
    vm.close_grpc(stream.token, 14).unwrap();
    vm.advance(60_000).unwrap();
    assert!(vm.grpc_streams().iter().any(|other| other.context == first && other.token != stream.token));
}
