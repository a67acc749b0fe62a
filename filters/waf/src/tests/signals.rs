//! Signals, and events of refusals that were not made.

use super::*;
use exchange::{Action, Category, Decision, Outcome, SecurityEvent};
use serde_json::{Value, json};

/// What came of an exchange.
struct Found {
    status: Option<u16>,
    score: f64,
    tags: Vec<String>,
    events: Vec<Value>,
}

impl Found {
    fn of(kind: &str, events: &[Value]) -> Vec<Value> {
        events.iter().filter(|event| event["@type"] == kind).cloned().collect()
    }

    fn security(&self) -> Vec<Value> {
        Self::of("SvcSecurityEvent", &self.events)
    }

    fn trail(&self) -> Value {
        Self::of("SvcWafTrailEvent", &self.events).first().cloned().unwrap_or_default()
    }
}

/// A whole exchange: a request with an optional body, and a response whose body is `answer`.
fn run(plugin: &dyn Plugin, mut exchange: Exchange, body: Option<Body<'_>>, answer: &str) -> Found {
    let (host, mut slot) = (FakeHost::at(0), Slot::default());
    let mut verdict = plugin.request(&mut exchange, body.is_some(), &mut slot, &host);
    if let (Verdict::NeedBody(_), Some(body)) = (&verdict, body) {
        verdict = plugin.request_body(&mut exchange, body, &mut slot, &host);
    }
    if verdict == Verdict::Pass {
        let headers = Headers::from([("content-type", "text/plain")]);
        exchange.response = Some(Response { status: 200, headers, streaming: false });
        verdict = plugin.response(&mut exchange, !answer.is_empty(), &mut slot, &host);
        if let Verdict::NeedBody(_) = verdict {
            let body = Body { bytes: answer.as_bytes(), complete: true };
            verdict = plugin.response_body(&mut exchange, body, &mut slot, &host);
        }
    }
    plugin.finish(&mut exchange, &mut slot, &host);
    Found {
        status: status(&verdict),
        score: exchange.score.total(),
        tags: exchange.score.tags().into_iter().map(str::to_owned).collect(),
        events: host.events_json(),
    }
}

/// Rules that score as the core rule set does: the argument `n` is the score, 5 is denied.
const SCORING: &str = r#"
SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,setvar:tx.inbound_anomaly_score_threshold=5,setvar:tx.blocking_inbound_anomaly_score=0"
SecRule ARGS:n "@gt 0" "id:2,phase:2,pass,log,msg:'odd',setvar:tx.blocking_inbound_anomaly_score=+%{MATCHED_VAR}"
SecRule TX:BLOCKING_INBOUND_ANOMALY_SCORE "@ge %{tx.inbound_anomaly_score_threshold}" \
    "id:3,phase:2,deny,log,msg:'score of %{tx.blocking_inbound_anomaly_score}'"
"#;

fn monitoring() -> WafStep {
    WafStep { block: false, ..step() }
}

#[test]
fn a_match_weighs_by_its_anomaly_score_between_a_match_and_a_block() {
    let weigh = |rules: &str, n: u32, step: WafStep| {
        let found = run(&*plugin_of(rules, step), exchange(&format!("/?n={n}"), Headers::default()), None, "");
        assert_eq!(found.tags, if n == 0 { vec![] } else { vec!["waf:match"] }, "{n}");
        found.score
    };
    let weights = [0, 1, 2, 3, 4, 5, 50].map(|n| weigh(SCORING, n, monitoring()));
    assert_eq!(weights, [0.0, 20.0, 20.0, 30.0, 40.0, 50.0, 50.0]);
    assert_eq!(weigh(SCORING, 4, step()), 40.0, "the same where the WAF blocks");
    assert_eq!(weigh(SCORING, 50, WafStep { block_weight: 10.0, ..monitoring() }), 20.0, "a match is the floor");
    // The names of the core rule set 3, and a threshold that is none.
    let three = SCORING.replace("blocking_inbound_anomaly_score", "anomaly_score");
    let three = three.replace("BLOCKING_INBOUND_ANOMALY_SCORE", "ANOMALY_SCORE");
    assert_eq!(weigh(&three, 4, monitoring()), 40.0);
    for none in ["0", "-5", "five", ""] {
        let odd = SCORING.replace("threshold=5", &format!("threshold={none}")).replace("deny", "pass");
        assert_eq!(weigh(&odd, 4, monitoring()), 20.0, "{none:?}");
    }
}

