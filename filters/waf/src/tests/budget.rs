//! What happens where the budget of the rules ends.

use crate::WafBudget;
use serde_json::Value;

use super::*;

const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS_POST "@unconditionalMatch" "id:1,phase:2,pass,nolog,setvar:tx.seen=+1"
SecRule ARGS_POST:last "@streq evil" "id:2,phase:2,deny,status:403,log"
SecRule RESPONSE_HEADERS:x-leak "@streq yes" "id:3,phase:3,pass,log,msg:'leak'"
"#;

fn scarce() -> WafStep {
    let budget = WafBudget { work: 1_000_000, work_per_byte: 0, memory: 1 << 20, memory_per_byte: 1 };
    WafStep { budget: Some(budget), input_body_limit: 100_000, ..step() }
}

/// A form of many fields, on its way through a plugin: the status of the answer in its place, and what is told of it.
fn ask(plugin: &dyn Plugin, fields: usize, host: &FakeHost) -> (Option<u16>, Vec<Value>) {
    let body = format!("{}last=evil", (0..fields).map(|at| format!("a{at}=1&")).collect::<String>());
    let (mut exchange, mut slot) = (exchange("/", form()), Slot::default());
    let before = host.events_json().len();
    let mut verdict = plugin.request(&mut exchange, true, &mut slot, host);
    if matches!(verdict, Verdict::NeedBody(_)) {
        verdict = plugin.request_body(&mut exchange, Body { bytes: body.as_bytes(), complete: true }, &mut slot, host);
    }
    if verdict == Verdict::Pass {
        exchange.response =
            Some(Response { status: 200, headers: Headers::from([("x-leak", "yes")]), ..Response::default() });
        assert_eq!(plugin.response(&mut exchange, false, &mut slot, host), Verdict::Pass);
    }
    plugin.finish(&mut exchange, &mut slot, host);
    (status(&verdict), host.events_json().split_off(before))
}

#[test]
fn a_request_beyond_the_budget_is_answered_with_503_and_told() {
    let (host, plugin) = (FakeHost::at(0), plugin_of(RULES, scarce()));
    assert_eq!(ask(&*plugin, 20, &host).0, Some(403));
    // Each time: what such a request costs is more than what the event does.
    for _ in 0..2 {
        let (status, events) = ask(&*plugin, 900, &host);
        assert_eq!((status, events.len()), (Some(503), 1));
        let limit = &events[0]["limits"][0];
        assert_eq!(limit["rule_id"], 1);
        assert!(limit["variable"].as_str().is_some_and(|name| name.starts_with("ARGS_POST:a")), "{limit}");
        assert_eq!(limit["cost"]["work_ceiling"], 1_000_000);
        assert!(limit["cost"]["work"].as_u64().is_some_and(|work| (1_000_000..1_200_000).contains(&work)), "{limit}");
        assert_eq!(events[0]["block"]["status"], 503);
    }
    assert_eq!(host.counts.borrow().get(&Metric::PluginFailures), Some(&2));
}

#[test]
fn a_body_is_no_way_around_the_rules_by_what_it_costs() {
    let step = WafStep { inspect_undecodable: true, ..scarce() };
    assert_eq!(ask(&*plugin_of(RULES, step), 900, &FakeHost::at(0)).0, Some(503));
}

#[test]
fn where_nothing_is_denied_the_request_passes_with_the_event() {
    let only_detects = RULES.replace("SecRuleEngine On", "SecRuleEngine DetectionOnly");
    for (rules, step) in [
        (RULES, WafStep { block: false, ..scarce() }),
        (RULES, WafStep { fail_open: true, ..scarce() }),
        (only_detects.as_str(), scarce()),
    ] {
        let (host, plugin) = (FakeHost::at(0), plugin_of(rules, step));
        for _ in 0..2 {
            let (status, events) = ask(&*plugin, 900, &host);
            assert_eq!((status, events.len()), (None, 1));
            assert_eq!(events[0]["limits"][0]["rule_id"], 1);
            assert_eq!(events[0]["block"], Value::Null);
            // The response has a budget of its own.
            assert_eq!(events[0]["rule_ids"], serde_json::json!([3]));
        }
    }
}

#[test]
fn the_end_of_a_budget_is_told_once() {
    // Spent with the headers, and not given more by the body.
    let budget = WafBudget { work: 1000, work_per_byte: 0, memory: 1 << 20, memory_per_byte: 1 };
    let step = WafStep { block: false, budget: Some(budget), ..scarce() };
    let events = ask(&*plugin_of(RULES, step), 20, &FakeHost::at(0)).1;
    let ends = events[0]["limits"].as_array().unwrap().iter().filter(|limit| limit["cost"].is_object()).count();
    assert_eq!(ends, 2, "once for the request and once for the response: {events:?}");
}

#[test]
fn a_body_that_takes_more_memory_than_there_is_is_not_kept() {
    let budget = WafBudget { work: u64::MAX, work_per_byte: 0, memory: 50_000, memory_per_byte: 0 };
    let (host, plugin) = (FakeHost::at(0), plugin_of(RULES, WafStep { budget: Some(budget), ..scarce() }));
    assert_eq!(ask(&*plugin, 20, &host).0, Some(403));
    let (status, events) = ask(&*plugin, 900, &host);
    assert_eq!(status, Some(503));
    let limit = &events[0]["limits"][0];
    assert_eq!((&limit["rule_id"], limit["variable"].as_str()), (&Value::from(0), Some("REQUEST_BODY")));
    assert_eq!(limit["cost"]["memory_ceiling"], 50_000);
}
