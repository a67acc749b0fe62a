use std::collections::BTreeSet;
use std::path::Path;

use prost::Message as _;
use serde_json::{Value, json};
use snapshot::{Snapshot, Step, open};
use waf::WafStep;

use super::*;
use kit::{ChallengeRoot, View};
use waf::control::{Crs, RuleCompiler, WafConfig, elements, own_elements};

/// Entities from documents, by way of files as users have them.
fn entities(documents: &[Value]) -> EntitySet {
    load(files(documents).path())
}

fn files(documents: &[Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, document) in documents.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.json")), document.to_string()).unwrap();
    }
    folder
}

fn load(folder: &Path) -> EntitySet {
    EntitySet::from_dir(folder).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn compiler() -> Compiler {
    Compiler::new(Settings { filters_dir: "/filters".into(), link: true, ..Settings::default() })
}

fn waf_config(rules: &[&str]) -> Value {
    json!({ "kind": "waf-config", "id": "waf-config_1", "rules": rules })
}

fn route(plugins: Value) -> Value {
    json!({
        "kind": "route", "id": "route_1", "name": "shop", "backend": { "address": "127.0.0.1", "port": 1 },
        "plugins": plugins,
    })
}

const RULE: &str = "SecRule ARGS \"@contains attack\" \"id:1,phase:2,deny,status:403\"";

fn snapshots(set: &EntitySet) -> Vec<Snapshot> {
    let compiled = compiler().compile(set).unwrap_or_else(|problems| panic!("{problems:?}"));
    compiled.gateway.filters.iter().map(|filter| open(&filter.snapshot).unwrap().1).collect()
}

fn plugins(steps: &[Step]) -> Vec<(&str, bool)> {
    steps.iter().map(|step| (step.plugin.as_str(), step.on_refusal_only)).collect()
}

#[test]
fn the_preset_filter_gets_every_step_in_order_and_the_rules_once() {
    let preset = json!([
        { "plugin": "SvcThreatResponse" },
        { "plugin": "SecuritySuitePreset", "config": { "waf_config": "waf-config_1" } },
    ]);
    let set = entities(&[waf_config(&[RULE]), route(preset)]);
    let snapshot = &snapshots(&set)[0];
    assert_eq!(snapshot.filter, "preset");
    let names: Vec<&str> = snapshot.routes[0].steps.iter().map(|step| step.plugin.as_str()).collect();
    // What has no index comes last.
    assert_eq!(names, ["threat-gate", "waf", "threat-response", "threat-response"]);
    assert_eq!(snapshot.parts.len(), 1);
    let waf = WafStep::decode(snapshot.routes[0].steps[1].config.as_slice()).unwrap();
    assert_eq!(waf.program, snapshot.parts[0].hash);
    assert_eq!((waf.block, waf.block_weight, waf.match_weight), (true, 50.0, 20.0));
}

#[test]
fn single_filters_share_a_chain_and_answer_their_own_refusals() {
    let plugins_of_route = json!([{ "plugin": "SecuritySuitePreset", "config": { "waf_config": "waf-config_1" } }]);
    let global =
        json!({ "kind": "global-config", "gateway": { "filters": ["threat-gate", "waf", "threat-response"] } });
    let set = entities(&[waf_config(&[RULE]), route(plugins_of_route), global]);
    let snapshots = snapshots(&set);
    let of = |number: usize| plugins(&snapshots[number].routes[0].steps);
    assert_eq!(of(0), [("threat-gate", false), ("threat-response", true)]);
    assert_eq!(of(1), [("waf", false), ("threat-response", true)]);
    assert_eq!(of(2), [("threat-response", false)]);
    assert!(snapshots[0].parts.is_empty() && !snapshots[1].parts.is_empty());
}

#[test]
fn equal_entities_are_one_version_and_a_change_is_another() {
    let build = |rule: &str| {
        let set =
            entities(&[waf_config(&[rule]), route(json!([{ "plugin": "Waf", "config": { "ref": "waf-config_1" } }]))]);
        compiler().compile(&set).unwrap().gateway.filters[0].snapshot.clone()
    };
    assert_eq!(build(RULE), build(RULE));
    assert_ne!(build(RULE), build(&RULE.replace("attack", "attacks")));
}

#[test]
fn a_broken_rule_is_shown_with_its_line_and_a_caret() {
    let set = entities(&[waf_config(&[RULE, "# a comment\nSecRule ARGS \"@rx (\" \"id:2,phase:2,deny\""])]);
    let problems = compiler().compile(&set).unwrap_err();
    assert_eq!((problems[0].collection, problems[0].id.as_str()), ("waf-configs", "waf-config_1"));
    assert_eq!(problems[0].problem.pointer, "/rules/1");
    let message = &problems[0].problem.message;
    assert!(message.contains("rule 2, line 2, column") && message.contains('^'), "{message}");
}

#[test]
fn what_does_not_exist_is_named() {
    let fails = |documents: &[Value]| compiler().compile(&entities(documents)).unwrap_err()[0].to_string();
    let preset = fails(&[waf_config(&["@import_preset crz"])]);
    assert!(preset.contains("no preset `crz`") && preset.contains("did you mean `crs`"), "{preset}");
    let plugin = fails(&[route(json!([{ "plugin": "SvcWaff" }]))]);
    assert!(plugin.starts_with("routes/route_1: /plugins/0/plugin: this release has no plugin"), "{plugin}");
    // Entities that do not exist are found missing before anything is compiled.
    let fails = |documents: &[Value]| EntitySet::from_dir(files(documents).path()).unwrap_err()[0].to_string();
    let config = fails(&[route(json!([{ "plugin": "Waf", "config": { "ref": "waf-config_2" } }]))]);
    assert!(config.contains("/plugins/0/config/ref") && config.contains("waf-config_2"), "{config}");
    let policy = fails(&[route(json!([{ "plugin": "SvcThreatGate", "config": { "policy": "p" } }]))]);
    assert!(policy.contains("/plugins/0/config/policy"), "{policy}");
}

#[test]
fn the_core_rule_set_compiles_whole_and_its_options_come_first() {
    let mut config = waf_config(&["@import_preset crs"]);
    config["crs"] = json!({ "paranoia_level": 2, "inbound_anomaly_threshold": 10 });
    let set = entities(&[config]);
    let item = set.get::<WafConfig>("waf-config_1").unwrap();
    let compiled = RuleCompiler::default().compile(&elements(item, &View::new(&set)), &item.crs);
    let compiled = compiled.unwrap_or_else(|problems| panic!("{}", problems[0].message));
    assert!(compiled.rules > 190, "{} rules", compiled.rules);
}

#[test]
fn a_write_is_blamed_on_what_it_changes() {
    let compiler = compiler();
    let changed = |collection, id: &str, change| EntityRef { collection, id: id.to_owned(), change };
    let set = entities(&[waf_config(&["SecRule"])]);
    let own = compiler.admit(&set, &changed("waf-configs", "waf-config_1", Change::Updated)).unwrap_err();
    assert_eq!(own[0].pointer, "/rules/0");
    let other = compiler.admit(&set, &changed("waf-rulesets", "waf-ruleset_1", Change::Deleted)).unwrap_err();
    assert!(other[0].message.starts_with("waf-configs/waf-config_1 would not work any more"), "{}", other[0].message);
}

#[test]
fn a_chain_does_not_reach_into_the_next_element() {
    let open = "SecRule ARGS \"@rx a\" \"id:2,phase:2,deny,chain\"";
    let set = entities(&[waf_config(&[open, "SecRule ARGS \"@rx b\" \"t:none\"", RULE])]);
    let problems = compiler().compile(&set).unwrap_err();
    assert_eq!(problems[0].problem.pointer, "/rules/0");
    assert!(problems[0].problem.message.contains("the chain of this rule has no end"), "{}", problems[0]);
}

#[test]
fn a_preset_that_is_imported_twice_is_there_once() {
    let compiled = |rules: &[String]| {
        let elements: Vec<_> = own_elements(rules).collect();
        RuleCompiler::default().compile(&elements, &Crs::default()).map(|compiled| compiled.rules)
    };
    let import = "@import_preset crs".to_owned();
    let once = compiled(std::slice::from_ref(&import));
    assert!(once.is_ok());
    assert_eq!(compiled(&[import.clone(), import]), once);
}

#[test]
fn fields_of_a_config_hold_for_the_engine() {
    let settings = |fields: Value| {
        let mut config = waf_config(&["SecRequestBodyLimit 1\nSecRequestBodyLimitAction Reject", RULE]);
        fields.as_object().unwrap().iter().for_each(|(name, value)| config[name] = value.clone());
        let set = entities(&[config]);
        let item = set.get::<WafConfig>("waf-config_1").unwrap();
        let compiled = RuleCompiler::default().compile(&elements(item, &View::new(&set)), &item.crs).unwrap();
        seclang::Program::decode(&compiled.program).unwrap().settings()
    };
    let default = settings(json!({}));
    assert_eq!(default.request_body_limit, 1, "what the rules say is not overwritten");
    assert_eq!(default.request_body_limit_action, seclang::program::LimitAction::Reject);
    assert_eq!(default.mode, seclang::program::EngineMode::On);
    assert!(default.request_body_access && default.response_body_access);
    let other = settings(json!({
        "oversize_body_action": "reject", "input_body_limit": 7, "output_body_limit": 8, "inspect_input_body": false,
        "inspect_output_body": false, "output_body_mimetypes": ["application/json", "text/*"], "block": false,
    }));
    assert_eq!(other.response_body_limit, 8);
    assert_eq!(other.mode, seclang::program::EngineMode::DetectionOnly);
    assert!(!other.request_body_access && !other.response_body_access);
    assert!(other.inspects_media_type(b"text/css") && !other.inspects_media_type(b"image/png"));
}

#[test]
fn whether_the_engine_fails_open_reaches_every_step() {
    let preset = json!([{ "plugin": "SecuritySuitePreset", "config": { "waf_config": "waf-config_1" } }]);
    let fails_open = |waf: Value| {
        let global = json!({ "kind": "global-config", "waf": waf });
        let set = entities(&[waf_config(&[RULE]), route(preset.clone()), global]);
        WafStep::decode(snapshots(&set)[0].routes[0].steps[1].config.as_slice()).unwrap().fail_open
    };
    assert!(!fails_open(json!({})));
    assert!(fails_open(json!({ "fail-open": true })));
}

fn grouped(groups: Value, routes: &[(&str, Value)]) -> Vec<Value> {
    let mut documents = vec![
        json!({ "kind": "global-config", "groups": groups }),
        waf_config(&[RULE]),
        json!({ "kind": "waf-config", "id": "waf-config_2", "rules": [RULE.replace("attack", "other")] }),
    ];
    for (index, (id, groups)) in routes.iter().enumerate() {
        documents.push(json!({
            "kind": "route", "id": id, "groups": groups, "backend": { "address": "127.0.0.1", "port": 1 },
            "plugins": [{ "plugin": "Waf", "config": { "ref": format!("waf-config_{}", index % 2 + 1) } }],
        }));
    }
    documents
}

#[test]
fn a_group_has_its_own_routes_settings_and_parts_alone() {
    let groups = json!({ "eu": { "port": 8443, "max_body_bytes": 4_000_000 }, "us": { "delivery": "ecds" } });
    let routes = [("everywhere", json!([])), ("europe", json!(["eu"])), ("rest", json!(["default"]))];
    let compiled = compiler().compile(&entities(&grouped(groups, &routes))).unwrap();
    let of = |name: &str| {
        let gateway = compiled.group(name).unwrap();
        let snapshot = open(&gateway.filters[0].snapshot).unwrap().1;
        let served: Vec<&str> = gateway.routes.iter().map(|route| route.id.as_str()).collect();
        let chains: Vec<String> = snapshot.routes.into_iter().map(|route| route.id).collect();
        (gateway, served.join(" "), chains.join(" "), snapshot.parts.len())
    };
    let (gateway, served, chains, parts) = of("eu");
    assert_eq!((served.as_str(), chains.as_str(), parts), ("europe everywhere", "europe everywhere", 2));
    assert_eq!((gateway.listener.port, gateway.listener.buffer_limit_bytes), (8443, 4_000_000 + (1 << 20)));
    let (gateway, served, chains, parts) = of("us");
    assert_eq!((served.as_str(), chains.as_str(), parts), ("", "everywhere", 1));
    assert!(gateway.ecds_only);
    let (gateway, served, chains, parts) = of("default");
    assert_eq!((served.as_str(), chains.as_str(), parts), ("everywhere rest", "everywhere rest", 1));
    assert_eq!((gateway.listener.port, gateway.ecds_only), (10_000, false));
    assert!(compiled.group("asia").is_none());
}

#[test]
fn routes_of_one_name_serve_different_groups_and_never_the_same() {
    let named = |one: Value, other: Value| {
        let mut documents = grouped(json!({ "eu": {}, "us": {} }), &[("one", one), ("other", other)]);
        for document in &mut documents[3..] {
            document["envoy_route"] = json!("shop");
        }
        compiler().compile(&entities(&documents)).map(|compiled| compiled.groups.len())
    };
    assert_eq!(named(json!(["eu"]), json!(["us", "default"])), Ok(2));
    for (one, other) in [(json!(["eu"]), json!([])), (json!([]), json!([])), (json!(["eu", "us"]), json!(["us"]))] {
        let problems = named(one, other).unwrap_err();
        assert!(problems[0].to_string().contains("has the Envoy route name `shop` already"), "{problems:?}");
    }
}

#[test]
fn a_group_that_routes_name_cannot_go() {
    let set = entities(&grouped(json!({ "eu": {}, "us": {} }), &[("one", json!(["eu"]))]));
    assert!(compiler().compile(&set).is_ok());
    let without = EntitySet::from_dir(files(&grouped(json!({ "us": {} }), &[("one", json!(["eu"]))])).path());
    let found = without.unwrap_err()[0].to_string();
    assert!(found.contains("/groups/0: global-config has no group `eu`"), "{found}");
}

#[test]
fn what_one_group_changes_leaves_the_others_as_they_were() {
    let build = |hosts: &str| {
        let mut documents = grouped(json!({ "eu": {}, "us": {} }), &[("one", json!(["eu"])), ("other", json!(["us"]))]);
        documents[3]["hosts"] = json!([hosts]);
        documents[3]["plugins"][0]["include"] = json!([hosts]);
        compiler().compile(&entities(&documents)).unwrap()
    };
    let (before, after) = (build("a"), build("b"));
    assert_ne!(before.group("eu"), after.group("eu"));
    assert_eq!(before.group("us"), after.group("us"));
    assert_eq!(before.group("default"), after.group("default"));
}

/// What a chain of single filters has in its snapshots of challenges: the filter, and whose keys.
fn challenges(
    provider: Value,
    filters: Value,
    root: ChallengeRoot,
) -> (Vec<(String, Vec<snapshot::Challenge>)>, Vec<String>) {
    let tiers = json!([{ "min_score": 40, "action": "challenge" }]);
    let policy = json!({ "kind": "threat-policy", "id": "p", "tiers": tiers, "challenge_provider": "c" });
    let preset =
        json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "p", "waf_config": "waf-config_1" } }]);
    let global = json!({ "kind": "global-config", "gateway": { "filters": filters } });
    let set = entities(&[waf_config(&[RULE]), policy, provider, route(preset), global]);
    let compiler = Compiler::new(Settings { challenge_root: root, ..Settings::default() });
    let compiled = compiler.compile(&set).unwrap_or_else(|problems| panic!("{problems:?}"));
    let of_filter = |filter: &xds::resources::FilterInput| {
        let (_, snapshot) = open(&filter.snapshot).unwrap();
        let policies = snapshot.routes[0].steps.iter().filter_map(|step| match step.plugin.as_str() {
            "threat-gate" => threat_gate::ThreatGateStep::decode(step.config.as_slice()).unwrap().policy,
            "threat-response" => threat_response::ThreatResponseStep::decode(step.config.as_slice()).unwrap().policy,
            _ => None,
        });
        (filter.name.clone(), policies.filter_map(|policy| policy.challenge).collect())
    };
    (compiled.gateway.filters.iter().map(of_filter).collect(), compiled.warnings)
}

