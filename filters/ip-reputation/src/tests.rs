//! The plugin in a worker, with a table made in the test.

mod blocklists;
mod differential;
mod twice;

use std::net::IpAddr;
use std::rc::Rc;

use ::tables::{KeysBuilder, LabelWidth, RangesBuilder, SourceBuilder, State};
use exchange::fake::FakeHost;
use exchange::{Tables, Taken};

use super::*;

fn feed(key: &str, weight: f64, blocks: bool) -> FeedOfStep {
    let (id, tag) = (format!("id-{key}"), format!("feed:{key}"));
    FeedOfStep { key: key.into(), name: id.clone(), id, tag, weight, blocks, ..FeedOfStep::default() }
}

fn step(feeds: Vec<FeedOfStep>) -> IpReputationStep {
    IpReputationStep { feeds, status: 451, ..IpReputationStep::default() }
}

/// A table of these ranges: feed, first and last address.
fn table(ranges: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut builder = SourceBuilder::default();
    for (feed, first, last) in ranges {
        let source = builder.source(feed).unwrap();
        builder.add(source, first.parse().unwrap(), last.parse().unwrap()).unwrap();
    }
    builder.build().unwrap()
}

/// The plugin in a worker that has a table, or has none yet.
fn plugin(step: &IpReputationStep, table: Option<Vec<u8>>) -> Box<dyn Plugin> {
    let tables = Rc::new(Tables::default());
    let plugin =
        build(&step.encode_to_vec(), &mut Build::new(std::iter::empty()).with_tables(Rc::clone(&tables))).unwrap();
    if let Some(data) = table {
        let state = State::of_base(&data).0.to_vec();
        let size = u32::try_from(data.len()).unwrap();
        let change = snapshot::TableChange { name: TABLE.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied);
    }
    plugin
}

/// The status of a refusal, the score, and the tags.
fn ask(plugin: &dyn Plugin, address: &str) -> (Option<u16>, f64, Vec<String>) {
    let mut exchange = Exchange::default();
    exchange.caller.ip = address.into();
    let status = match plugin.access(&mut exchange, &mut Slot::default(), &FakeHost::at(7)) {
        Verdict::Refuse(refusal) => {
            assert!(refusal.scored && refusal.category == Category::Threat, "{refusal:?}");
            Some(refusal.status)
        }
        Verdict::Pass => None,
        other => panic!("{other:?}"),
    };
    (status, exchange.score.total(), exchange.score.tags().into_iter().map(str::to_owned).collect())
}

fn few() -> Vec<u8> {
    table(&[
        ("a", "192.0.2.0", "192.0.2.255"),
        ("b", "192.0.2.128", "198.51.100.7"),
        ("a", "2001:db8::", "2001:db8::ffff"),
        ("zero", "192.0.2.9", "192.0.2.9"),
    ])
}

#[test]
fn each_matching_feed_adds_its_weight_and_both_of_its_tags() {
    let plugin = plugin(&step(vec![feed("b", 40.0, false), feed("a", 30.0, false)]), Some(few()));
    let (a, b) = (["feed:a", "reputation:id-a"], ["feed:b", "reputation:id-b"]);
    for same in ["192.0.2.7", "::ffff:192.0.2.7", "64:ff9b::192.0.2.7"] {
        assert_eq!(ask(&*plugin, same), (None, 30.0, a.map(str::to_owned).to_vec()));
    }
    assert_eq!(ask(&*plugin, "192.0.2.200"), (None, 70.0, [b, a].concat().into_iter().map(str::to_owned).collect()));
    assert_eq!(ask(&*plugin, "::ffff:198.51.100.7").1, 40.0, "mapped IPv4 is IPv4");
    assert_eq!(ask(&*plugin, "2001:db8::1").1, 30.0);
    for other in ["198.51.100.8", "192.0.1.255", "2001:db8::1:0", "", "no address"] {
        assert_eq!(ask(&*plugin, other), (None, 0.0, Vec::new()), "{other}");
    }
}

#[test]
fn an_address_on_many_feeds_leaves_room_for_the_signals_of_others() {
    let keys: Vec<String> = (0..40).map(|number| format!("f{number:02}")).collect();
    let feeds =
        keys.iter().enumerate().map(|(number, key)| feed(key, if number < 30 { 0.6 } else { 1.4 }, number == 7));
    let ranges: Vec<(&str, &str, &str)> = keys.iter().map(|key| (key.as_str(), "192.0.2.7", "192.0.2.7")).collect();
    let many = plugin(&step(feeds.collect()), Some(table(&ranges)));
    let mut exchange = Exchange::default();
    exchange.caller.ip = "192.0.2.7".into();
    assert!(matches!(many.access(&mut exchange, &mut Slot::default(), &FakeHost::at(7)), Verdict::Refuse(_)));
    let signals = exchange.score.signals();
    assert_eq!((signals.len(), exchange.score.total()), (17, 40.0), "all of them count, rounded as they are");
    assert_eq!(exchange.score.tags()[..4], ["feed:f07", "reputation:id-f07", "feed:f30", "reputation:id-f30"]);
    let others = signals.last().unwrap();
    assert_eq!((&*others.tag, others.weight), ("reputation:others", 32.0));
    assert!(others.detail.starts_with("32 more sources have the address: id-f37, "), "{}", others.detail);
}

