//! One step in the global chain and another in that of the route.

use exchange::{Chain, Flow, Headers, Request, Run, Start};
use snapshot::{RouteChain, Snapshot, Step};

use super::*;

const REGISTRY: &[PluginDefinition] = &[PLUGIN];

/// A chain of these steps, in a worker that has a table.
fn chain(filter: &str, global: &[&IpReputationStep], route: &[&IpReputationStep], table: &[u8]) -> Chain {
    let steps = |steps: &[&IpReputationStep]| {
        let step = |step: &&IpReputationStep| Step {
            plugin: PLUGIN.name.into(),
            config: step.encode_to_vec(),
            ..Step::default()
        };
        steps.iter().map(step).collect::<Vec<_>>()
    };
    let routes = vec![RouteChain { name: "r".into(), steps: steps(route), ..RouteChain::default() }];
    let snapshot = Snapshot { filter: filter.into(), global: steps(global), routes, ..Snapshot::default() };
    let tables = Rc::new(Tables::default());
    let chain = Chain::load_after(&snapshot, REGISTRY, &|_| None, &[], &tables).unwrap();
    let (state, size) = (State::of_base(table).0.to_vec(), u32::try_from(table.len()).unwrap());
    let change = snapshot::TableChange { name: TABLE.into(), state, data: table.to_vec(), size, ..Default::default() };
    assert_eq!(tables.take(&change), Taken::Applied);
    chain
}

/// A run of a request from `192.0.2.7`.
fn run(chain: &Chain, host: &FakeHost) -> (Run, Flow) {
    let request = Request { path: b"/".to_vec(), headers: Headers::default(), ..Request::default() };
    let start = Start { request, route: b"r", peer: b"192.0.2.7:1", node: &"n".into() };
    let mut run = Run::new(chain, start, host);
    let flow = run.request_headers(false, host);
    (run, flow)
}

/// The score and the number of signals where the first step is in the global chain and the second in that of the route: in one filter,
/// and in two with one step each.
fn twice(first: &IpReputationStep, second: &IpReputationStep, table: &[u8]) -> [(f64, usize); 2] {
    let of = |run: &Run| (run.exchange().score.total(), run.exchange().score.signals().len());
    let one = run(&chain("preset", &[first], &[second], table), &FakeHost::at(7)).0;
    let host = FakeHost::at(7);
    let (_, first) = run(&chain("ip-reputation", &[first], &[], table), &host);
    assert_eq!(first, Flow::Continue);
    let behind = run(&chain("ip-reputation", &[], &[second], table), &host).0;
    [of(&one), of(&behind)]
}

#[test]
fn a_feed_counts_once_whichever_steps_have_it() {
    let (a, b) = (|| feed("a", 30.0, false), || feed("b", 20.0, false));
    let table = table(&[("a", "192.0.2.7", "192.0.2.7"), ("b", "192.0.2.0", "192.0.2.255")]);
    let both = step(vec![a(), b()]);
    assert_eq!(twice(&both, &both, &table), [(50.0, 4); 2]);
    assert_eq!(twice(&step(vec![a()]), &both, &table), [(50.0, 4); 2]);
    assert_eq!(twice(&both, &step(vec![b()]), &table), [(50.0, 4); 2]);
    // Two feeds of one step that are named alike are two.
    let namesake = FeedOfStep { name: "id-a".into(), tag: "feed:a".into(), ..feed("b", 20.0, false) };
    let namesakes = step(vec![a(), namesake]);
    assert_eq!(twice(&namesakes, &namesakes, &table).map(|found| found.0), [50.0; 2]);
}

#[test]
fn the_many_other_feeds_count_once_as_well() {
    let keys: Vec<String> = (0..60).map(|number| format!("f{number:02}")).collect();
    let ranges: Vec<(&str, &str, &str)> = keys.iter().map(|key| (key.as_str(), "192.0.2.7", "192.0.2.7")).collect();
    let table = table(&ranges);
    let of = |keys: &[String], long: usize| {
        let feeds = keys.iter().map(|key| {
            let named = feed(key, 1.0, false);
            FeedOfStep { id: format!("{}{}", named.id, "x".repeat(long)), ..named }
        });
        step(feeds.collect())
    };
    let score = |first: &IpReputationStep, second: &IpReputationStep| twice(first, second, &table).map(|found| found.0);
    for long in [0, 50] {
        let all = of(&keys, long);
        assert_eq!(score(&all, &all), [60.0; 2], "{long}");
        assert_eq!(score(&all, &of(&keys[50..], long)), [60.0; 2], "{long}");
    }
    assert_eq!(score(&of(&keys[..20], 0), &of(&keys, 0)), [60.0; 2]);
}

#[test]
fn a_step_that_reports_its_refusals_says_so_though_another_one_has_counted_the_feed() {
    let table = table(&[("a", "192.0.2.7", "192.0.2.7")]);
    let quiet = step(vec![feed("a", 30.0, false)]);
    let reporting = IpReputationStep { report: true, ..step(vec![feed("a", 30.0, true)]) };
    let (run, flow) = run(&chain("preset", &[&quiet], &[&reporting], &table), &FakeHost::at(7));
    assert!(matches!(flow, Flow::Answer(reply) if reply.status == 451));
    let score = &run.exchange().score;
    assert_eq!(score.total(), 30.0);
    assert!(score.signals().iter().any(|signal| signal.kind == REPORTED && signal.tag == "feed:a"));
}
