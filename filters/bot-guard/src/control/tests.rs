//! Policies as they are compiled, and what the console makes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kit::{Collection, Entity as _, EntitySource, Head, Item, OperationAnswer, OperationContext, Slot, Tools};
use serde_json::{Value, json};

use super::compile::{bots, list, step};
use super::*;
use crate::BotReaction;

struct Policies(Arc<Collection>);

impl EntitySource for Policies {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        (collection == BotPolicy::COLLECTION).then(|| self.0.get(id)).flatten()
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == BotPolicy::COLLECTION).then_some(&self.0)
    }
}

fn policy(fields: Value) -> BotPolicy {
    serde_json::from_value(fields).unwrap()
}

fn item(id: &str, body: BotPolicy) -> Item<BotPolicy> {
    Item { head: Head { id: id.into(), ..Head::default() }, body }
}

fn call(path: &str, body: Value, policy: BotPolicy) -> Value {
    let slot = Slot { revision: 1, entity: Arc::new(item("p", policy)) };
    let entities = Policies(Arc::new(BTreeMap::from([("p".to_owned(), slot)])));
    let operation = PLUGIN.operations.iter().find(|operation| operation.path == path).unwrap();
    let context = OperationContext {
        entities: &entities,
        tools: &Tools::default(),
        at_work: None,
        now_millis: 0,
        writing: None,
        traffic: None,
    };
    match operation.body.read(body).unwrap()(&context) {
        OperationAnswer::Done(answer) => answer,
        OperationAnswer::Refused(answer) | OperationAnswer::Conflict(answer) => panic!("{answer}"),
    }
}

#[test]
fn a_name_takes_precedence_over_a_category_and_that_over_all() {
    let rules = json!([
        { "target": "*", "action": "monitor", "weight": 1 },
        { "target": "category:ai", "action": "monitor", "weight": 2 },
        { "target": "category:ai", "action": "deny", "weight": 3 },
        { "target": "name:gptbot", "action": "deny", "weight": 4 },
        { "target": "name:gptbot", "action": "allow" },
    ]);
    let list = bots(&policy(json!({ "rules": rules })));
    let of = |name: &str| list.iter().find(|bot| bot.name == name).map(|bot| (bot.reaction(), bot.weight)).unwrap();
    assert_eq!(of("gptbot"), (BotReaction::Deny, 4.0));
    assert_eq!(of("ccbot"), (BotReaction::Monitor, 2.0), "the first of a target counts");
    assert_eq!(of("dotbot"), (BotReaction::Monitor, 1.0));
    let none = bots(&policy(json!({ "rules": [] })));
    assert!(none.iter().all(|bot| bot.reaction() == BotReaction::Allow && bot.weight == 0.0));
}

#[test]
fn a_new_policy_denies_no_bot_and_can_verify_seven() {
    let list = bots(&BotPolicy::default());
    assert_eq!(list.len(), 27);
    assert!(list.iter().all(|bot| bot.reaction() != BotReaction::Deny));
    assert_eq!(list.iter().filter(|bot| !bot.method.is_empty()).count(), 7);
    let step = step(&item("p", BotPolicy::default()), Vec::new());
    assert_eq!((step.name.as_str(), step.verify, step.bypass, step.status), ("p", true, true, 403));
    assert_eq!((step.impersonator(), step.impersonator_weight, step.unknown_weight), (BotReaction::Deny, 60.0, 0.0));
}

#[test]
fn a_method_is_that_of_its_domains() {
    let signature = |suffixes: Value, verifiable: bool| {
        let fields = json!({ "name": "a", "category": "ai", "ua_contains": ["a"], "rdns_suffixes": suffixes, "verifiable": verifiable });
        serde_json::from_value::<BotSignature>(fields).unwrap().domains()
    };
    let both = Some(vec!["a.example".to_owned(), "b.example".to_owned()]);
    assert_eq!(signature(json!([".b.example", ".A.example", ".a.example"]), true), both);
    assert_eq!(signature(json!([".a.example"]), false), None);
}

