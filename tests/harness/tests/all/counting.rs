//! What nodes count together (`probe-count`), natively and in the harness.

use std::sync::Arc;

use double::{Counting, CountingClusters};
use harness::engine::{Engine, Native};
use prost::Message;
use proxy_host::traffic::{Exchange, Request, Response};
use proxy_host::{Module, Node, Options, Vm};
use serde_json::{Value, json};
use snapshot::{LinkSettings, Snapshot, Step, seal};

use crate::frame::probe;
use crate::kit::{NOW_MILLIS, filter};

fn configuration(config: &Value) -> Vec<u8> {
    let step = Step { plugin: "probe-count".into(), config: config.to_string().into_bytes(), ..Step::default() };
    let link = LinkSettings { cluster: "control".into(), flush_millis: 50, max_queued: 1000 };
    let (filter, global, link) = ("probe".into(), vec![step], Some(link));
    seal(&Snapshot { filter, composite: true, global, link, ..Snapshot::default() }).encode_to_vec()
}

fn request(key: &str, member: &str) -> Exchange {
    let mut request = Request::get(&format!("/?{key}"));
    request.headers.push((b"member".to_vec(), member.as_bytes().to_vec()));
    Exchange { request, response: Response { status: 200, ..Response::default() } }
}

fn of(engine: &mut dyn Engine, key: &str, member: &str) -> (u16, String) {
    let outcome = engine.exchange(&request(key, member));
    assert!(outcome.fault.is_none(), "{:?}", outcome.fault);
    (outcome.status, String::from_utf8_lossy(&outcome.body).into_owned())
}

/// A node of this double, natively or in the harness.
trait World {
    fn node(&self, name: &str, config: &Value, double: &Arc<Counting>) -> Box<dyn Engine>;
}

struct Natively;

impl World for Natively {
    fn node(&self, name: &str, config: &Value, double: &Arc<Counting>) -> Box<dyn Engine> {
        Box::new(native(name, config, double))
    }
}

/// A worker of the harness; its link is flushed after each exchange.
struct Flushed(Vm);

impl Engine for Flushed {
    fn name(&self) -> &'static str {
        "harness"
    }

    fn exchange(&mut self, exchange: &Exchange) -> proxy_host::traffic::Outcome {
        self.0.advance(300).unwrap();
        let outcome = self.0.exchange(exchange);
        self.0.advance(300).unwrap();
        outcome
    }
}

struct InTheHarness(Module);

impl World for InTheHarness {
    fn node(&self, name: &str, config: &Value, double: &Arc<Counting>) -> Box<dyn Engine> {
        let (node, clusters) = (Node::new(name, NOW_MILLIS, 7), Box::new(CountingClusters::new(double, name)));
        let mut vm = Vm::with_clusters(&self.0, &configuration(config), &node, Options::default(), clusters).unwrap();
        // The link opens with the first tick.
        vm.advance(1000).unwrap();
        Box::new(Flushed(vm))
    }
}

fn native(name: &str, config: &Value, double: &Arc<Counting>) -> Native {
    let native = Native::load_of(probe::PLUGINS, &configuration(config), name, NOW_MILLIS, 7).unwrap();
    native.counting_with(double)
}

fn worlds(check: impl Fn(&dyn World)) {
    check(&Natively);
    check(&InTheHarness(Module::compile(&filter("probe")).unwrap()));
}

#[test]
fn attempts_of_one_per_node_are_seen_by_both() {
    let config = json!({ "form": "window", "limit": 3, "show": true });
    worlds(|world| {
        let double = Counting::at(NOW_MILLIS, 1);
        let [mut a, mut b] = ["a", "b"].map(|name| world.node(name, &config, &double));
        assert_eq!(of(&mut *a, "alice", ""), (403, "1+0".into()), "{}", a.name());
        assert_eq!(of(&mut *b, "alice", ""), (403, "1+0".into()));
        assert_eq!(of(&mut *a, "bob", ""), (403, "1+0".into()));
        assert_eq!(of(&mut *a, "alice", ""), (403, "2+1".into()), "{}", a.name());
        assert_eq!(of(&mut *b, "bob", ""), (403, "1+0".into()));
        assert_eq!(of(&mut *b, "alice", ""), (429, "2+2".into()), "{}", b.name());
    });
}

