//! A new configuration in a VM that runs: what did not change is not decoded again.

use std::path::Path;

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
