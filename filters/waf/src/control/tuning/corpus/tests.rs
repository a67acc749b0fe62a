//! The corpus against the core rule set of this build.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use seclang::Engine;

use super::{Attack, Target, attacks, inject, request_with, variants};
use crate::Watched;
use crate::control::composition::Composition;
use crate::control::operations::engines::Engines;
use crate::control::operations::trial::{Trial, TrialRequest, TrialResponse};
use crate::control::{Crs, own_elements};
use crate::samples::messages::{SampledHeader, SampledRequest};

/// The files of the core rule set that look for attacks and leaks, and the category of each.
const FAMILIES: [(u32, &str); 21] = [
    (911, "method"),
    (913, "scanner"),
    (920, "protocol"),
    (921, "protocol-attack"),
    (922, "multipart"),
    (930, "lfi"),
    (931, "rfi"),
    (932, "rce"),
    (933, "php"),
    (934, "generic"),
    (941, "xss"),
    (942, "sqli"),
    (943, "session-fixation"),
    (944, "java"),
    (950, "data-leak"),
    (951, "sql-leak"),
    (952, "java-leak"),
    (953, "php-leak"),
    (954, "iis-leak"),
    (955, "web-shell"),
    (956, "ruby-leak"),
];

/// The core rule set at a paranoia level, with the thresholds that it comes with.
fn core_rules(paranoia_level: u32) -> Arc<Engine> {
    core_rules_after("", paranoia_level)
}

/// The core rule set behind a rule.
fn core_rules_after(rule: &str, paranoia_level: u32) -> Arc<Engine> {
    let rules = [rule.to_owned(), "@import_preset crs".to_owned()];
    let crs = Crs { paranoia_level, ..Crs::default() };
    let composition = Composition::new(&own_elements(&rules).collect::<Vec<_>>(), &crs);
    Engines::default().build(&composition).unwrap().engine
}

fn run(engine: &Arc<Engine>, request: &TrialRequest, response: Option<&TrialResponse>) -> Watched {
    let trial =
        Trial { engine, config: None, places: false, zones: Vec::new(), tables: None, now_millis: 1_700_000_000_000 };
    trial.run(request, response).unwrap()
}

/// A rule refused the exchange; a limit is no rule.
fn is_blocked(outcome: &Watched) -> bool {
    outcome.blocked.as_ref().is_some_and(|refusal| refusal.rule_id != 0)
}

