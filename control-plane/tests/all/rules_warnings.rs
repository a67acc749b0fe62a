//! Rules without effect are told to those who write them, with their place.

use std::sync::Arc;

use crate::cli_support::{Server, palisade, run, text};
use crate::console_support::ConsoleApi;
use crate::entities_support::Answer;
use compiler::{Compiler, Settings};
use kit::ChallengeRoot;
use serde_json::{Value, json};

const RULE: &str = "SecRule ARGS \"@contains attack\" \"id:1,phase:2,deny\"";
const LOGGING: &str = "SecAuditEngine has no effect: what is logged is decided where logs are configured";
const UPDATE: &str = "SecRuleUpdateTargetById 942100 \"!ARGS:q\"";

/// A console whose writes are compiled.
async fn console() -> ConsoleApi {
    let console = ConsoleApi::new().await;
    let settings = Settings { challenge_root: ChallengeRoot::for_checks(), ..Settings::default() };
    console.api.state.entities.add_admission(Arc::new(Compiler::new(settings)));
    console
}

/// The warnings about entities of a collection.
fn told(answer: &Answer, collection: &str) -> Vec<String> {
    assert!(answer.status.is_success(), "{}", answer.text);
    let header = answer.header("x-palisade-warnings");
    let all: Vec<String> = if header.is_empty() { Vec::new() } else { serde_json::from_str(header).unwrap() };
    all.into_iter().filter(|warning| warning.starts_with(&format!("{collection}/"))).collect()
}

#[tokio::test]
async fn writes_of_rules_are_warned_with_the_rule_and_the_line() {
    let console = console().await;
    let rules = json!([RULE, "# mine\nSecAuditEngine On"]);
    let made = console.api.call("POST", "/waf-rulesets", Some(json!({ "id": "base", "rules": rules }))).await;
    assert_eq!(told(&made, "waf-rulesets"), [format!("waf-rulesets/base: /rules/1: line 2: {LOGGING}")]);
    assert_eq!(made.body["rules"], rules, "the document is answered as ever");
    for (method, body) in [("PUT", json!({ "rules": rules })), ("PATCH", json!({ "name": "Base" }))] {
        let changed = console.api.call(method, "/waf-rulesets/base", Some(body)).await;
        assert_eq!(told(&changed, "waf-rulesets").len(), 1, "{method}");
    }
    let other = console.api.call("POST", "/waf-rulesets", Some(json!({ "id": "other", "rules": [RULE] }))).await;
    assert_eq!(told(&other, "waf-rulesets"), [] as [String; 0]);

    let config =
        json!({ "id": "main", "rulesets": ["base"], "rules": ["SecAuditEngine On"], "crs": { "paranoia_level": 2 } });
    let made = console.api.call("POST", "/waf-configs", Some(config)).await;
    let crs = "waf-configs/main: /crs: the crs options have no effect: nothing imports the core rule set with `@import_preset crs`";
    assert_eq!(told(&made, "waf-configs"), [format!("waf-configs/main: /rules/0: line 1: {LOGGING}"), crs.to_owned()]);
    let off = json!({ "rules": ["SecRuleEngine Off", "SecRequestBodyAccess Off"], "crs": null, "rulesets": [] });
    let off = told(&console.api.call("PATCH", "/waf-configs/main", Some(off)).await, "waf-configs");
    assert_eq!(off[0], "waf-configs/main: /rules: `SecRuleEngine Off` switches the rule engine off");
    assert!(off[1].starts_with("waf-configs/main: /inspect_input_body: request bodies are not inspected"), "{off:?}");

    let crs = json!({ "inbound_anomaly_threshold": 100, "outbound_anomaly_threshold": 1_000_000 });
    let far = json!({ "id": "far", "rules": ["@import_preset crs"], "crs": crs });
    let far = told(&console.api.call("POST", "/waf-configs", Some(far)).await, "waf-configs");
    let why = "a response is denied only where 200000 rules match it: a match adds 5 to the anomaly score at most";
    assert_eq!(far, [format!("waf-configs/far: /crs/outbound_anomaly_threshold: {why}")]);

    // A route says it of the configs that it has.
    let preset = json!({ "plugin": "preset", "config": { "waf_config": "main" } });
    let route = console.api.call("POST", "/routes", Some(json!({ "id": "r", "plugins": [preset] }))).await;
    assert!(
        route.header("x-palisade-warnings").contains("the WAF config `main` inspects nothing"),
        "{:?}",
        route.headers
    );
    let again = console.api.call("PATCH", "/waf-configs/main", Some(json!({ "name": "Main" }))).await;
    assert_eq!(told(&again, "waf-configs"), [] as [String; 0]);
    assert!(
        again.header("x-palisade-warnings").contains("the WAF config `main` inspects nothing"),
        "{:?}",
        again.headers
    );
}