#[test]
fn a_denial_that_is_not_logged_weighs_as_well() {
    let rules = "SecRuleEngine On\nSecRule ARGS:q \"@streq evil\" \"id:7,phase:1,deny,nolog,msg:'quiet'\"\n";
    let found = run(&*plugin_of(rules, monitoring()), exchange("/?q=evil", Headers::default()), None, "");
    assert_eq!((found.score, found.tags.as_slice()), (50.0, &["waf:match".to_owned()][..]));
    let signal = &found.security()[0]["threat"]["signals"][0];
    assert_eq!((&signal["detail"], &signal["more_rules"]), (&"rule 7: quiet".into(), &0.into()));
    assert_eq!(signal["rules"], json!([{ "id": 7, "message": "quiet" }]));
    assert_eq!(found.trail()["would_block"]["rule_id"], 7);
}

/// Each once, the one that would refuse first. The message of the first match is in the detail; another one that quotes the request is left
/// out, because a later rule may mask what it quotes.
#[test]
fn a_signal_names_the_rules_that_matched() {
    let rules = r#"
SecRuleEngine On
SecRule ARGS:q "@rx ." "id:1,phase:1,pass,log,msg:'first: %{MATCHED_VAR}'"
SecRule ARGS:q "@rx ." "id:2,phase:1,pass,nolog,msg:'quiet'"
SecRule ARGS "@rx ." "id:3,phase:1,pass,log,msg:'plain'"
SecRule ARGS:q "@rx ." "id:4,phase:2,pass,log,msg:'quotes %{MATCHED_VAR}'"
SecRule ARGS:q "@rx ." "id:5,phase:2,deny,log,msg:'refused'"
"#;
    let of = |step: WafStep, rules: &str| {
        let found = run(&*plugin_of(rules, step), exchange("/?q=a&r=b", Headers::default()), None, "");
        found.security()[0]["threat"]["signals"][0].clone()
    };
    let named = |first: Value| {
        json!([
            { "id": 5, "message": "refused" }, { "id": 1, "message": first }, { "id": 3, "message": "plain" },
            { "id": 4, "message": null },
        ])
    };
    let monitored = of(monitoring(), rules);
    assert_eq!(monitored["detail"], "rule 1: first: a and 3 more");
    assert_eq!(monitored["rules"], named("first: a".into()));
    // The signal of a rule that would refuse a response is about that rule.
    let response = "SecRuleEngine On\nSecResponseBodyAccess On\nSecRule ARGS \"@rx .\" \"id:1,phase:1,pass,nolog\"\n\
                    SecRule RESPONSE_STATUS \"@rx .\" \"id:9,phase:3,deny,log,msg:'status %{RESPONSE_STATUS}'\"\n";
    assert_eq!(of(monitoring(), response)["rules"], json!([{ "id": 9, "message": "status 200" }]));
}

/// The message of a refusal is the detail; those of the other rules are shown as long as they quote nothing.
#[test]
fn the_signal_of_a_refusal_names_the_rule_and_those_before_it() {
    let rules = "SecRuleEngine On\nSecRule ARGS \"@rx .\" \"id:1,phase:1,pass,log,msg:'saw %{MATCHED_VAR}'\"\n\
                 SecRule ARGS \"@rx .\" \"id:2,phase:1,deny,log,msg:'no %{MATCHED_VAR}'\"\n";
    let (host, mut slot, mut refused) = (FakeHost::at(0), Slot::default(), exchange("/?q=a", Headers::default()));
    assert_eq!(status(&plugin_of(rules, step()).request(&mut refused, false, &mut slot, &host)), Some(403));
    let decision = Decision::new(Action::Deny, 50.0, String::new());
    let (category, outcome) = (Category::Threat, Outcome::Blocked);
    let event = SecurityEvent { category, outcome, module: "waf", message: "", decision: &decision };
    refused.emit(&event, &host);
    let events = host.events_json();
    let signal = &events.last().unwrap()["threat"]["signals"][0];
    assert_eq!((&signal["tag"], &signal["detail"]), (&"waf:blocked".into(), &"rule 2: no a".into()));
    assert_eq!(signal["rules"], json!([{ "id": 2, "message": "no a" }, { "id": 1, "message": null }]));
}

