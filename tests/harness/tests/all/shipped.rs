//! The shipped modules in the harness's host: what they say to the control plane, and what they hear from it.

use crate::kit;

use ftw::rules::{compile_text, inspecting_step, program, waf_snapshot};
use proxy_host::traffic::{Exchange, Request, Response};
use proxy_host::{Module, Node, Vm};
use reputation_tables::{AddressVerdict, COUNTRIES, REPORTS, VERDICTS, country_label, verdict_key};
use seclang::Source;
use snapshot::{BanChange, Down, LinkSettings, Message as _, TableChange, Up, open, seal};
use tables::{KeysBuilder, LabelWidth, RangesBuilder, State};
use waf::{WafStep, WafZone};

fn get(path: &str) -> Exchange {
    Exchange { request: Request::get(path), response: Response { body: b"hello".to_vec(), ..Response::default() } }
}

#[test]
fn the_empty_filter_changes_nothing() {
    let module = Module::compile(&kit::filter("noop")).unwrap();
    let outcome = Vm::load(&module, b"", &Node::new("", 0, 1)).unwrap().exchange(&get("/"));
    assert_eq!((outcome.status, outcome.body.as_slice(), outcome.events.len()), (200, &b"hello"[..], 0));
}

#[test]
fn events_go_up_and_bans_come_down_on_the_node_link() {
    let rules = "SecRule ARGS:q \"@streq evil\" \"id:7,phase:2,pass,log,msg:'evil'\"";
    let (_, mut snapshot) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
    snapshot.link = Some(LinkSettings { cluster: "control".into(), flush_millis: 100, max_queued: 10 });
    let node = Node::new("node-1", kit::NOW_MILLIS, 7);
    let mut vm = Vm::load(kit::waf(), &seal(&snapshot).encode_to_vec(), &node).unwrap();
    let outcome = vm.exchange(&get("/?q=evil"));
    assert_eq!((&outcome.events[0]["rule_ids"][0], outcome.events.len()), (&7.into(), 1));
    assert!(vm.grpc_streams().is_empty(), "nothing leaves before its time");

    // A stream may be open before the gateway is connected: until the greeting the filter sends only who it is.
    vm.advance(100).unwrap();
    let stream = vm.grpc_streams()[0].clone();
    assert_eq!((stream.method.as_str(), stream.closed), ("palisade.v1.NodeLink/Stream", false));
    let sent = |message: &Vec<u8>| Up::decode(message.as_slice()).unwrap();
    let [introduction] = stream.sent.as_slice() else { panic!("{} messages", stream.sent.len()) };
    let up = sent(introduction);
    assert_eq!((up.node.as_str(), up.events.len(), up.loads.len()), ("node-1", 0, 1));
    vm.close_grpc(stream.token, 14).unwrap();
    vm.advance(2000).unwrap();
    let stream = vm.take_grpc_messages().pop().unwrap();
    assert_eq!(stream.sent.iter().map(sent).map(|up| (up.events.len(), up.loads.len())).collect::<Vec<_>>(), [(0, 1)]);
    vm.deliver(stream.token, b"").unwrap();
    let stream = vm.grpc_streams().last().unwrap().clone();
    let events: usize = stream.sent.iter().map(|message| sent(message).events.len()).sum();
    assert_eq!(events, 2, "the request's, which outlived the first stream, and that of the outage");

    let until_millis = kit::NOW_MILLIS + 60_000;
    let ban = BanChange { key: "ip:192.0.2.1".into(), until_millis, reason: "test".into(), ..BanChange::default() };
    let before = node.shared_keys().len();
    vm.deliver(stream.token, &Down { bans: vec![ban], ..Down::default() }.encode_to_vec()).unwrap();
    assert!(node.shared_keys().len() > before, "the ban is not on the node");

    assert_eq!(vm.take_grpc_messages().pop().unwrap().sent, stream.sent);
    assert!(vm.grpc_streams().last().unwrap().sent.is_empty());

    // A stream that ends is opened again a while later, also where there was nothing to say: bans come on it.
    vm.close_grpc(stream.token, 14).unwrap();
    vm.advance(2000).unwrap();
    assert!(vm.grpc_streams().last().unwrap().token != stream.token);
    vm.exchange(&get("/?q=evil"));
    let counted = node.metrics();
    assert_eq!((counted["palisade.requests"].value, counted["palisade.events"].value), (2, 3));
}