#[test]
fn tokens_of_all_bots_together_are_bounded() {
    let with = |bytes: usize| {
        let tokens: Vec<String> = (0..bytes / 256).map(|number| format!("{number:0256}")).collect();
        let bots = tokens
            .chunks(64)
            .enumerate()
            .map(|(number, tokens)| json!({ "name": format!("b{number}"), "category": "ai", "ua_contains": tokens }));
        let policy = policy(json!({ "signatures": bots.collect::<Vec<_>>(), "rules": [] }));
        policy.check(&Head::default(), &NoReferences).into_iter().map(|problem| problem.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(with(65_536), [] as [&str; 0]);
    assert_eq!(
        with(65_792),
        ["/signatures: all `ua_contains` have 65792 bytes (expected at most 65536 bytes together)"]
    );
}

struct NoReferences;

impl kit::References for NoReferences {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}

#[test]
fn robots_txt_asks_those_to_stay_away_that_are_denied_or_weigh_much() {
    let rules = json!([
        { "target": "name:gptbot", "action": "deny" },
        { "target": "name:omgili", "action": "monitor", "weight": 50 },
        { "target": "name:ccbot", "action": "monitor", "weight": 49 },
        { "target": "name:diffbot", "action": "allow", "weight": 90 },
    ]);
    let body =
        policy(json!({ "rules": rules, "robots_extra": "Sitemap: https://a.example/s.xml\n", "llms_txt": "# A" }));
    let answer = call("/security/_robots_txt", json!({ "policy": "p" }), body);
    let expected = "# Generated from the bot policy of this site.\n\nUser-agent: gptbot\nDisallow: /\n\n\
                    User-agent: omgili\nUser-agent: omgilibot\nDisallow: /\n\nUser-agent: *\nDisallow:\n\n\
                    Sitemap: https://a.example/s.xml\n";
    assert_eq!(answer, json!({ "done": true, "robots_txt": expected, "llms_txt": "# A" }));

    let injected = json!([{ "name": "x", "category": "ai", "ua_contains": ["a\nDisallow: /", "b#", "c d", " e "] }]);
    let body = policy(json!({ "signatures": injected, "rules": [{ "target": "*", "action": "deny" }] }));
    let text = call("/security/_robots_txt", json!({ "policy": "p" }), body)["robots_txt"].as_str().unwrap().to_owned();
    assert!(text.contains("\nUser-agent: e\nDisallow: /\n") && text.matches("Disallow: /").count() == 1, "{text}");

    let unknown = call("/security/_robots_txt", json!({ "policy": "q" }), BotPolicy::default());
    assert_eq!(unknown, json!({ "done": false, "error": "there is no bot policy `q`" }));
}

#[test]
fn texts_are_compiled_if_the_policy_serves_them() {
    let texts = |fields: Value| {
        let list = list(&policy(fields));
        (String::from_utf8(list.robots_txt).unwrap(), String::from_utf8(list.llms_txt).unwrap())
    };
    let none = (String::new(), String::new());
    assert_eq!(texts(json!({ "llms_txt": "# A", "robots_extra": "Disallow: /x" })), none, "not by default");
    let licensed = json!({ "serve_robots_txt": true, "serve_llms_txt": true, "llms_txt": "# A", "rules": [],
        "robots_licenses": ["https://a.example/rsl.xml", "https://b.example/"], "robots_extra": "Disallow: /x" });
    let expected = "# Generated from the bot policy of this site.\nLicense: https://a.example/rsl.xml\n\
                    License: https://b.example/\n\nUser-agent: *\nDisallow:\n\nDisallow: /x\n";
    assert_eq!(texts(licensed), (expected.to_owned(), "# A".to_owned()));
    assert!(policy(json!({ "serve_robots_txt": true })).serves());
    assert!(!policy(json!({ "serve_llms_txt": true })).serves(), "there is no llms.txt");
    let wrong = policy(json!({ "robots_licenses": ["https://a.example/\nDisallow: /", "x"] }));
    let problems = wrong.check(&Head::default(), &NoReferences).into_iter().map(|problem| problem.pointer);
    assert_eq!(problems.collect::<Vec<_>>(), ["/robots_licenses/0", "/robots_licenses/1"]);
}

#[test]
fn the_catalogue_has_every_known_signature() {
    let catalog = call("/security/_bot_catalog", json!({}), BotPolicy::default());
    assert_eq!(catalog["categories"], json!(["search", "ai", "seo", "monitoring"]));
    assert_eq!(
        (catalog["entries"].as_array().unwrap().len(), &catalog["entries"][0]["name"]),
        (27, &json!("googlebot"))
    );
    let status = call("/security/_bot_status", json!({}), BotPolicy::default());
    assert_eq!(status, json!({ "verification": null, "ranges": [], "key_directories": [] }));
}

#[test]
fn settings_name_resolvers_by_their_addresses() {
    let problems = |resolvers: Value| {
        let settings: BotSettings = serde_json::from_value(json!({ "resolvers": resolvers })).unwrap();
        kit::Settings::check(&settings).into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
    };
    assert_eq!(problems(json!(["192.0.2.1", "192.0.2.1:5353", "::1", "[::1]:5353"])), [] as [&str; 0]);
    assert_eq!(problems(json!(["dns.example", "192.0.2.1:x", ""])), ["/resolvers/0", "/resolvers/1", "/resolvers/2"]);
    assert_eq!(problems(json!(vec!["::1"; 9])), ["/resolvers"]);
}

#[test]
fn the_maze_needs_a_robots_txt_that_forbids_and_is_none_for_impersonators() {
    let problems = |fields: Value| {
        let found = policy(fields).check(&Head::default(), &NoReferences);
        found.into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
    };
    let rules = json!([{ "target": "name:gptbot", "action": "deny" }, { "target": "name:ccbot", "action": "maze" }]);
    assert_eq!(problems(json!({ "rules": rules, "serve_robots_txt": true })), [] as [&str; 0]);
    assert_eq!(problems(json!({ "rules": rules })), ["/rules/1/action"]);
    assert_eq!(problems(json!({ "impersonator_action": "maze" })), ["/impersonator_action"]);
    let body = policy(json!({ "rules": rules, "serve_robots_txt": true }));
    let text = call("/security/_robots_txt", json!({ "policy": "p" }), body)["robots_txt"].as_str().unwrap().to_owned();
    assert!(text.contains("User-agent: ccbot\nDisallow: /\n"), "{text}");
}