#[tokio::test]
async fn lookups_that_find_nothing_are_told() {
    let console = console().await;
    let rules = json!([
        "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,deny\"",
        "SecRule REMOTE_ADDR \"@rbl BL.test\" \"id:2,phase:1,deny\""
    ]);
    let made = console.api.call("POST", "/waf-configs", Some(json!({ "id": "main", "rules": rules }))).await;
    let places =
        "waf-configs/main: /rules: `@geoLookup` never matches, and GEO is empty: no `geo-databases` are enabled";
    let zone = "waf-configs/main: /rules: `@rbl bl.test` never matches: the zone is not asked, add it to `security.dnsbl` of `global-config`";
    assert_eq!(told(&made, "waf-configs"), [places, zone]);
    let plugins = json!([{ "plugin": "SvcWaf", "config": { "ref": "main" } }]);
    let route = console.api.call("POST", "/routes", Some(json!({ "id": "r", "plugins": plugins }))).await;
    let of_route = route.header("x-palisade-warnings");
    assert!(of_route.contains("in the WAF config `main` `@rbl bl.test` never matches"), "{of_route}");

    // With a database and the zone there is nothing to tell.
    let database = json!({ "id": "places", "url": "http://192.0.2.1/places.mmdb" });
    let made = console.api.call("POST", "/geo-databases", Some(database)).await;
    assert!(made.status.is_success(), "{}", made.text);
    let zones = json!({ "security": { "dnsbl": { "zones": [{ "zone": "bl.test." }] } } });
    let changed = console.api.call("PATCH", "/global-config/global-config", Some(zones)).await;
    assert!(changed.status.is_success(), "{}", changed.text);
    let again = console.api.call("PATCH", "/waf-configs/main", Some(json!({ "name": "Main" }))).await;
    assert_eq!(told(&again, "waf-configs"), [] as [String; 0]);
    assert!(!again.header("x-palisade-warnings").contains("never matches"), "{:?}", again.headers);
}

#[tokio::test]
async fn what_a_composition_decides_is_told_of_the_composition() {
    let console = console().await;
    let tuning = json!({ "id": "tuning", "rules": [UPDATE] });
    let alone = console.api.call("POST", "/waf-rulesets", Some(tuning)).await;
    assert_eq!(told(&alone, "waf-rulesets"), [] as [String; 0], "a config may have what it updates");
    let config = json!({ "id": "main", "rulesets": ["tuning"], "rules": [RULE] });
    let expected =
        ["waf-configs/main: /rulesets: ruleset 'tuning', rule 1, line 1: no rule is selected by this update"];
    assert_eq!(told(&console.api.call("POST", "/waf-configs", Some(config)).await, "waf-configs"), expected);
    let again = console.api.call("PATCH", "/waf-rulesets/tuning", Some(json!({ "description": "x" }))).await;
    assert_eq!(told(&again, "waf-configs"), expected, "the author of the ruleset hears it as well");
    let with_crs = json!({ "rules": ["@import_preset crs", RULE] });
    assert_eq!(
        told(&console.api.call("PATCH", "/waf-configs/main", Some(with_crs)).await, "waf-configs"),
        [] as [String; 0]
    );
}