#[test]
fn rules_look_up_in_tables_that_come_over_the_node_link() {
    let rules = "SecRule REMOTE_ADDR \"@geoLookup\" \"id:7,phase:1,deny,status:451,chain\"\nSecRule GEO:COUNTRY_CODE3 \"@streq BRA\"\n\
                 SecRule ARGS:peer \"@rbl bl.test\" \"id:8,phase:1,deny,status:406\"";
    let source = Source::new("rules", rules);
    let program = program(vec![source], std::path::PathBuf::new()).unwrap();
    let zone = WafZone { name: "bl.test".into(), key: "key".into() };
    let step = WafStep { block: true, places: true, zones: vec![zone], ..inspecting_step("ftw") };
    let (_, mut snapshot) = open(&waf_snapshot(&program.encode(), step)).unwrap();
    snapshot.link = Some(LinkSettings { cluster: "control".into(), flush_millis: 100, max_queued: 10 });
    let node = Node::new("node-1", kit::NOW_MILLIS, 7);
    let mut vm = Vm::load(kit::waf(), &seal(&snapshot).encode_to_vec(), &node).unwrap();
    let mut from = get("/?peer=198.51.100.66");
    from.request.peer = "192.0.2.7:4711".into();
    assert_eq!(vm.exchange(&from).status, 200, "there are no tables yet");
    vm.advance(100).unwrap();
    let stream = vm.grpc_streams()[0].clone();
    vm.deliver(stream.token, b"").unwrap();
    vm.advance(200).unwrap();
    let sent: Vec<Up> =
        vm.grpc_streams()[0].sent.iter().map(|message| Up::decode(message.as_slice()).unwrap()).collect();
    let asked = sent.iter().flat_map(|up| &up.reports).any(|batch| batch.kind == REPORTS);
    assert!(asked, "the address without a verdict is asked for: {sent:?}");

    let table = |name: &str, data: Vec<u8>| {
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        TableChange { name: name.into(), state, data, size, ..TableChange::default() }
    };
    let mut listed = KeysBuilder::default();
    let verdict = AddressVerdict { until: u64::MAX, renew: u64::MAX, keys: b"key".to_vec() };
    listed.put(&verdict_key("198.51.100.66".parse().unwrap()), &verdict.to_bytes()).unwrap();
    let verdicts = table(VERDICTS, listed.build().unwrap());
    vm.deliver(stream.token, &Down { tables: vec![verdicts], ..Down::default() }.encode_to_vec()).unwrap();
    assert_eq!(vm.exchange(&from).status, 406);
    let mut places = RangesBuilder::new(LabelWidth::Two);
    places.set("192.0.2.0".parse().unwrap(), "192.0.2.255".parse().unwrap(), country_label(*b"BR")).unwrap();
    let places = table(COUNTRIES, places.build().unwrap());
    vm.deliver(stream.token, &Down { tables: vec![places], ..Down::default() }.encode_to_vec()).unwrap();
    assert_eq!(vm.exchange(&from).status, 451);
    from.request.peer = "203.0.113.7:4711".into();
    assert_eq!(vm.exchange(&from).status, 406);
}

#[test]
fn a_configuration_for_another_filter_is_refused_with_its_reason() {
    let (_, mut snapshot) = open(&compile_text("rules", "").unwrap().snapshot).unwrap();
    snapshot.filter = "preset".into();
    let error = Vm::load(kit::waf(), &seal(&snapshot).encode_to_vec(), &Node::new("", 0, 1)).err().unwrap();
    assert!(error.to_string().contains("the snapshot is for filter `preset`, this is `waf`"), "{error}");
}

#[test]
fn equal_seeds_give_equal_events_and_others_do_not() {
    let compiled = compile_text("rules", "SecAction \"id:7,phase:1,pass,log\"").unwrap();
    let event = |seed| {
        let node = Node::new("node-1", kit::NOW_MILLIS, seed);
        Vm::load(kit::waf(), &compiled.snapshot, &node).unwrap().exchange(&get("/")).events
    };
    assert_eq!(event(1), event(1));
    assert_ne!(event(1), event(2));
}