/// Every way to only monitor.
fn ways() -> [(&'static str, String, WafStep); 5] {
    let with = |more: &str| format!("{RULES}{more}\n");
    [
        ("block: false", RULES.to_owned(), monitoring()),
        ("the engine's mode", with("SecRuleEngine DetectionOnly"), step()),
        (
            "a ctl",
            with("SecAction \"id:90,phase:1,pass,nolog,ctl:ruleEngine=DetectionOnly\"").replace(RULES, "") + RULES,
            step(),
        ),
        ("both", with("SecRuleEngine DetectionOnly"), monitoring()),
        (
            "a mode that changes back",
            with("SecAction \"id:91,phase:2,pass,nolog,ctl:ruleEngine=On\"").replace(
                "SecRuleEngine On",
                "SecRuleEngine On\nSecAction \"id:90,phase:1,pass,nolog,ctl:ruleEngine=DetectionOnly\"",
            ),
            step(),
        ),
    ]
}

#[test]
fn a_refusal_that_was_not_made_is_observed_and_said_to_be_none() {
    for (way, rules, step) in ways() {
        let found = run(&*plugin_of(&rules, step), exchange("/attack", Headers::default()), None, "");
        assert_eq!(found.status, None, "{way}");
        let trail = found.trail();
        assert_eq!((&trail["blocking"], &trail["block"]), (&false.into(), &Value::Null), "{way}");
        assert_eq!(
            (&trail["would_block"]["status"], &trail["would_block"]["rule_id"]),
            (&406.into(), &1.into()),
            "{way}"
        );
        let security = found.security();
        assert_eq!(security.len(), 1, "{way}: {security:?}");
        let event = &security[0];
        assert_eq!((&event["event"]["outcome"], &event["event"]["category"]), (&"observed".into(), &"threat".into()));
        assert_eq!((&event["event"]["module"], &event["event"]["action"]), (&"waf".into(), &"deny".into()));
        assert_eq!((&event["threat"]["tags"], &event["threat"]["score"]), (&json!(["waf:match"]), &50.into()), "{way}");
        assert_eq!((&event["decision"]["enforced"], &event["decision"]["dry_run"]), (&false.into(), &true.into()));
        assert_eq!(event["decision"]["policy"], "waf-configs/waf-config_1");
        assert_eq!(event["message"], "rule 1: attack in the path");
        assert_eq!(event["incident"]["count"], 1);
    }
}

#[test]
fn a_refusal_is_blocked_and_nothing_else() {
    let found = run(&*plugin(step()), exchange("/attack", Headers::default()), None, "");
    let trail = found.trail();
    assert_eq!((found.status, &trail["blocking"], &trail["block"]["rule_id"]), (Some(406), &true.into(), &1.into()));
    assert!(trail["would_block"].is_null() && found.security().is_empty(), "the chain emits the event: {trail}");
    // Where the WAF blocks and had no reason to, it says so too.
    let found = run(&*plugin(step()), exchange("/?q=odd", Headers::default()), None, "");
    let trail = found.trail();
    assert_eq!(
        (&trail["blocking"], &trail["block"], &trail["would_block"]),
        (&true.into(), &Value::Null, &Value::Null)
    );
    assert!(found.security().is_empty(), "a match alone is no refusal");
}

#[test]
fn what_the_threat_response_decided_on_has_its_event_already() {
    let (host, mut slot, plugin) = (FakeHost::at(0), Slot::default(), plugin(monitoring()));
    let mut exchange = exchange("/attack", Headers::default());
    assert_eq!(plugin.request(&mut exchange, false, &mut slot, &host), Verdict::Pass);
    exchange.decision = Some(Decision { tier: Some(0), ..Decision::new(Action::Log, 50.0, "").dry_run() });
    plugin.finish(&mut exchange, &mut slot, &host);
    assert!(Found::of("SvcSecurityEvent", &host.events_json()).is_empty());
}

#[test]
fn two_of_one_chain_emit_one_event() {
    let (host, mut slots, plugin) = (FakeHost::at(0), [Slot::default(), Slot::default()], plugin(monitoring()));
    let mut exchange = exchange("/attack", Headers::default());
    for slot in &mut slots {
        assert_eq!(plugin.request(&mut exchange, false, slot, &host), Verdict::Pass);
    }
    for slot in &mut slots {
        plugin.finish(&mut exchange, slot, &host);
    }
    let security = Found::of("SvcSecurityEvent", &host.events_json());
    assert_eq!((security.len(), exchange.score.total()), (1, 100.0), "{security:?}");
}

#[test]
fn a_response_that_a_rule_refuses_has_a_signal() {
    let blocked = run(&*plugin(step()), exchange("/", Headers::default()), None, "a secret");
    assert_eq!((blocked.status, blocked.score, blocked.tags), (Some(500), 50.0, vec!["waf:blocked".to_owned()]));
    let observed = run(&*plugin(monitoring()), exchange("/", Headers::default()), None, "a secret");
    assert_eq!(
        (observed.status, observed.score, observed.trail()["would_block"]["rule_id"].as_u64()),
        (None, 50.0, Some(4))
    );
    let event = &observed.security()[0];
    assert_eq!((&event["event"]["outcome"], &event["threat"]["tags"]), (&"observed".into(), &json!(["waf:match"])));
    assert_eq!((&event["threat"]["score"], &event["http"]["status"]), (&50.into(), &200.into()));
}

#[test]
fn a_limit_that_refuses_is_a_signal_and_one_that_does_not_is_observed() {
    let gzip = || Headers::from([("content-type", "text/plain"), ("content-encoding", "gzip")]);
    let odd = || Headers::from([("content-encoding", "made-up")]);
    let large = Body { bytes: b"q=1", complete: false };
    let broken = Body { bytes: b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x2b", complete: true };
    let upgrade = || Headers::from([("upgrade", "websocket"), ("content-length", "5")]);
    let cases: [(_, fn() -> Headers, _, _, _); 4] = [
        (413, form, large, "waf:limit", false),
        (400, gzip, broken, "waf:body_error", false),
        (415, odd, broken, "waf:body_error", false),
        (400, upgrade, broken, "waf:body_error", true),
    ];
    for (status, headers, body, tag, streaming) in cases {
        let ask = |more: &str, block| {
            let mut exchange = exchange("/?q=odd", headers());
            exchange.request.streaming = streaming;
            let rules = format!("{RULES}{more}\n");
            let step = WafStep { block, reject_oversize: true, ..step() };
            run(&*plugin_of(&rules, step), exchange, Some(body), "")
        };
        let refused = ask("", true);
        assert_eq!(
            (refused.status, refused.trail()["block"]["status"].as_u64()),
            (Some(status), Some(u64::from(status)))
        );
        assert!(refused.tags.iter().any(|found| found == tag), "{status}: {:?}", refused.tags);
        assert!(refused.score >= 20.0 && refused.security().is_empty(), "{status}");
        for passed in [ask("", false), ask("SecRuleEngine DetectionOnly", true)] {
            assert_eq!(
                (passed.status, &passed.trail()["block"], &passed.trail()["blocking"]),
                (None, &Value::Null, &false.into())
            );
            assert_eq!(passed.trail()["would_block"]["status"], status);
            let security = passed.security();
            assert_eq!(security.len(), 1, "{status}: {security:?}");
            assert_eq!(security[0]["event"]["outcome"], "observed");
            let tags = security[0]["threat"]["tags"].as_array().unwrap();
            assert!(tags.contains(&tag.into()) && tags.contains(&"waf:match".into()), "{status}: {tags:?}");
        }
    }
}

#[test]
fn a_stream_that_is_none_is_a_signal() {
    let ask = |step: WafStep| {
        let (host, mut slot, plugin) = (FakeHost::at(0), Slot::default(), plugin(step));
        let mut exchange = exchange("/svc/Method", Headers::from([("content-type", "application/grpc")]));
        exchange.request.streaming = true;
        assert_eq!(plugin.request(&mut exchange, true, &mut slot, &host), Verdict::Pass);
        let verdict = plugin.stream_start(&mut exchange, b"q=evil", &mut slot, &host);
        plugin.finish(&mut exchange, &mut slot, &host);
        let security = Found::of("SvcSecurityEvent", &host.events_json()).len();
        (status(&verdict), exchange.score.total(), exchange.score.tags().join(" "), security)
    };
    assert_eq!(ask(step()), (Some(400), 20.0, "waf:body_error".to_owned(), 0));
    assert_eq!(ask(monitoring()), (None, 20.0, "waf:body_error".to_owned(), 1));
}

#[test]
fn a_pattern_that_gave_up_is_a_signal_whatever_follows() {
    let costly = "SecRuleEngine On\nSecRule ARGS:q \"@rx (x+x+)+(?=y)z\" \"id:1,phase:1,deny,status:403\"\n";
    let ask = |more: &str, step: WafStep| {
        let path = format!("/?q={}yz", "x".repeat(200));
        let found = run(&*plugin_of(&format!("{costly}{more}"), step), exchange(&path, Headers::default()), None, "");
        (found.status, found.score, found.tags.join(" "), found.trail()["blocking"].clone())
    };
    let signal = || "waf:limit".to_owned();
    assert_eq!(ask("", step()), (Some(503), 20.0, signal(), true.into()));
    assert_eq!(ask("", monitoring()), (None, 20.0, signal(), false.into()));
    assert_eq!(ask("SecRuleEngine DetectionOnly", step()), (None, 20.0, signal(), false.into()));
    assert_eq!(ask("", WafStep { fail_open: true, ..step() }), (None, 20.0, signal(), true.into()));
}

#[test]
fn what_does_not_contribute_is_no_signal_and_still_an_event() {
    let step = WafStep { contribute: false, ..monitoring() };
    let found = run(&*plugin(step), exchange("/attack", Headers::default()), None, "");
    assert_eq!((found.score, found.security().len()), (0.0, 1));
}

/// A caller that makes many rules match long values of control bytes.
#[test]
fn a_trail_event_has_a_bound_whatever_rules_find() {
    let tags: String = (0..12).map(|number| format!("tag:'{number}{}',", "t".repeat(80))).collect();
    let rule = |id| {
        format!(
            "SecRule ARGS:n \"@rx .\" \"id:{id},phase:2,pass,log,{tags}msg:'%{{MATCHED_VAR}}',logdata:'%{{MATCHED_VAR}}'\"\n"
        )
    };
    let rules: String = std::iter::once("SecRuleEngine On\n".to_owned()).chain((1..=40).map(rule)).collect();
    let events = |value: &str| {
        let found = run(&*plugin_of(&rules, step()), exchange(&format!("/?n={value}"), Headers::default()), None, "");
        let trail = found.trail();
        (trail.to_string().len(), trail["matches"].as_array().unwrap().len(), trail)
    };
    let (length, listed, trail) = events(&"%01".repeat(400));
    assert!(length <= 48 * 1024 && (10..32).contains(&listed), "{length}, {listed} matches");
    assert_eq!((&trail["matched"], trail["rule_ids"].as_array().unwrap().len()), (&json!(40), 40));
    assert_eq!(trail["matches"][0]["value"].as_str().unwrap().chars().count(), 42);
}