#[tokio::test]
async fn a_draft_and_a_write_hear_the_same() {
    let console = console().await;
    let login = console.login("alice").await;
    let drafts = [
        json!([RULE, "SecAuditEngine On\n\nSecDataDir /tmp"]),
        json!([RULE, UPDATE, "@import_preset crs", "@import_preset crs"]),
        json!([RULE, "SecRule GEO:COUNTRY_CODE|GEO:CITY \"@streq XX\" \"id:2,phase:1,deny\""]),
        json!([
            RULE,
            "SecRule REMOTE_ADDR \"@geoLookup\" \"id:2,phase:1\"\nSecRule REMOTE_ADDR \"@rbl a.test\" \"id:3,phase:1\""
        ]),
        json!([RULE]),
        json!([RULE, "SecRul ARGS"]),
        json!([RULE, RULE]),
        json!(["SecRule ARGS \"@rx (\" \"id:3,phase:2,deny\"", "@import_preset crz"]),
    ];
    for (number, rules) in drafts.into_iter().enumerate() {
        let draft = console.post(&login, "/utils/_compile", &json!({ "rules": rules })).await.body;
        let document = json!({ "id": format!("c{number}"), "rules": rules });
        let made = console.api.call("POST", "/waf-configs", Some(document)).await;
        assert_eq!(draft["done"], made.status == 201, "{rules}: {draft} {}", made.text);
        if made.status == 201 {
            // `rule 2, line 3: why` is `/rules/1: line 3: why`, and `why` is `/rules: why`.
            let place = |warning: &String| {
                if let Some((_, why)) = warning.split_once(": /rules: ") {
                    return why.to_owned();
                }
                let (rule, why) = warning.split_once("/rules/").unwrap().1.split_once(": ").unwrap();
                let rule = rule.parse::<usize>().unwrap() + 1;
                if why.starts_with("line ") { format!("rule {rule}, {why}") } else { format!("rule {rule}: {why}") }
            };
            let written: Vec<String> = told(&made, "waf-configs").iter().map(place).collect();
            assert_eq!(draft["warning"].as_str().unwrap_or_default(), written.join("; "), "{rules}");
        } else {
            let messages = |list: &Value| -> Vec<String> {
                list.as_array().unwrap().iter().map(|error| error["message"].as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(messages(&draft["errors"]), messages(&made.body["errors"]), "{rules}");
        }
    }
}

#[tokio::test]
async fn the_header_has_an_end_and_the_command_line_shows_all() {
    let console = console().await;
    let many = "SecAuditEngine On\n".repeat(50);
    let made = console.api.call("POST", "/waf-rulesets", Some(json!({ "id": "many", "rules": [many] }))).await;
    let header = made.header("x-palisade-warnings");
    let all: Vec<String> = serde_json::from_str(header).unwrap();
    assert!(header.len() <= 3072 && all.len() == 21, "{header}");
    assert_eq!(all[19], format!("waf-rulesets/many: /rules/0: line 20: {LOGGING}"));
    assert!(
        all[20].starts_with("and 3") && all[20].ends_with("more; `palisade check` shows all of them"),
        "{}",
        all[20]
    );

    let folder = tempfile::tempdir().unwrap();
    let (entities, data) = (folder.path().join("entities"), folder.path().join("data"));
    std::fs::create_dir_all(entities.join("waf-rulesets")).unwrap();
    let file = entities.join("waf-rulesets/many.json");
    std::fs::write(&file, json!({ "rules": [many] }).to_string()).unwrap();
    let line = |number: usize| format!("warning: {}: /rules/0: line {number}: {LOGGING}\n", file.display());
    let checked = run(&["check", entities.to_str().unwrap()]);
    let out = text(&checked.stdout);
    assert!(checked.status.success() && (1..=50).all(|number| out.contains(&line(number))), "{out}");

    let server = Server::start(&data);
    let url = format!("http://{}", server.rest);
    let key = data.join("admin-key.json");
    let arguments = ["apply", entities.to_str().unwrap(), "--url", &url, "--key-file", key.to_str().unwrap()];
    let applied = palisade(&arguments).output().unwrap();
    let out = text(&applied.stdout);
    assert!(applied.status.success() && (1..=20).all(|number| out.contains(&line(number))), "{applied:?}");
    assert!(out.contains("warning: and 3"), "{out}");
}
