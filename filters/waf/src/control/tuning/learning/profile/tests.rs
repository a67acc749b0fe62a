use exchange::fake::FakeHost;
use exchange::{Body, Headers, Slot, Verdict};

use super::*;
use crate::samples::cardinality;
use crate::samples::messages::ValueShape;
use crate::tests::{exchange, plugin_of, send, step};

/// Callers in two networks, each with its values.
fn parameter(target: &str, count: u64, values: &[&[&str]]) -> Parameter {
    let (mut shapes, mut distinct) = (Vec::new(), Vec::new());
    for (caller, values) in (1..).zip(values) {
        for value in *values {
            let caller = (caller << 32) | (caller % 2);
            crate::samples::shape::add(&mut shapes, ValueShape::of(caller, value.as_bytes()), 16);
            cardinality::add(&mut distinct, value.as_bytes());
        }
    }
    Parameter { config: "shop".into(), target: target.into(), path: "/list/{id}".into(), count, shapes, distinct }
}

fn window(parameters: Vec<Parameter>) -> Window {
    let keyed = |one: Parameter| (parameter_key(&one.target, &one.path), one);
    Window { parameters: parameters.into_iter().map(keyed).collect(), ..Window::default() }
}

#[test]
fn what_everybody_sends_alike_has_a_rule() {
    let free = &["it's; a <b>text</b>"] as &[&str];
    let window = window(vec![
        parameter("ARGS:page", 900, &[&["1", "345"], &["7", "123"], &["3", "222"], &["34"]]),
        parameter("ARGS:sort", 800, &[&["name", "price"], &["name"], &["name"]]),
        parameter("ARGS:ref", 700, &[&["a-7", "b-12"], &["c-9"], &["d-1"]]),
        parameter("ARGS:q", 600, &[free, free, free, free]),
        parameter("ARGS:few", 19, &[&["1"], &["2"], &["3"]]),
        parameter("ARGS:lone", 500, &[&["1"], &["2"]]),
        parameter("ARGS:a b", 400, &[&["1"], &["2"], &["3"]]),
    ]);
    let shown = shown(&window);
    let all = shown["parameters"].as_array().unwrap();
    let told = |one: &Value| {
        (
            one["target"]["full"].as_str().unwrap().to_owned(),
            one["kind"].as_str().unwrap().to_owned(),
            one["seclang"].is_string(),
        )
    };
    let expected = [
        ("ARGS:page", "number", true),
        ("ARGS:sort", "word", true),
        ("ARGS:ref", "identifier", true),
        ("ARGS:q", "text", false),
        ("ARGS:lone", "unknown", false),
        ("ARGS:a b", "unknown", false),
        ("ARGS:few", "unknown", false),
    ];
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        expected.map(|(name, kind, rule)| (name.to_owned(), kind.to_owned(), rule))
    );
    assert_eq!((&shown["known"], &shown["with_rule"]), (&json!(7), &json!(3)));
    let page = &all[0];
    assert_eq!((&page["callers"], &page["networks"], &page["fitting"]), (&json!(4), &json!(2), &json!(4)));
    assert_eq!(
        (&page["shortest"], &page["longest"], &page["key"]),
        (&json!(1), &json!(3), &json!("ARGS:page|/list/{id}"))
    );
    assert!((5..=9).contains(&page["distinct"].as_u64().unwrap()), "{page}");
    assert!(all[3..].iter().all(|one| !one["note"].as_str().unwrap().is_empty()), "{all:#?}");
}

#[test]
fn callers_of_one_network_alone_make_no_profile() {
    let mut one = parameter("ARGS:page", 900, &[&["1"], &["2"], &["3"], &["4"]]);
    let others = parameter("ARGS:other", 900, &[&["1"], &["2"], &["3"], &["4"]]);
    one.shapes.retain(|shape| shape.caller & 1 == 0);
    one.shapes.push(ValueShape { caller: 9 << 32, ..ValueShape::of(0, b"5") });
    let window = window(vec![one, others]);
    let with_rule: Vec<String> =
        profiles(&window).iter().filter(|one| one.rule(1).is_some()).map(Profiled::key).collect();
    assert_eq!(with_rule, ["ARGS:other|/list/{id}"]);
}

#[test]
fn the_rule_reports_what_is_outside_and_refuses_nothing() {
    let window = window(vec![parameter("ARGS:page", 900, &[&["1", "345"], &["7", "123"], &["3", "222"], &["34"]])]);
    let rule = profiles(&window)[0].rule(50_007).unwrap();
    let rules = format!(
        "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog,setvar:tx.notice_anomaly_score=2,setvar:tx.inbound_anomaly_score_pl1=0\"\n{rule}\n\
         SecRule TX:inbound_anomaly_score_pl1 \"@ge 2\" \"id:2,phase:2,pass,log,msg:'points'\"\n"
    );
    let plugin = plugin_of(&rules, step());
    let matched = |path: &str| {
        let (host, mut exchange, mut slot) = (FakeHost::at(0), exchange(path, Headers::default()), Slot::default());
        assert_eq!(send(&*plugin, &mut exchange, Body { bytes: b"", complete: true }, &mut slot, &host), Verdict::Pass);
        plugin.finish(&mut exchange, &mut slot, &host);
        host.events_json()
            .iter()
            .flat_map(|event| event["matches"].as_array().cloned().unwrap_or_default())
            .map(|one| one["rule_id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    for inside in [
        "/list/7?page=1",
        "/list/7?page=123456",
        "/list/7?page=",
        "/list/7",
        "/list/7?other=%27",
        "/other?page=%27",
        "/list/7/x?page=a",
    ] {
        assert_eq!(matched(inside), [] as [u64; 0], "{inside}");
    }
    for outside in
        ["/list/7?page=1%27", "/list/8?page=a", "/list/7?page=1&page=-1", "/list/7?page=1234567", "/list/7?page=1%0a"]
    {
        assert_eq!(matched(outside), [50_007, 2], "{outside}");
    }
}
