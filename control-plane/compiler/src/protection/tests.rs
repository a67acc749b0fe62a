use serde_json::{Value, json};

use crate::{Compiler, Settings};
use entities::EntitySet;

const RULE: &str = "SecRule ARGS \"@contains attack\" \"id:1,phase:2,deny,status:403\"";

fn route(plugins: Value) -> Value {
    let backend = json!({"address": "127.0.0.1", "port": 1});
    json!({"kind": "route", "id": "shop", "backend": backend, "plugins": plugins})
}

fn preset() -> Value {
    route(json!([{"plugin": "SecuritySuitePreset", "config": {"threat_policy": "p", "waf_config": "w"}}]))
}

fn waf(fields: &Value) -> Value {
    over(json!({"kind": "waf-config", "id": "w", "rules": [RULE]}), fields)
}

fn policy(fields: &Value) -> Value {
    let tiers = json!([{"min_score": 40, "action": "deny"}]);
    over(json!({"kind": "threat-policy", "id": "p", "dry_run": false, "tiers": tiers}), fields)
}

fn over(mut document: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn set(documents: &[Value]) -> EntitySet {
    let folder = tempfile::tempdir().unwrap();
    for (number, document) in documents.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.json")), document.to_string()).unwrap();
    }
    EntitySet::from_dir(folder.path()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The gaps that are told of, which every write is warned of as well.
fn gaps(documents: &[Value]) -> Vec<String> {
    let set = set(documents);
    let compiler = Compiler::new(Settings::default());
    let gaps = compiler.compile_groups(&set).gaps;
    let warnings = compiler.compile(&set).unwrap_or_else(|problems| panic!("{problems:?}")).warnings;
    assert!(gaps.iter().all(|gap| warnings.contains(gap)), "{gaps:?} {warnings:?}");
    gaps
}

/// The one gap of these entities.
fn gap(documents: &[Value]) -> String {
    let found = gaps(documents);
    let [only] = &found[..] else { panic!("{found:?} of {documents:?}") };
    only.clone()
}

#[test]
fn rules_that_inspect_nothing_are_told() {
    let off = "SecAction \"id:7,phase:1,pass,nolog,ctl:ruleEngine=Off\"";
    for (fields, why) in [
        (json!({"enabled": false}), "route `shop`: the WAF config `w` is disabled"),
        (json!({"rules": []}), "no rule that runs looks at requests"),
        (json!({"rules": [], "rulesets": ["r"]}), "no rule that runs looks at requests"),
        (json!({"rules": [RULE, "SecRuleEngine Off"]}), "`SecRuleEngine Off` switches the rule engine off"),
        (json!({"rules": [off, RULE]}), "the rule 7 switches the rule engine off"),
        (json!({"rules": [RULE, "SecRuleRemoveById 1-999999"]}), "no rule that runs looks at requests"),
        (json!({"rules": ["@import_preset crs", "SecRuleRemoveById 100000-999999"]}), "no rule that runs"),
        (json!({"rules": [RULE, "SecRequestBodyAccess Off"]}), "request bodies are not inspected"),
        (
            json!({"rules": [RULE], "crs": {"paranoia_level": 3}}),
            "the `crs` options of the WAF config `w` have no effect",
        ),
    ] {
        let ruleset = json!({"kind": "waf-ruleset", "id": "r", "enabled": false, "rules": [RULE]});
        let found = gap(&[waf(&fields), policy(&json!({})), ruleset, preset()]);
        assert!(found.contains(why), "{fields}: {found}");
    }
}

#[test]
fn a_chain_without_a_waf_is_told() {
    for plugins in [
        json!([{"plugin": "SecuritySuitePreset"}]),
        json!([{"plugin": "SecuritySuitePreset", "config": {"threat_policy": "p"}}]),
        json!([{"plugin": "SecuritySuitePreset", "config": {"response": false}}]),
        json!([{"plugin": "SvcThreatGate"}, {"plugin": "SvcThreatResponse"}]),
    ] {
        let found = gap(&[policy(&json!({})), route(plugins.clone())]);
        assert!(found.starts_with("route `shop`: no WAF inspects requests"), "{plugins}: {found}");
    }
}

#[test]
fn signals_that_nothing_acts_on_are_told() {
    let (waf_plugin, response) =
        (json!({"plugin": "SvcWaf", "config": {"ref": "w"}}), json!({"plugin": "SvcThreatResponse"}));
    let at = |plugin: &Value, index: u32| over(plugin.clone(), &json!({"plugin_index": index}));
    let swapped = [json!([response, waf_plugin]), json!([at(&waf_plugin, 2), at(&response, 1)])];
    for (plugins, block) in swapped.into_iter().zip([true, false]) {
        let found = gap(&[waf(&json!({"block": block})), policy(&json!({})), route(plugins)]);
        assert!(found.contains("the threat response runs before it"), "{found}");
    }
    let validators = json!([{"plugin": "IncomingRequestValidatorSvcThreatResponse"}]);
    let global = json!({"kind": "global-config", "incoming_request_validators": validators});
    let found = gap(&[waf(&json!({})), policy(&json!({})), global, route(json!([waf_plugin]))]);
    assert!(found.contains("the threat response runs before it"), "{found}");
    let weighing = waf(&json!({"rules": [RULE.replace("deny,status:403", "pass,log")]}));
    let found = gap(&[weighing.clone(), policy(&json!({})), route(json!([waf_plugin]))]);
    assert!(found.contains("no rule denies, and no threat response"), "{found}");
    let filters = json!({"kind": "global-config", "gateway": {"filters": ["threat-response", "waf"]}});
    let found = gap(&[weighing, policy(&json!({})), filters, route(json!([waf_plugin, response]))]);
    assert!(found.contains("the filter `threat-response` runs before `waf`"), "{found}");
}

#[test]
fn policies_that_do_nothing_are_told() {
    let tier = |score: u32, action: &str| json!({"min_score": score, "action": action});
    for (fields, why) in [
        (json!({"tiers": []}), "no tier of the threat policy `p` does more than log"),
        (json!({"tiers": [tier(0, "log"), tier(90, "log")]}), "no tier of the threat policy `p` does more than log"),
        (json!({"tiers": [tier(40, "log"), tier(40, "deny")]}), "no tier of the threat policy `p` does more than log"),
        (json!({"enabled": false}), "the threat policy `p` is disabled"),
        (json!({"exemptions": ["0.0.0.0/0"]}), "the exemptions of the threat policy `p` cover every address"),
        (json!({"exemptions": ["::/1", "8000::/1"]}), "the exemptions of the threat policy `p` cover every address"),
    ] {
        let found = gap(&[waf(&json!({})), policy(&fields), preset()]);
        assert!(found.contains(why), "{fields}: {found}");
    }
}

#[test]
fn scopes_without_a_path_are_told() {
    let scoped = |fields: &Value| over(json!({"plugin": "SvcWaf", "config": {"ref": "w"}}), fields);
    for (fields, why) in [
        (json!({"exclude": [".*"]}), "its `exclude` matches every path (`.*`)"),
        (json!({"exclude": [""]}), "its `exclude` matches every path (``)"),
        (json!({"exclude": ["^/"]}), "its `exclude` matches every path (`^/`)"),
        (json!({"include": ["^/a"], "exclude": ["^/b", "^/[^b]", "^/$"]}), "every path (`^/b`, `^/[^b]`, `^/$`)"),
        (json!({"include": ["^api/"]}), "its `include` matches no path that begins with `/` (`^api/`)"),
        (json!({"include": ["^$", "^api", "^A", "^b"]}), "begins with `/` (`^$`, `^api`, `^A`, 1 more)"),
    ] {
        let found = gap(&[waf(&json!({})), route(json!([scoped(&fields)]))]);
        assert!(
            found.starts_with("route `shop`: the plugin WAF handles no request: ") && found.contains(why),
            "{found}"
        );
        let validator = over(scoped(&fields), &json!({"plugin": "IncomingRequestValidatorSvcWaf"}));
        let global = json!({"kind": "global-config", "incoming_request_validators": [validator]});
        let found = gap(&[waf(&json!({})), global]);
        assert!(found.starts_with("the global chain: ") && found.contains(why), "{found}");
    }
    // The configuration of a preset excludes for all of its plugins, its entry for none.
    let mut closed = preset()["plugins"][0].clone();
    let open = over(closed.clone(), &json!({"exclude": ["^/"]}));
    assert_eq!(gaps(&[waf(&json!({})), policy(&json!({})), route(json!([open]))]), Vec::<String>::new());
    closed["config"]["exclude"] = json!(["^/"]);
    let found = gaps(&[waf(&json!({})), policy(&json!({})), route(json!([closed]))]);
    assert!(found.len() == 3 && found.iter().all(|gap| gap.contains("`exclude` matches every path")), "{found:?}");
    for fields in [
        json!({"include": ["^/never$"]}),
        json!({"include": ["^api/", "^/API/"]}),
        json!({"include": ["^/"]}),
        json!({"exclude": ["^/static/", r"\.css$"]}),
        json!({"enabled": false, "exclude": [".*"]}),
    ] {
        assert_eq!(gaps(&[waf(&json!({})), route(json!([scoped(&fields)]))]), Vec::<String>::new(), "{fields}");
    }
}

#[test]
fn honest_chains_are_not_told_of() {
    let waf_alone = || route(json!([{"plugin": "SvcWaf", "config": {"ref": "w"}}]));
    let gate = || route(json!([{"plugin": "SvcThreatGate"}]));
    let none = json!({});
    for documents in [
        vec![waf(&none), policy(&none), preset()],
        vec![waf(&json!({"rules": ["@import_preset crs"], "crs": {"paranoia_level": 2}})), policy(&none), preset()],
        // What says by its own name that it does not act.
        vec![waf(&json!({"block": false})), policy(&none), preset()],
        vec![waf(&json!({"rules": [RULE, "SecRuleEngine DetectionOnly"]})), policy(&none), preset()],
        vec![waf(&none), policy(&json!({"dry_run": true})), preset()],
        vec![waf(&json!({"block": false})), policy(&none), waf_alone()],
        vec![waf(&json!({"inspect_input_body": false, "rules": [RULE, "SecRequestBodyAccess Off"]})), waf_alone()],
        vec![policy(&none), route(json!([{"plugin": "SecuritySuitePreset", "config": {"waf": false}}]))],
        vec![waf(&none), route(json!([{"plugin": "SecuritySuitePreset", "config": {"waf_config": "w"}}]))],
        // What is not there is not off.
        vec![waf(&none), waf_alone()],
        vec![policy(&none), gate()],
        vec![route(json!([]))],
        // What no route has.
        vec![waf(&json!({"enabled": false})), policy(&json!({"tiers": []}))],
        vec![waf(&json!({"enabled": false})), over(waf_alone(), &json!({"enabled": false}))],
        vec![
            waf(&json!({"rules": []})),
            route(json!([{"plugin": "SvcWaf", "enabled": false, "config": {"ref": "w"}}])),
        ],
        // A part of the addresses.
        vec![waf(&none), policy(&json!({"exemptions": ["0.0.0.0/1", "10.0.0.0/8"]})), preset()],
    ] {
        assert_eq!(gaps(&documents), Vec::<String>::new(), "{documents:?}");
    }
}

#[test]
fn two_policies_for_one_request_are_warned_of_and_are_no_gap() {
    let scoped = |global: (&str, Value), own: (&str, Value), plugin: &str| {
        let use_of = |prefix: &str, (policy, scope): (&str, Value)| {
            json!([over(json!({"plugin": format!("{prefix}{plugin}"), "config": {"policy": policy}}), &scope)])
        };
        let validators = use_of("IncomingRequestValidator", global);
        let documents = [
            policy(&json!({})),
            policy(&json!({"id": "q", "dry_run": true})),
            route(use_of("", own)),
            json!({"kind": "global-config", "incoming_request_validators": validators}),
        ];
        let (set, compiler) = (set(&documents), Compiler::new(Settings::default()));
        let doubled = |text: &String| text.contains("with different policies meet the requests");
        assert!(!compiler.compile_groups(&set).gaps.iter().any(doubled));
        let warnings = compiler.compile(&set).unwrap_or_else(|problems| panic!("{problems:?}")).warnings;
        warnings.into_iter().find(doubled).unwrap_or_default()
    };
    let warned = |global: &str, own: &str, plugin: &str| scoped((global, json!({})), (own, json!({})), plugin);
    for (plugin, title) in [("SvcThreatResponse", "threat response"), ("SvcThreatGate", "threat gate")] {
        let found = warned("p", "q", plugin);
        assert!(found.starts_with(&format!("route `shop`: two plugins {title} with different policies")), "{found}");
        assert_eq!(warned("p", "p", plugin), "", "one policy acts once");
    }
    for (global, own, meet) in [
        (json!({"include": ["^/api/"]}), json!({"exclude": ["^/api/"]}), false),
        (json!({"include": ["^/a/", "^/b/"]}), json!({"include": ["^/c/"]}), false),
        (json!({"exclude": ["^/a"]}), json!({"include": ["^/a/b"]}), false),
        (json!({"include": ["^/a/"]}), json!({"include": ["^/a/b$"]}), true),
        (json!({"exclude": ["^/a/"]}), json!({}), true),
        (json!({"include": ["^/a"]}), json!({"exclude": ["^/a/b"]}), true),
    ] {
        let what = format!("{global} {own}");
        assert_eq!(!scoped(("p", global), ("q", own), "SvcThreatResponse").is_empty(), meet, "{what}");
    }
}

#[test]
fn one_reason_names_the_routes_that_it_holds_for() {
    let mut documents = vec![waf(&json!({"enabled": false}))];
    for id in ["a", "b", "c", "d", "e"] {
        let named = json!({"id": id, "envoy_route": id, "hosts": [format!("{id}.test")]});
        documents.push(over(route(json!([{"plugin": "SvcWaf", "config": {"ref": "w"}}])), &named));
    }
    assert_eq!(gap(&documents), "routes `a`, `b`, `c` and 2 more: the WAF config `w` is disabled");
    // The routes of other gateways have the global chain.
    let validators = json!([{"plugin": "IncomingRequestValidatorSvcWaf", "config": {"ref": "w"}}]);
    let global = json!({"kind": "global-config", "incoming_request_validators": validators});
    assert_eq!(gap(&[documents.remove(0), global]), "the global chain: the WAF config `w` is disabled");
}