#[test]
fn a_tag_of_that_form_is_there_once() {
    let own = FeedOfStep { tag: "reputation:id-a".into(), ..feed("a", 30.0, false) };
    assert_eq!(ask(&*plugin(&step(vec![own]), Some(few())), "192.0.2.7").2, ["reputation:id-a"]);
}

#[test]
fn a_blocking_feed_refuses_and_a_monitoring_step_refuses_nothing() {
    let blocking = step(vec![feed("a", 30.0, true), feed("b", 40.0, false)]);
    assert_eq!(ask(&*plugin(&blocking, Some(few())), "192.0.2.7").0, Some(451));
    let (status, score, _) = ask(&*plugin(&blocking, Some(few())), "198.51.100.1");
    assert_eq!((status, score), (None, 40.0), "the other feed monitors");
    let monitor = IpReputationStep { monitor: true, ..blocking };
    let (status, score, _) = ask(&*plugin(&monitor, Some(few())), "192.0.2.7");
    assert_eq!((status, score), (None, 30.0));
}

#[test]
fn a_monitoring_step_says_once_a_minute_whom_it_would_refuse() {
    let monitor = IpReputationStep { monitor: true, ..step(vec![feed("a", 30.0, true), feed("b", 40.0, false)]) };
    let (plugin, host) = (plugin(&monitor, Some(few())), FakeHost::at(0));
    let ask = |ip: &str| {
        let mut exchange = Exchange::default();
        exchange.caller.ip = ip.into();
        assert_eq!(plugin.access(&mut exchange, &mut Slot::default(), &host), Verdict::Pass);
        host.events_json().len()
    };
    assert_eq!([ask("192.0.2.7"), ask("192.0.2.7"), ask("198.51.100.1")], [1, 1, 1], "the other feed refuses no one");
    let event = &host.events_json()[0];
    assert_eq!((&event["event"]["outcome"], &event["event"]["module"]), (&"observed".into(), &"ip-reputation".into()));
    let decision = &event["decision"];
    assert_eq!((&decision["action"], &decision["dry_run"]), (&"deny".into(), &true.into()));
    assert_eq!(decision["reason"], "the caller's address is on the threat feed `id-a`");
    assert_eq!(event["threat"]["score"], 30);
    assert_eq!(ask("192.0.2.8"), 2, "another caller");
    host.advance(60_001);
    assert_eq!([ask("192.0.2.7"), ask("192.0.2.7")], [3, 3]);
}

#[test]
fn the_threshold_counts_the_hits_of_this_plugin() {
    let with = |score_threshold| IpReputationStep {
        score_threshold,
        ..step(vec![feed("a", 30.0, false), feed("b", 40.0, false)])
    };
    assert_eq!(ask(&*plugin(&with(70.0), Some(few())), "192.0.2.200").0, Some(451));
    assert_eq!(ask(&*plugin(&with(70.5), Some(few())), "192.0.2.200").0, None);
    assert_eq!(ask(&*plugin(&with(30.0), Some(few())), "192.0.2.7").0, Some(451));
    let monitor = IpReputationStep { monitor: true, ..with(1.0) };
    assert_eq!(ask(&*plugin(&monitor, Some(few())), "192.0.2.200").0, None);
}

#[test]
fn a_feed_that_the_step_does_not_have_counts_for_nothing() {
    let plugin = plugin(&step(vec![feed("b", 40.0, true)]), Some(few()));
    assert_eq!(ask(&*plugin, "192.0.2.7"), (None, 0.0, Vec::new()));
    assert_eq!(ask(&*plugin, "192.0.2.200").0, Some(451));
}

#[test]
fn a_feed_without_a_weight_adds_nothing_and_may_still_block() {
    let quiet = plugin(&step(vec![feed("zero", 0.0, false)]), Some(few()));
    assert_eq!(ask(&*quiet, "192.0.2.9"), (None, 0.0, Vec::new()));
    let blocking = plugin(&step(vec![feed("zero", 0.0, true)]), Some(few()));
    assert_eq!(ask(&*blocking, "192.0.2.9").0, Some(451));
}

