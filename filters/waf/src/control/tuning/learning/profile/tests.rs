use std::iter::empty;

use exchange::fake::FakeHost;
use exchange::{Body, Headers, Slot, Verdict};

use super::*;
use crate::WafStep;
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
    let shown = shown(&window, empty());
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
        profiles(&window, empty()).iter().filter(|one| one.has_rule()).map(Profiled::key).collect();
    assert_eq!(with_rule, ["ARGS:other|/list/{id}"]);
}

#[test]
fn the_rule_reports_what_is_outside_and_refuses_nothing() {
    let window = window(vec![parameter("ARGS:page", 900, &[&["1", "345"], &["7", "123"], &["3", "222"], &["34"]])]);
    let rule = profiles(&window, empty())[0].rule([50_007, 50_008]).unwrap();
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

#[test]
fn the_rule_is_for_every_spelling_of_the_path() {
    for (path, uris) in
        [("/list", ["/list", "/list/", "/list;s=1"]), ("/caf%C3%A9", ["/caf%C3%A9", "/caf%c3%a9/", "//caf%C3%A9"])]
    {
        let one = parameter("ARGS:page", 900, &[&["1", "345"], &["7", "123"], &["3", "222"], &["34"]]);
        let window = window(vec![Parameter { path: path.into(), ..one }]);
        let rule = profiles(&window, empty())[0].rule([50_007, 50_008]).unwrap();
        let earlier = rule.replace(&condition(path).unwrap(), &format!("@streq {path}"));
        for rule in [&rule, &earlier] {
            assert_eq!(profiles(&window, [rule.as_str()].into_iter())[0].written(), Some(50_007), "{rule}");
        }
        let plugin = plugin_of(&format!("SecRuleEngine On\n{rule}\n"), step());
        for uri in uris {
            let host = FakeHost::at(0);
            let (mut exchange, mut slot) = (exchange(&format!("{uri}?page=%27"), Headers::default()), Slot::default());
            send(&*plugin, &mut exchange, Body { bytes: b"", complete: true }, &mut slot, &host);
            plugin.finish(&mut exchange, &mut slot, &host);
            let detail = exchange.score.signals().first().map(|signal| signal.detail.clone()).unwrap_or_default();
            assert!(detail.starts_with("rule 50007"), "{uri}: {detail}");
        }
    }
}

/// A match at a value as usual weighs a quarter; one at any other value or input as much as ever.
#[test]
fn a_match_weighs_less_where_the_value_is_as_usual() {
    let window = window(vec![
        parameter("ARGS:page", 900, &[&["1", "345"], &["7", "123"], &["3", "222"], &["34"]]),
        parameter("ARGS:file", 900, &[&["a.txt"], &["b/c.txt"], &["d.txt", "../x.txt"], &["e/f.txt"]]),
    ]);
    let rules: Vec<String> = profiles(&window, empty())
        .iter()
        .zip([[50_007, 50_008], [50_009, 50_010]])
        .map(|(one, ids)| one.rule(ids).unwrap())
        .collect();
    assert_eq!(
        rules.iter().filter(|rule| rule.contains("tx.palisade_usual")).count(),
        1,
        "dots and slashes are enough"
    );
    let found = "SecRule ARGS|REQUEST_COOKIES \"@rx [7x]\" \"id:3,phase:2,pass,log,msg:'found'\"\n\
                 SecRule ARGS \"@rx (8)\" \"id:4,phase:2,pass,log,msg:'captured',capture,chain\"\nSecRule TX:1 \"@eq 8\"\n\
                 SecRule ARGS \"@rx 6\" \"id:6,phase:2,pass,nolog,setvar:'tx.sixes=1'\"\n\
                 SecRule ARGS \"@rx 6\" \"id:7,phase:2,pass,log,msg:'counted',chain\"\nSecRule TX:sixes \"@eq 1\"\n\
                 SecRule ARGS \"@rx 999\" \"id:5,phase:2,deny,log,msg:'refused'\"";
    let plugin =
        plugin_of(&format!("SecRuleEngine On\n{}\n{found}\n", rules.join("\n")), WafStep { block: false, ..step() });
    let weighed = |path: &str| {
        let (host, mut exchange, mut slot) = (FakeHost::at(0), exchange(path, Headers::default()), Slot::default());
        send(&*plugin, &mut exchange, Body { bytes: b"", complete: true }, &mut slot, &host);
        plugin.finish(&mut exchange, &mut slot, &host);
        let detail = exchange.score.signals().first().map(|signal| signal.detail.clone()).unwrap_or_default();
        (exchange.score.total(), detail)
    };
    for usual in ["/list/8?page=7", "/list/8?PAGE=7", "/list/8?page=8", "/list/8?page=87"] {
        let (weight, detail) = weighed(usual);
        assert_eq!(weight, 5.0, "{usual}: {detail}");
        assert!(detail.contains("; a quarter of the weight, because of usual values: ARGS:"), "{detail}");
    }
    for other in [
        "/list/8?q=7",
        "/list/8?page=7&q=7",
        "/list/8?page=7&q%0a=7",
        "/list/8?page=7&page=7",
        "/list/8?page=7&page=a",
        "/list/8?page=7777777777",
        "/list/8?page=7x",
        // What a rule has kept in TX is not known to be of the value.
        "/list/8?page=6",
        "/list/8?file=x.txt",
        "/list/8/9?page=7",
        "/other?page=7",
    ] {
        let (weight, detail) = weighed(other);
        assert!(weight >= 20.0 && !detail.contains("quarter"), "{other}: {weight} {detail}");
    }
    assert_eq!(weighed("/list/8?page=999").0, 50.0, "what the rules would refuse keeps its weight");
}

#[test]
fn a_rule_that_is_written_already_is_not_written_again() {
    let alike = &[&["1", "345"] as &[&str], &["7", "123"], &["3", "222"]];
    let window = window(vec![parameter("ARGS:page", 900, alike), parameter("ARGS:Size", 800, alike)]);
    let first = profiles(&window, empty())[0].rule([50_007, 50_008]).unwrap();
    let entry = format!("# Profile 50007 by ann at 2026: why\n{}", first.replace("ARGS:page", "ARGS:Page"));
    let rules = || [entry.as_str(), "SecRuleRemoveById 1"].into_iter();
    let written: Vec<Option<u64>> = profiles(&window, rules()).iter().map(Profiled::written).collect();
    assert_eq!(written, [Some(50_007), None]);
    assert_eq!(shown(&window, rules())["parameters"][0]["written"], 50_007);
    let all = named_rules(&window, &["all".to_owned()], rules()).unwrap();
    let keys: Vec<String> = all.numbered(&[50_020, 50_021]).into_iter().map(|one| one.key).collect();
    assert_eq!((all.ids(), keys), (2, vec!["ARGS:Size|/list/{id}".to_owned()]));
    assert_eq!(named_rules(&window, &["ARGS:page".to_owned()], rules()).unwrap().ids(), 0);
    assert!(profiles(&window, rules())[1].has_key("ARGS:size|/list/{id}"));
}

#[test]
fn a_parameter_on_the_paths_of_many_names_has_one_profile() {
    let of = |name: &str, caller: u64, value: &str| Parameter {
        path: format!("/users/{name}/list"),
        count: 2,
        shapes: vec![ValueShape::of((caller << 32) | (caller % 9), value.as_bytes())],
        ..parameter("ARGS:page", 0, &[])
    };
    let mut all: Vec<Parameter> = (0..40).map(|number| of(&format!("n{}", letters(number)), number, "12")).collect();
    // One that many see stays, and is a part of what is known of all: a rule for all reaches it.
    let popular = (50..60).map(|caller| ValueShape::of(caller << 32 | caller, b"abc")).collect();
    all.push(Parameter { count: 90, shapes: popular, ..of("popular", 50, "abc") });
    let all = window(all);
    let found = profiles(&all, empty());
    let shown: Vec<(String, usize, Option<String>)> =
        found.iter().map(|one| (one.key(), one.paths, one.shape.map(|shape| shape.described()))).collect();
    let [(key, paths, values), (other, 1, Some(_))] = shown.as_slice() else { panic!("{shown:?}") };
    assert_eq!(
        (key.as_str(), *paths, other.as_str()),
        ("ARGS:page|/users/{slug}/list", 41, "ARGS:page|/users/popular/list")
    );
    assert_eq!(values.as_deref(), Some("1 to 6 of the characters a-z0-9"));
    let rule = found[0].rule([50_007, 50_008]).unwrap();
    assert!(
        rule.starts_with(r#"SecRule REQUEST_FILENAME "@rx \A/+users(?:;[^/]*)?/+[^/]+/+list(?:;[^/]*)?/*\z""#),
        "{rule}"
    );
    assert!(
        found[0].evidence().contains("170 requests for 41 paths, /users/{slug}/list (any name stands for {slug}),")
    );
}

fn letters(number: u64) -> String {
    [number / 26, number % 26].iter().map(|digit| char::from(b'a' + u8::try_from(*digit).unwrap())).collect()
}