/// The phases in which rules of the attack's own file matched.
fn phases(attack: &Attack, outcome: &Watched) -> BTreeSet<u8> {
    let matches = outcome.transaction.matched_rules().iter();
    let own = matches.filter(|found| found.logged && found.rule_id / 1000 == u64::from(attack.family));
    own.map(|found| found.phase).collect()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long the corpus takes")]
fn every_attack_is_blocked_at_its_level_and_not_below() {
    let engines: BTreeMap<u32, Arc<Engine>> = (1..=4).map(|level| (level, core_rules(level))).collect();
    let mut missed = Vec::new();
    let mut per_phase: BTreeMap<u8, usize> = BTreeMap::new();
    let start = Instant::now();
    for attack in attacks() {
        let outcome = run(&engines[&attack.paranoia], &attack.request(), attack.response().as_ref());
        let phases = phases(attack, &outcome);
        if !is_blocked(&outcome) || phases.is_empty() {
            let ids: Vec<u64> = outcome.transaction.matched_ids().collect();
            missed.push(format!("{} passes at level {}: {ids:?}", attack.name, attack.paranoia));
        }
        phases.into_iter().for_each(|phase| *per_phase.entry(phase).or_default() += 1);
    }
    println!("{} attacks in {:?}; by phase {per_phase:?}", attacks().len(), start.elapsed());
    for attack in attacks().iter().filter(|attack| attack.paranoia > 1) {
        let below = run(&engines[&(attack.paranoia - 1)], &attack.request(), attack.response().as_ref());
        if is_blocked(&below) && !phases(attack, &below).is_empty() {
            missed.push(format!("{} is blocked at level {} already", attack.name, attack.paranoia - 1));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    for phase in 1..=4 {
        assert!(per_phase.get(&phase).is_some_and(|count| *count >= 3), "phase {phase}: {per_phase:?}");
    }
}

#[test]
fn most_rules_of_the_first_level_match_some_attack() {
    let engine = core_rules(1);
    let mut matched = BTreeSet::new();
    for attack in attacks().iter().filter(|attack| attack.paranoia == 1) {
        matched.extend(run(&engine, &attack.request(), attack.response().as_ref()).transaction.matched_ids());
    }
    let all = rules_of_level_1();
    let unmatched: Vec<u64> = all.difference(&matched).copied().collect();
    println!("{} of {} rules match no attack: {unmatched:?}", unmatched.len(), all.len());
    assert!(all.len() > 200 && unmatched.len() * 10 <= all.len(), "{unmatched:?}");
}

#[test]
fn harmless_exchanges_pass_at_every_level() {
    for level in 1..=4 {
        let engine = core_rules(level);
        let response: TrialResponse = serde_json::from_str(
            r#"{"headers": {"content-type": "text/html"}, "body": "<html><body><p>Two chairs</p></body></html>"}"#,
        )
        .unwrap();
        let outcome = run(&engine, &request_with(Some("chairs")), Some(&response));
        assert!(!is_blocked(&outcome), "level {level}: {:?}", outcome.transaction.matched_ids().collect::<Vec<_>>());
    }
}

#[test]
fn names_are_unique_and_say_what_they_are() {
    let mut names = BTreeSet::new();
    let mut payloads = BTreeSet::new();
    for attack in attacks() {
        let Attack { name, category, payload, .. } = attack;
        assert!(names.insert(name), "{name} occurs twice");
        assert!(payload.as_ref().is_none_or(|payload| payloads.insert(payload)), "the payload of {name} occurs twice");
        let kebab = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(name.bytes().all(kebab), "{name}");
        assert!(name.strip_prefix(category.as_str()).is_some_and(|rest| rest.starts_with('-')), "{name}: {category}");
        assert!(FAMILIES.contains(&(attack.family, category)), "{name}: {} {category}", attack.family);
        assert!((1..=4).contains(&attack.paranoia), "{name}");
        let sent = attack.payload.is_some() || attack.request.is_some() || attack.response.is_some();
        assert!(sent, "{name} does nothing");
    }
}

/// The ids of the rules of the first paranoia level that look for something.
fn rules_of_level_1() -> BTreeSet<u64> {
    let sources = waf_presets::by_name("crs").unwrap().sources();
    let mut ids = BTreeSet::new();
    for source in sources {
        let text = String::from_utf8_lossy(&source.text).into_owned();
        for rule in text.split("\nSecRule ").filter(|rule| rule.contains("tag:'paranoia-level/1'")) {
            let id = rule
                .split("\"id:")
                .nth(1)
                .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
            ids.extend(id.filter(|_| rule.contains("msg:'")).map(|id| id.parse::<u64>().unwrap()));
        }
    }
    ids
}

#[test]
fn every_family_is_covered() {
    let files: BTreeSet<u64> = rules_of_level_1().into_iter().map(|id| id / 1000).collect();
    assert_eq!(files, FAMILIES.iter().map(|(family, _)| u64::from(*family)).collect());
    for (family, category) in FAMILIES {
        let own = attacks().iter().filter(|attack| attack.family == family);
        let payloads = own.clone().filter(|attack| attack.payload.is_some()).count();
        let least = match category {
            "sqli" | "xss" => 60,
            "rce" => 50,
            "lfi" | "php" => 25,
            "java" | "generic" => 20,
            "rfi" => 10,
            _ => 0,
        };
        assert!(own.count() >= 3 && payloads >= least, "{category}: {payloads}");
    }
}

#[test]
fn most_variants_are_caught_as_well() {
    let engines: BTreeMap<u32, Arc<Engine>> = (1..=4).map(|level| (level, core_rules(level))).collect();
    let (mut all, mut passed) = (0_usize, Vec::new());
    for attack in attacks() {
        for variant in variants(attack) {
            all += 1;
            if !is_blocked(&run(&engines[&attack.paranoia], &request_with(Some(&variant)), None)) {
                passed.push(format!("{}: {variant:?}", attack.name));
            }
        }
    }
    println!("{} of {all} variants pass at the levels of their attacks", passed.len());
    assert!(passed.len() * 20 <= all, "{}", passed.join("\n"));
}

#[test]
fn an_exclusion_that_is_too_wide_lets_payloads_through_where_it_reaches() {
    let exclusion = "SecRule REQUEST_FILENAME \"@streq /cms/edit\" \
        \"id:10001,phase:1,pass,nolog,ctl:ruleRemoveTargetById=942100;ARGS:content\"";
    let (before, after) = (core_rules(1), core_rules_after(exclusion, 1));
    let let_through = |uri: &str, target: &str| {
        let header = |name: &[u8], value: &[u8]| SampledHeader { name: name.to_vec(), value: value.to_vec() };
        let sample = SampledRequest {
            method: "GET".to_owned(),
            uri: uri.as_bytes().to_vec(),
            headers: vec![header(b"host", b"shop.example")],
            ..SampledRequest::default()
        };
        let target = Target::parse(target.as_bytes()).unwrap();
        let blocks = |engine: &Arc<Engine>, payload: &str| {
            let injected = inject(&sample, &target, payload.as_bytes()).unwrap();
            let uri = String::from_utf8(injected.uri).unwrap();
            is_blocked(&run(engine, &TrialRequest { uri, ..request_with(None) }, None))
        };
        let payloads = attacks().iter().filter(|attack| attack.payload.is_some());
        let lost = payloads.filter(|attack| {
            let payload = attack.payload.as_deref().unwrap();
            blocks(&before, payload) && !blocks(&after, payload)
        });
        lost.map(|attack| attack.name.as_str()).collect::<Vec<_>>()
    };
    let lost = let_through("/cms/edit?content=x&title=y", "ARGS:content");
    println!("{} payloads: {lost:?}", lost.len());
    assert!(lost.len() > 10 && lost.contains(&"sqli-or-true-comment"), "{lost:?}");
    for (uri, target) in [("/cms/edit?content=x&title=y", "ARGS:title"), ("/cms/view?content=x", "ARGS:content")] {
        assert_eq!(let_through(uri, target), [""; 0], "{uri} {target}");
    }
}

#[test]
fn a_payload_alone_is_in_the_query_of_a_browser() {
    let attack = attacks().iter().find(|attack| attack.name == "sqli-or-true-comment").unwrap();
    let sent = attack.request();
    assert_eq!((sent.method.as_str(), sent.uri.as_str()), ("GET", "/search"));
    assert_eq!(sent.query, Some(serde_json::json!({"q": "1' OR 1=1-- -"})));
    assert!(attack.response().is_none());
    let attack = attacks().iter().find(|attack| attack.name == "data-leak-cgi-source").unwrap();
    assert!(attack.response().is_some() && attack.request().query.is_none());
}