#[test]
fn addresses_that_pass_through_are_not_looked_at() {
    let passthrough = vec!["192.0.2.0/29".into(), "::ffff:192.0.2.200".into(), "2001:db8::1".into()];
    let plugin = plugin(&IpReputationStep { passthrough, ..step(vec![feed("a", 30.0, true)]) }, Some(few()));
    for through in ["192.0.2.7", "::ffff:192.0.2.7", "192.0.2.200", "2001:db8::1"] {
        assert_eq!(ask(&*plugin, through), (None, 0.0, Vec::new()), "{through}");
    }
    assert_eq!((ask(&*plugin, "192.0.2.8").0, ask(&*plugin, "2001:db8::2").0), (Some(451), Some(451)));
}

#[test]
fn without_its_table_it_lets_requests_pass() {
    assert_eq!(ask(&*plugin(&step(vec![feed("a", 30.0, true)]), None), "192.0.2.7"), (None, 0.0, Vec::new()));
    let empty = SourceBuilder::default().build().unwrap();
    assert_eq!(ask(&*plugin(&step(vec![feed("a", 30.0, true)]), Some(empty)), "192.0.2.7").0, None);
}

#[test]
fn a_step_that_cannot_be_read_is_refused() {
    let build = |step: &IpReputationStep| build(&step.encode_to_vec(), &mut Build::new(std::iter::empty())).is_err();
    assert!(build(&IpReputationStep { status: 42, ..step(Vec::new()) }));
    assert!(build(&IpReputationStep { passthrough: vec!["office".into()], ..step(Vec::new()) }));
    assert!(!build(&step(Vec::new())));
}

#[test]
fn a_ban_of_a_decision_service_refuses_and_a_milder_decision_adds_to_the_score() {
    let service = |key: &str, weight| FeedOfStep { bouncer: true, ..feed(key, weight, true) };
    let config = step(vec![service("s", 90.0), feed("a", 30.0, false)]);
    let bytes = config.encode_to_vec();
    let tables = Rc::new(Tables::default());
    let plugin = build(&bytes, &mut Build::new(std::iter::empty()).with_tables(Rc::clone(&tables))).unwrap();
    assert_eq!(ask(&*plugin, "192.0.2.1"), (None, 0.0, Vec::new()), "without its tables");
    let take = |name: &str, data: Vec<u8>| {
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = snapshot::TableChange { name: name.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied);
    };
    // A feed with the key of the bouncer in the table of feeds, and the other way round, mean nothing else.
    take(TABLE, few());
    take(
        DECISIONS,
        table(&[
            ("s", "192.0.2.1", "192.0.2.1"),
            ("s~", "192.0.2.0", "192.0.2.63"),
            ("t", "192.0.2.70", "192.0.2.70"),
            ("s~", "203.0.113.7", "203.0.113.7"),
        ]),
    );
    let (status, score, tags) = ask(&*plugin, "192.0.2.1");
    assert_eq!((status, score), (Some(451), 100.0), "once, though there are two decisions on it");
    assert_eq!(tags, ["feed:s", "reputation:id-s", "feed:a", "reputation:id-a"]);
    assert_eq!(ask(&*plugin, "192.0.2.2").0, None);
    assert_eq!(ask(&*plugin, "203.0.113.7").1, 90.0);
    assert_eq!(ask(&*plugin, "192.0.2.70").1, 30.0, "of a bouncer that the step does not have");
    let kept: Vec<String> = tables.tell().tables.into_iter().map(|kept| kept.name).collect();
    assert!(kept.contains(&NAMED_DECISIONS.to_owned()), "countries and networks are sent: {kept:?}");
}

