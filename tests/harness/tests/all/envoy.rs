//! The suite through a real Envoy, as it goes over the wire.

use std::path::{Path, PathBuf};

use ftw::Ignore;
use ftw::rules::compile_text;
use ftw::suite::{Selection, Suite};
use harness::engine::{Engine, Envoy, Native};
use proxy_host::traffic::{Exchange, Request};
use proxy_host::{Module, Node, Vm};

/// A folder beside this crate's manifest.
fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn part(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| own(default), PathBuf::from)
}

fn start(snapshot: &[u8]) -> Envoy {
    let envoy = part("PALISADE_ENVOY", "../../.cache/envoy/envoy");
    let filter = part("PALISADE_FILTERS", "../../target/filters").join("waf.wasm");
    Envoy::start(&envoy, &filter, snapshot).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn the_small_suite_comes_out_as_it_does_without_a_gateway() {
    let rules = std::fs::read_to_string(own("corpus/rules.conf")).unwrap();
    let compiled = compile_text("rules.conf", &rules).unwrap();
    let suite = Suite::read(&own("corpus/tests"), &Selection::default()).unwrap();
    let mut envoy = start(&compiled.snapshot);
    let answered =
        Ignore::parse("1000-9: Envoy answers 426 to HTTP/1.0\n1000-10: Envoy joins two hosts into one").unwrap();
    let gateway = suite.run(&mut envoy, &answered, |_| {});
    let mut native = Native::load(&compiled.snapshot, "gateway-1", 1_750_000_000_000, 7).unwrap();
    let linked = suite.run(&mut native, &Ignore::default(), |_| {});
    assert_eq!((gateway.failures.as_slice(), gateway.stale.as_slice(), gateway.ignored.len()), (&[][..], &[][..], 2));
    assert_eq!((gateway.ran, gateway.passed + 2, gateway.skipped), (linked.ran, linked.passed, linked.skipped));
    assert!(gateway.found.values().any(|found| !found.ids.is_empty()));
    // What Envoy answers by itself is told apart.
    let wire = b"GET / HTTP/1.0\r\n\r\n".to_vec();
    let outcome = envoy.exchange(&Exchange { request: Request { wire, ..Request::get("/") }, ..Exchange::default() });
    let reply = outcome.local_reply.unwrap();
    assert_eq!((reply.status, outcome.reached_backend, outcome.events.len()), (426, false, 0));
    assert!(reply.details.starts_with("low_version"), "{}", reply.details);
}

#[test]
fn rules_see_the_same_own_address_in_every_engine() {
    let rule = r#"SecAction "id:1,phase:1,pass,log,msg:'%{SERVER_ADDR} %{SERVER_PORT} for %{REMOTE_ADDR}'""#;
    let compiled = compile_text("rules.conf", &format!("SecRuleEngine On\n{rule}")).unwrap();
    let program = part("PALISADE_ENVOY", "../../.cache/envoy/envoy");
    let filter = part("PALISADE_FILTERS", "../../target/filters").join("waf.wasm");
    let envoy = Envoy::for_replay(&program, &filter, &compiled.snapshot, "", "gateway-1");
    let native = Native::load(&compiled.snapshot, "gateway-1", 1_750_000_000_000, 7).unwrap();
    let module = Module::compile(&std::fs::read(&filter).unwrap()).unwrap();
    let wasm = Vm::load(&module, &compiled.snapshot, &Node::new("gateway-1", 1_750_000_000_000, 7)).unwrap();
    let engines: [Box<dyn Engine>; 3] =
        [Box::new(envoy.unwrap_or_else(|why| panic!("{why}"))), Box::new(native), Box::new(wasm)];
    for mut engine in engines {
        for (peer, local, seen) in [
            ("192.0.2.7:5000", "198.51.100.1:8443", "198.51.100.1 8443 for 192.0.2.7"),
            ("[2001:db8::7]:5000", "[2001:db8::1]:443", "2001:db8::1 443 for 2001:db8::7"),
        ] {
            let request = Request { peer: peer.to_owned(), local: local.to_owned(), ..Request::get("/") };
            let outcome = engine.exchange(&Exchange { request, ..Exchange::default() });
            let trail = &outcome.events[0];
            assert_eq!(trail["matches"][0]["msg"], seen, "{}: {trail}", engine.name());
        }
    }
}