#[test]
fn keys_are_in_the_filters_that_present_challenges_or_judge_them_and_nowhere_else() {
    let provider = json!({ "kind": "pow", "id": "c", "secret": "now", "previous_secret": "before" });
    let filters = json!(["threat-gate", "waf", "threat-response"]);
    let (found, warnings) = challenges(provider, filters, ChallengeRoot::default());
    let counts: Vec<_> = found.iter().map(|(filter, all)| (filter.as_str(), all.len())).collect();
    assert_eq!(counts, [("threat-gate", 1), ("waf", 0), ("threat-response", 1)]);
    assert_eq!(found[0].1[0].keys, [b"now".to_vec(), b"before".to_vec()]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn providers_with_one_cookie_name_have_cookies_of_their_own() {
    let tiers = json!([{ "min_score": 40, "action": "challenge" }]);
    let names = |providers: &[(&str, &str, bool)]| {
        let mut documents = vec![];
        let mut plugins = vec![];
        for (id, cookie, enabled) in providers {
            documents
                .push(json!({ "kind": "pow", "id": id, "cookie_name": cookie, "enabled": enabled, "secret": "s" }));
            let policy = json!({ "kind": "threat-policy", "id": id, "tiers": tiers, "challenge_provider": id });
            documents.push(policy);
            plugins.push(json!({ "plugin": "SvcThreatResponse", "config": { "policy": id } }));
        }
        documents.push(route(json!(plugins)));
        let compiled = compiler().compile(&entities(&documents)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let (_, snapshot) = open(&compiled.gateway.filters[0].snapshot).unwrap();
        let policies = snapshot.routes[0]
            .steps
            .iter()
            .map(|step| threat_response::ThreatResponseStep::decode(step.config.as_slice()).unwrap().policy.unwrap());
        let challenges = policies.map(|policy| policy.challenge);
        challenges.map(|one| one.map(|one| [one.cookie_name, one.other_cookie_name])).collect::<Vec<_>>()
    };
    let shared = names(&[("b", "x", true), ("a", "x", true), ("c", "x", true), ("d", "y", true)]);
    let [b, a, c, d] = [0, 1, 2, 3].map(|at| shared[at].clone().unwrap());
    assert_eq!([&a[0], &d[0]], ["x", "y"], "the first by id, and one that shares no name");
    let own = [&b[0], &a[1], &c[0]];
    assert!(own.iter().all(|name| name.starts_with("x-") && name.len() == 10), "{own:?}");
    assert_eq!(own.into_iter().collect::<BTreeSet<_>>().len(), 3);
    // The name changes where a provider is enabled or disabled: each is read.
    assert_eq!([&b[1], &c[1]], ["x", "x"]);
    assert_eq!(names(&[("a", "x", false), ("b", "x", true)]), [None, Some([b[1].clone(), b[0].clone()])]);
}

#[test]
fn keys_are_made_of_the_root_where_there_is_no_secret() {
    let keys = |more: Value, root| {
        let mut provider = json!({ "kind": "pow", "id": "c" });
        provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (found, warnings) = challenges(provider, json!(["preset"]), root);
        (found[0].1.first().map(|challenge| challenge.keys.clone()), warnings)
    };
    let root = || ChallengeRoot::new([7; 32]);
    let (first, _) = keys(json!({}), root());
    let first = first.unwrap();
    assert_eq!((first.len(), first[0].len()), (1, 32));
    let (second, _) = keys(json!({ "secret_generation": 1 }), root());
    let second = second.unwrap();
    assert_eq!((second.len(), &second[1]), (2, &first[0]), "the one before is still good");
    assert_ne!(second[0], first[0]);
    assert_ne!(keys(json!({}), ChallengeRoot::new([8; 32])).0.unwrap(), first);
    for (more, root, why) in [
        (json!({}), ChallengeRoot::default(), "no `secret`"),
        (json!({ "enabled": false }), root(), "not enabled"),
        (
            json!({ "kind": "vendor", "verify_url": "https://a/b", "response_field": "f", "secret_key": "k" }),
            root(),
            "its `site_key` is empty",
        ),
    ] {
        let (none, warnings) = keys(more, root);
        assert!(none.is_none() && warnings.len() == 1 && warnings[0].contains(why), "{warnings:?}");
    }
    assert_eq!(format!("{:?}", root()), "ChallengeRoot(********)");
}

#[test]
fn a_widget_is_compiled_without_the_key_of_its_verification_or_not_at_all() {
    let whole = json!({
        "kind": "vendor", "id": "c", "secret": "cookies", "site_key": "public", "secret_key": "hunter2",
        "widget_script_url": "https://vendor.example/api.js", "widget_html": "<div data-key='{site_key}'></div>",
        "response_field": "w-response", "verify_url": "https://vendor.example/siteverify", "title": "Shop",
    });
    let filters = json!(["threat-gate", "waf", "threat-response"]);
    let (found, warnings) = challenges(whole.clone(), filters, ChallengeRoot::default());
    assert!(warnings.is_empty(), "{warnings:?}");
    let counts: Vec<_> = found.iter().map(|(filter, all)| (filter.as_str(), all.len())).collect();
    assert_eq!(counts, [("threat-gate", 1), ("waf", 0), ("threat-response", 1)]);
    let challenge = &found[0].1[0];
    assert_eq!((challenge.title.as_str(), &challenge.keys[0]), ("Shop", &b"cookies".to_vec()));
    let widget = challenge.widget.as_ref().unwrap();
    assert_eq!((widget.site_key.as_str(), widget.response_field.as_str()), ("public", "w-response"));
    assert_eq!(widget.frame_sources, ["https://vendor.example"]);
    let bytes = challenge.encode_to_vec();
    assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    assert!(!bytes.windows(10).any(|window| window == b"siteverify"), "nor where it is verified");

    for field in ["site_key", "widget_script_url", "widget_html"] {
        let mut lacking = whole.clone();
        lacking[field] = json!("");
        let (found, warnings) = challenges(lacking, json!(["preset"]), ChallengeRoot::default());
        assert!(found[0].1.is_empty(), "{field}");
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains(&format!("`c` is a widget, and its `{field}` is empty")), "{warning}");
    }
}

#[test]
fn the_plugins_of_a_preset_have_the_paths_of_its_configuration_alone() {
    let compiled = |entry: Value, config: Value| {
        let mut preset = json!({ "plugin": "SecuritySuitePreset", "config": config });
        preset.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        let compiled = compiler().compile(&entities(&[route(json!([preset]))])).unwrap();
        let steps = open(&compiled.gateway.filters[0].snapshot).unwrap().1.routes[0].steps.clone();
        assert!(!steps.is_empty());
        let scopes: BTreeSet<_> = steps.into_iter().map(|step| (step.include, step.exclude)).collect();
        let warning = compiled.warnings.into_iter().find(|warning| warning.contains("have no effect"));
        (scopes.into_iter().collect::<Vec<_>>(), warning)
    };
    let (scopes, warning) =
        compiled(json!({ "include": ["^/a"], "exclude": ["^/b"] }), json!({ "include": ["^/d"], "exclude": ["^/c"] }));
    assert_eq!(scopes, [(vec!["^/d".to_owned()], vec!["^/c".to_owned()])]);
    let warning = warning.unwrap();
    for part in [
        "route `",
        "`/plugins/0`",
        "`include` and `exclude`",
        "`/plugins/0/config/include`",
        "`/plugins/0/config/exclude`",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
    let (scopes, warning) = compiled(json!({ "exclude": ["^/b"] }), json!({}));
    assert_eq!(scopes, [(vec![], vec![])]);
    assert!(warning.is_some_and(|warning| !warning.contains("include")));
    assert_eq!(compiled(json!({}), json!({ "exclude": ["^/c"] })).1, None);
}

#[test]
fn bans_on_fingerprints_need_tls_on_the_listener_and_say_so() {
    let compiled = |gateway: Value| {
        let identity = json!({ "tls_fingerprint": true });
        let global = json!({ "kind": "global-config", "identity": identity, "gateway": gateway });
        let set = entities(&[waf_config(&[RULE]), route(json!([{ "plugin": "SvcThreatGate" }])), global]);
        let compiled = compiler().compile(&set).unwrap_or_else(|problems| panic!("{problems:?}"));
        let (_, snapshot) = open(&compiled.gateway.filters[0].snapshot).unwrap();
        assert!(snapshot.identity.unwrap().tls_fingerprint);
        let warned = compiled.warnings.iter().any(|warning| warning.contains("`gateway.tls`"));
        (compiled.gateway.listener.tls.map(|tls| tls.certificate), warned)
    };
    let tls = json!({ "certificate": "/tls.pem", "private_key": "/tls.key" });
    assert_eq!(compiled(json!({ "tls": tls })), (Some("/tls.pem".to_owned()), false));
    assert_eq!(
        compiled(json!({ "delivery": "ecds" })),
        (None, false),
        "a listener of another control plane may have it"
    );
    assert_eq!(compiled(json!({})), (None, true));
}

#[test]
fn a_bot_policy_with_fingerprints_needs_tls_on_the_listener_and_says_so() {
    let warned = |enabled: bool, gateway: Value| {
        let policy = json!({ "kind": "bot-policy", "id": "bots", "fingerprints": { "enabled": enabled } });
        let bots = route(json!([{ "plugin": "SvcBotGuard", "config": { "policy": "bots" } }]));
        let set = entities(&[policy, bots, json!({ "kind": "global-config", "gateway": gateway })]);
        let compiled = compiler().compile(&set).unwrap_or_else(|problems| panic!("{problems:?}"));
        let start = "bot-policies/bots /fingerprints/enabled: ";
        compiled.warnings.iter().any(|warning| warning.starts_with(start) && warning.contains("`gateway.tls`"))
    };
    assert!(warned(true, json!({})));
    assert!(!warned(false, json!({})));
    assert!(!warned(true, json!({ "tls": { "certificate": "/tls.pem", "private_key": "/tls.key" } })));
    assert!(!warned(true, json!({ "delivery": "ecds" })), "a listener of another control plane may have it");
}