#[test]
fn a_step_that_reports_says_so_with_its_signals() {
    let kinds = |report| {
        let config = IpReputationStep { report, ..step(vec![feed("a", 30.0, true), feed("b", 40.0, false)]) };
        let mut exchange = Exchange::default();
        exchange.caller.ip = "192.0.2.200".into();
        let verdict = plugin(&config, Some(few())).access(&mut exchange, &mut Slot::default(), &FakeHost::at(7));
        assert!(matches!(verdict, Verdict::Refuse(_)));
        let signals = exchange.score.signals();
        assert!(signals.iter().all(|signal| signal.source == SOURCE) && exchange.score.total() == 70.0);
        signals.iter().map(|signal| signal.kind.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((kinds(false), kinds(true)), (vec!["reputation".to_owned(); 4], vec![REPORTED.to_owned(); 4]));
}

/// The plugin in a worker that has these tables.
fn with_tables(step: &IpReputationStep, all: Vec<(&str, Vec<u8>)>) -> Box<dyn Plugin> {
    let tables = Rc::new(Tables::default());
    let mut build_of = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
    let plugin = build(&step.encode_to_vec(), &mut build_of).unwrap();
    for (name, data) in all {
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = snapshot::TableChange { name: name.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied);
    }
    plugin
}

#[test]
fn decisions_on_networks_and_countries_match_by_the_tables_of_databases() {
    let service = FeedOfStep { bouncer: true, ..feed("s", 90.0, true) };
    let labelled = |width, ranges: &[(&str, &str, u32)]| {
        let mut builder = RangesBuilder::new(width);
        for (first, last, label) in ranges {
            builder.set(first.parse().unwrap(), last.parse().unwrap(), *label).unwrap();
        }
        builder.build().unwrap()
    };
    let networks = [("192.0.2.0", "192.0.2.255", 64496), ("198.51.100.0", "198.51.100.255", 4_200_000_000)];
    let countries = [
        ("203.0.113.0", "203.0.113.255", country_label(*b"CN")),
        ("2001:db8::", "2001:db8::ffff", country_label(*b"DE")),
    ];
    let mut named = KeysBuilder::default();
    for (name, keys) in [("as:64496", "s"), ("as:4200000000", "s~"), ("country:cn", "s")] {
        named.put(name.as_bytes(), keys.as_bytes()).unwrap();
    }
    let named = named.build().unwrap();
    let tables = || {
        vec![
            (NAMED_DECISIONS, named.clone()),
            (NETWORKS, labelled(LabelWidth::Four, &networks)),
            (COUNTRIES, labelled(LabelWidth::Two, &countries)),
        ]
    };
    let config = IpReputationStep { by_network: true, by_country: true, ..step(vec![service]) };
    let plugin = with_tables(&config, tables());
    assert_eq!(ask(&*plugin, "192.0.2.7").0, Some(451));
    assert_eq!(ask(&*plugin, "203.0.113.7").0, Some(451));
    assert_eq!((ask(&*plugin, "198.51.100.7").0, ask(&*plugin, "198.51.100.7").1), (None, 90.0), "a milder decision");
    assert_eq!(ask(&*plugin, "2001:db8::7"), (None, 0.0, Vec::new()), "a country without a decision");
    assert_eq!(ask(&*plugin, "192.0.3.7"), (None, 0.0, Vec::new()), "an address without a network");
    let without = with_tables(&config, tables().into_iter().take(1).collect());
    assert_eq!(ask(&*without, "192.0.2.7"), (None, 0.0, Vec::new()), "the tables are not there yet");
    let only_countries =
        with_tables(&IpReputationStep { by_network: false, ..config }, vec![tables().remove(0), tables().remove(2)]);
    assert_eq!((ask(&*only_countries, "192.0.2.7").0, ask(&*only_countries, "203.0.113.7").0), (None, Some(451)));
}

#[test]
fn a_class_of_networks_adds_its_weight_once_and_refuses_nothing() {
    let class = |key: &str, tag: &str, weight| FeedOfStep {
        class: true,
        blocks: true,
        tag: tag.into(),
        ..feed(key, weight, true)
    };
    let classes = vec![class("h1", "asn:hosting", 15.0), class("h2", "asn:hosting", 20.0), class("c", "asn:cdn", 0.0)];
    let config = IpReputationStep { score_threshold: 1.0, ..step(classes) };
    let listed = table(&[
        ("h1", "192.0.2.0", "192.0.2.255"),
        ("h2", "192.0.2.128", "192.0.2.255"),
        ("c", "198.51.100.0", "198.51.100.255"),
    ]);
    let plugin = with_tables(&config, vec![(CLASSES, listed)]);
    assert_eq!(ask(&*plugin, "192.0.2.7"), (None, 15.0, vec!["asn:hosting".to_owned()]));
    assert_eq!(ask(&*plugin, "192.0.2.200"), (None, 20.0, vec!["asn:hosting".to_owned()]), "once, the stronger one");
    assert_eq!(ask(&*plugin, "198.51.100.7"), (None, 0.0, Vec::new()));
}

/// The ends of ranges and their neighbours.
fn around(address: IpAddr) -> [IpAddr; 3] {
    match address {
        IpAddr::V4(address) => {
            let number = u32::from(address);
            [number.wrapping_sub(1), number, number.wrapping_add(1)].map(|number| IpAddr::V4(number.into()))
        }
        IpAddr::V6(address) => {
            let number = u128::from(address);
            [number.wrapping_sub(1), number, number.wrapping_add(1)].map(|number| IpAddr::V6(number.into()))
        }
    }
}