#[test]
fn one_that_asks_sees_all_attempts_at_once() {
    let config = json!({ "form": "window", "limit": 3, "show": true, "ask": true });
    worlds(|world| {
        let double = Counting::at(NOW_MILLIS, 1);
        let mut nodes = ["a", "b", "c", "d"].map(|name| world.node(name, &config, &double));
        let found = nodes.each_mut().map(|node| of(&mut **node, "alice", ""));
        let expected = [(403, "1+0"), (403, "1+1"), (403, "1+2"), (429, "1+3")];
        assert_eq!(found, expected.map(|(status, text)| (status, text.to_owned())), "{}", nodes[0].name());
    });
}

#[test]
fn a_budget_that_is_asked_for_is_never_overdrawn() {
    let config = json!({ "form": "budget", "limit": 5, "ask": true });
    worlds(|world| {
        let double = Counting::at(NOW_MILLIS, 1);
        let mut nodes = ["a", "b"].map(|name| world.node(name, &config, &double));
        let taken: Vec<u16> = (0..10).map(|at| of(&mut *nodes[at % 2], "consumer", "").0).collect();
        assert_eq!(taken, [200, 200, 200, 200, 200, 429, 429, 429, 429, 429], "{}", nodes[0].name());
    });
}

#[test]
fn a_set_has_at_most_its_cap_over_all_nodes() {
    for ask in [true, false] {
        let config = json!({ "form": "set", "limit": 3, "ask": ask });
        worlds(|world| {
            let double = Counting::at(NOW_MILLIS, 1);
            let [mut a, mut b] = ["a", "b"].map(|name| world.node(name, &config, &double));
            // Without asking, a node learns of a set with its own first member.
            assert_eq!(of(&mut *a, "consumer", "1").0, 200);
            assert_eq!(of(&mut *b, "consumer", "2").0, 200);
            assert_eq!(of(&mut *b, "consumer", "1").0, 200, "{}", a.name());
            assert_eq!(of(&mut *a, "consumer", "2").0, 200);
            assert_eq!(of(&mut *a, "consumer", "3").0, 200);
            // The double tells a node with its next word.
            assert_eq!(of(&mut *b, "other", "4").0, 200);
            assert_eq!(of(&mut *b, "consumer", "4"), (429, "3".into()), "{}, ask {ask}", b.name());
            assert_eq!(of(&mut *b, "consumer", "3").0, 200);
        });
    }
}

#[test]
fn nodes_go_on_alone_without_the_control_plane_and_add_up_after_it_is_back() {
    let config = json!({ "form": "window", "limit": 100, "show": true });
    let double = Counting::at(NOW_MILLIS, 1);
    let [mut a, mut b] = ["a", "b"].map(|name| native(name, &config, &double));
    of(&mut a, "alice", "");
    of(&mut b, "alice", "");
    of(&mut a, "alice", "");
    [&mut a, &mut b].into_iter().for_each(Native::lose_counts);
    assert_eq!(of(&mut a, "alice", "").1, "3+1");
    assert_eq!(of(&mut b, "alice", "").1, "2+2");
    assert_eq!(of(&mut b, "alice", "").1, "3+2", "it does not hear of what the other has counted meanwhile");
    // A process that knows nothing, as after a kill.
    let double = Counting::at(NOW_MILLIS, 2);
    [&mut a, &mut b].into_iter().for_each(|node| node.link_counts_to(&double));
    assert_eq!(of(&mut a, "alice", "").1, "4+3");
    assert_eq!(of(&mut b, "alice", "").1, "4+4");
}

#[test]
fn a_budget_goes_on_with_what_the_node_knows() {
    let config = json!({ "form": "budget", "limit": 6, "ask": true });
    let double = Counting::at(NOW_MILLIS, 1);
    let [mut a, mut b] = ["a", "b"].map(|name| native(name, &config, &double));
    assert_eq!([of(&mut a, "k", "").0, of(&mut b, "k", "").0, of(&mut b, "k", "").0], [200; 3]);
    b.lose_counts();
    // Three were taken as far as it knows.
    let alone: Vec<u16> = (0..4).map(|_| of(&mut b, "k", "").0).collect();
    assert_eq!(alone, [200, 200, 200, 429]);
    b.link_counts();
    assert_eq!([of(&mut a, "k", "").0, of(&mut b, "k", "").0], [429; 2], "what it has taken alone counts");
}
