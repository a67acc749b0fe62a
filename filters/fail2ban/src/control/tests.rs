use kit::Guard;
use serde_json::{Value, json};

use super::*;
use crate::{Fail2BanScope, KeyPart, KeyPlace, StatusRange};

fn read(config: Value) -> Result<Fail2BanConfig, Vec<FieldProblem>> {
    Fail2BanConfig::read(config.as_object().unwrap())
}

fn pointers(config: Value) -> Vec<String> {
    read(config).unwrap_err().into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let step = read(json!({})).unwrap().step();
    let part = |place: KeyPlace, text: &str| KeyPart { place: place.into(), text: text.to_owned() };
    let key = [part(KeyPlace::RouteId, ""), part(KeyPlace::Literal, "-"), part(KeyPlace::Ip, "")];
    assert_eq!((step.dry_run, step.ban_scope(), step.weight), (true, Fail2BanScope::Auto, 3.0));
    assert_eq!((step.key.as_slice(), step.rules.len(), step.ignored.len()), (&key[..], 0, 0));
    let general = step.general.unwrap();
    assert_eq!((general.max_retry, general.detect_millis, general.ban_millis), (5, 600_000, 3_600_000));
    let statuses = [401, 403, 407, 429].map(|status| StatusRange { first: status, last: status });
    assert_eq!(general.statuses, statuses);
}

#[test]
fn rules_take_what_they_leave_out_from_the_configuration() {
    let config = json!({ "max_retry": 9, "ban_time": "2h", "status_codes": ["500-599", "403"], "url_rules": [
        { "pattern": "^/login$", "methods": ["post"], "max_retry": 3, "detect_time": "1h", "ban_time": "1d", "status_codes": ["401"] },
        { "pattern": "^/api/" },
    ] });
    let config = read(config).unwrap();
    let step = config.step();
    let [login, api] = &step.rules[..] else { panic!("{step:?}") };
    assert_eq!((login.max_retry, login.detect_millis, login.ban_millis), (3, 3_600_000, 86_400_000));
    assert_eq!((login.methods.as_slice(), login.statuses[0].first), (&["POST".to_owned()][..], 401));
    assert_eq!((api.max_retry, api.detect_millis, api.ban_millis, api.methods.len()), (9, 600_000, 7_200_000, 0));
    assert_eq!(api.statuses[0], StatusRange { first: 500, last: 599 });
    assert_eq!(config.longest_ban_millis(), 86_400_000);
    let longest = |config: Value| PLUGIN.longest_ban.unwrap()(config.as_object().unwrap());
    assert_eq!((longest(json!({})), longest(json!({ "ban_time": "x" }))), (Some(3600), None));
}

#[test]
fn each_fault_has_its_pointer() {
    let wrong = json!({
        "max_retry": 0, "detect_time": "9s", "ban_time": "366d", "status_codes": ["600", "499-400", "4xx", "401"], "counter_key": "${ip}",
        "url_rules": [
            { "pattern": "(", "methods": ["P OST"], "max_retry": 10_001, "status_codes": [] },
            { "detect_time": "8d", "ban_time": "0s" },
        ],
        "ignored": ["192.0.2.1", "office"], "fabric_weight": 101,
    });
    let expected = [
        "/max_retry",
        "/detect_time",
        "/ban_time",
        "/status_codes/0",
        "/status_codes/1",
        "/status_codes/2",
        "/counter_key",
        "/url_rules/0/max_retry",
        "/url_rules/0/status_codes",
        "/url_rules/0/pattern",
        "/url_rules/0/methods/0",
        "/url_rules/1/detect_time",
        "/url_rules/1/ban_time",
        "/url_rules/1/pattern",
        "/ignored/1",
        "/fabric_weight",
    ];
    assert_eq!(pointers(wrong), expected);
    assert_eq!(pointers(json!({ "status_codes": [] })), ["/status_codes"]);
    assert_eq!(pointers(json!({ "max_retries": 3 })), ["/max_retries"]);
    assert_eq!(pointers(json!({ "ban_scope": "all" })), ["/ban_scope"]);
    assert_eq!(pointers(json!({ "url_rules": vec![json!({ "pattern": "a" }); 65] })), ["/url_rules"]);
    assert_eq!(
        pointers(json!({ "ignored": vec!["192.0.2.1"; 1001], "status_codes": vec!["401"; 65] })),
        ["/status_codes", "/ignored"]
    );
}

#[test]
fn an_unknown_place_is_answered_with_those_that_exist() {
    let fault = |key: &str| read(json!({ "counter_key": key })).unwrap_err().remove(0).to_string();
    let unknown = fault("${route.id}-${req.ipp}");
    assert!(
        unknown.starts_with("/counter_key: a request has no place `${req.ipp}`, did you mean `${req.ip}`?"),
        "{unknown}"
    );
    for place in [
        "route.id",
        "route.name",
        "req.ip",
        "req.method",
        "req.path",
        "req.host",
        "req.user",
        "req.apikey",
        "req.identity",
    ] {
        assert!(unknown.contains(&format!("`${{{place}}}`")), "{unknown}");
        assert!(read(json!({ "counter_key": format!("${{{place}}}") })).is_ok(), "{place}");
    }
    assert!(unknown.contains("`${req.headers.NAME}`"), "{unknown}");
    for wrong in [
        "",
        "all",
        "${req.ip",
        "${}",
        "${req.headers.}",
        "${req.headers.a b}",
        &"x".repeat(513),
        &"${req.ip}".repeat(17),
    ] {
        assert!(fault(wrong).starts_with("/counter_key: "), "{wrong}");
    }
    let step = read(json!({ "counter_key": "a-${ req.headers.X-Key }" })).unwrap().step();
    assert_eq!((step.key[1].place(), step.key[1].text.as_str()), (KeyPlace::Header, "x-key"));
}

#[test]
fn a_preset_lays_it_down_in_dry_run() {
    let laid_down = |fields: Value| PLUGIN.preset.lay_down.unwrap()(fields.as_object().unwrap()).unwrap().0;
    assert_eq!(laid_down(json!({})), None);
    assert_eq!(laid_down(json!({ "fail2ban": false, "fail2ban_dry_run": false })), None);
    assert_eq!(laid_down(json!({ "fail2ban": true })), Some(json!({ "dry_run": true })));
    assert_eq!(laid_down(json!({ "fail2ban": true, "fail2ban_dry_run": false })), Some(json!({ "dry_run": false })));
    let wrong = json!({ "fail2ban_dry_run": "no" });
    let problem = PLUGIN.preset.lay_down.unwrap()(wrong.as_object().unwrap()).unwrap_err();
    assert_eq!(problem.pointer, "/fail2ban_dry_run");
}

#[test]
fn a_chain_without_a_gate_and_a_key_for_all_have_gaps() {
    let guard = |bans, shared_key| Fail2BanGuard { bans, shared_key }.gaps(&[], &[]);
    assert_eq!(guard(false, false), [] as [String; 0]);
    assert!(guard(true, false)[0].contains("no threat gate"));
    assert!(guard(false, true)[0].contains("does not tell callers apart"));
    assert!(counter_key::tells_callers_apart(KeyPlace::Header) && !counter_key::tells_callers_apart(KeyPlace::Path));
}
