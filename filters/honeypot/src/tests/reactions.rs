//! What is done about a match.

use exchange::Metric;
use node_state::{allowlist, bans as node_bans};

use super::*;

fn trap(more: &Value) -> Chain {
    let mut fields = json!({ "paths": ["/.env"], "canaries": [{ "value": "bait-1234" }] });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    chain(policy(&fields))
}

#[test]
fn monitor_adds_to_the_score_and_says_what_it_saw() {
    let (chain, host) = (trap(&json!({ "action": "monitor", "weight": 30 })), FakeHost::at(5_000));
    assert_eq!(status(&chain, get(b"/", &[]), &host), None);
    assert!(host.events_json().is_empty());
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), None);
    let events = host.events_json();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["event"]["outcome"], &events[0]["event"]["action"]), (&json!("observed"), &json!("log")));
    assert_eq!((&events[0]["threat"]["score"], &events[0]["decision"]["enforced"]), (&json!(30), &json!(false)));
    assert_eq!(events[0]["decision"]["policy"], "honeypot-policies/traps");
    let signal = &events[0]["threat"]["signals"][0];
    assert_eq!(signal["module"], "honeypot");
    assert_eq!((&signal["source"], &signal["kind"]), (&json!("honeypot.path"), &json!("honeypot")));
    assert_eq!((&signal["weight"], &signal["at"]), (&json!(30), &json!(5_000)));
    assert!(host.bans.borrow().is_empty());
}

#[test]
fn deny_refuses_with_the_status_of_the_policy_and_one_event() {
    let (chain, host) = (trap(&json!({ "status": 418 })), FakeHost::at(0));
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(418));
    let events = host.events_json();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["event"]["outcome"], &events[0]["event"]["action"]), (&json!("blocked"), &json!("deny")));
    assert_eq!(events[0]["decision"]["policy"], "honeypot-policies/traps");
    assert_eq!(host.counts.borrow().get(&Metric::Refused), Some(&1));
    assert!(host.bans.borrow().is_empty());
    assert_eq!(status(&chain, get(b"/", &[]), &host), None, "the caller is not banned");
}

#[test]
fn a_request_with_a_decoy_and_a_canary_has_both_signals_and_one_event() {
    let (chain, host) = (trap(&json!({ "weight": 30 })), FakeHost::at(0));
    assert_eq!(status(&chain, get(b"/.env?bait-1234", &[]), &host), Some(404));
    let events = host.events_json();
    assert_eq!((events.len(), &events[0]["threat"]["score"]), (1, &json!(60)));
    assert_eq!(events[0]["threat"]["tags"], json!(["honeypot:path", "honeypot:canary"]));
}

/// A policy that bans from a score of 50 on.
fn response(dry_run: bool) -> snapshot::Policy {
    let action = snapshot::TierAction::Ban.into();
    let tier = snapshot::Tier { min_score: 50.0, action, status: 403, ban_for_seconds: 60, ..Default::default() };
    snapshot::Policy { dry_run, tiers: vec![tier], ..Default::default() }
}

#[test]
fn a_threat_response_may_be_stricter_and_its_dry_run_switches_no_honeypot_off() {
    let decoy = policy(&json!({ "paths": ["/.env"] }));
    for (dry_run, expected, bans) in [(false, 403, 1), (true, 404, 0)] {
        let (chain, host) = (chain_with(decoy.clone(), Some(response(dry_run))), FakeHost::at(1_000));
        assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(expected));
        let events = host.events_json();
        assert_eq!((events.len(), host.bans.borrow().len()), (1, bans), "{events:?}");
        assert_eq!(
            (&events[0]["event"]["category"], &events[0]["event"]["outcome"]),
            (&json!("honeypot"), &json!("blocked"))
        );
        assert_eq!(status(&chain, get(b"/", &[]), &host), None);
    }
    let weak = policy(&json!({ "paths": ["/.env"], "weight": 40 }));
    let (chain, host) = (chain_with(weak, Some(response(false))), FakeHost::at(1_000));
    assert_eq!((status(&chain, get(b"/.env", &[]), &host), host.bans.borrow().len()), (Some(404), 0));
}

#[test]
fn a_threat_response_acts_on_what_a_honeypot_observes() {
    let fields = json!({ "paths": ["/.env"], "action": "monitor", "weight": 60 });
    for (dry_run, expected) in [(false, Some(403)), (true, None)] {
        let (chain, host) = (chain_with(policy(&fields), Some(response(dry_run))), FakeHost::at(1_000));
        assert_eq!(status(&chain, get(b"/.env", &[]), &host), expected);
        let categories: Vec<Value> =
            host.events_json().iter().map(|event| event["event"]["category"].clone()).collect();
        assert_eq!(categories, ["honeypot", "threat"]);
    }
}

#[test]
fn ban_refuses_and_bans_the_identity_once_a_minute_at_most() {
    let (chain, host) = (trap(&json!({ "action": "ban", "ban_for_seconds": 3600 })), FakeHost::at(1_000));
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(404));
    {
        let orders = host.bans.borrow();
        assert_eq!((orders.len(), orders[0].until, orders[0].score), (1, 3_601_000, 100.0));
        assert_eq!(
            (orders[0].identity.key(), orders[0].tags.clone()),
            ("ip:192.0.2.7".into(), vec!["honeypot:path".into()])
        );
        assert_eq!(orders[0].reason, "honeypot `traps`: the decoy path `/.env` was asked for");
    }
    let standing = node_bans::standing(&host.shared_data, "ip:192.0.2.7", 1_000).unwrap();
    assert_eq!(standing.until, 3_601_000);
    let message = |host: &FakeHost| host.events_json().pop().unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message(&host).ends_with("was asked for; ip:192.0.2.7 is banned for 3600 s"), "{}", message(&host));
    host.advance(60_000);
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(404));
    assert_eq!((host.bans.borrow().len(), host.events_json().len()), (1, 2), "it is banned for as long");
    assert!(message(&host).ends_with("is banned already"), "{}", message(&host));
    host.advance(1);
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(404));
    assert_eq!(host.bans.borrow().last().map(|order| order.until), Some(3_661_001), "it lasts longer now");
    host.advance(3_600_000);
    assert_eq!(node_bans::standing(&host.shared_data, "ip:192.0.2.7", host.now()), None);
}

#[test]
fn a_tier_that_bans_for_less_does_not_shorten_the_ban_of_a_honeypot() {
    let decoy = |seconds: u64| policy(&json!({ "paths": ["/.env"], "action": "ban", "ban_for_seconds": seconds }));
    // The tier bans for 60 s.
    for (seconds, until) in [(3600, 3_601_000), (10, 61_000)] {
        let (chain, host) = (chain_with(decoy(seconds), Some(response(false))), FakeHost::at(1_000));
        assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(403));
        let orders: Vec<u64> = host.bans.borrow().iter().map(|order| order.until).collect();
        assert_eq!(orders, [1_000 + seconds * 1000, 61_000], "both ask for a ban");
        let standing = node_bans::standing(&host.shared_data, "ip:192.0.2.7", 1_000).unwrap();
        assert_eq!(standing.until, until);
    }
}

#[test]
fn a_caller_on_the_allowlist_is_refused_and_not_banned() {
    let (chain, host) = (trap(&json!({ "action": "ban" })), FakeHost::at(1_000));
    allowlist::apply(&host.shared_data, "ip:192.0.2.7", 90_000, 1_000).unwrap();
    assert_eq!(status(&chain, get(b"/.env", &[]), &host), Some(404));
    assert_eq!(node_bans::standing(&host.shared_data, "ip:192.0.2.7", 1_000), None);
    let event = host.events_json().pop().unwrap();
    assert!(event["message"].as_str().unwrap().ends_with("ip:192.0.2.7 is on the allowlist and not banned"), "{event}");
}

#[test]
fn a_step_that_cannot_be_run_is_refused() {
    let traps = HoneypotTraps::default();
    let data = traps.encode_to_vec();
    let hash = content_hash(&data).to_vec();
    let good = HoneypotStep { traps: hash.clone(), status: 404, reaction: 2, ..HoneypotStep::default() };
    let made = |step: &HoneypotStep, data: &[u8]| {
        let hash = content_hash(data);
        let step = HoneypotStep { traps: hash.to_vec(), ..step.clone() };
        build(&step.encode_to_vec(), &mut Build::new(std::iter::once((hash.as_slice(), data)))).map(|_| ())
    };
    assert_eq!(made(&good, &data), Ok(()));
    for wrong in [
        HoneypotStep { status: 0, ..good.clone() },
        HoneypotStep { status: 70_000, ..good.clone() },
        HoneypotStep { reaction: 0, ..good.clone() },
        HoneypotStep { reaction: 9, ..good.clone() },
    ] {
        assert!(made(&wrong, &data).is_err(), "{wrong:?}");
    }
    let path = |path: &[u8]| DecoyPath { path: path.to_vec(), shown: String::new() };
    let head = |list: &[u32]| CanaryHead { head: b"head".to_vec(), query: list.to_vec(), ..CanaryHead::default() };
    let tails = [&b""[..], b"b", b"a"].map(|tail| CanaryTail { tail: tail.to_vec(), label: String::new() });
    for wrong in [
        HoneypotTraps { exact: vec![path(b"/b"), path(b"/a")], ..traps.clone() },
        HoneypotTraps { prefixes: vec![path(b"/b"), path(b"/a")], ..traps.clone() },
        HoneypotTraps { prefixes: vec![path(b"/a"), path(b"/ab")], ..traps.clone() },
        HoneypotTraps { heads: vec![head(&[3])], canaries: tails.to_vec(), ..traps.clone() },
        HoneypotTraps { heads: vec![head(&[1, 2])], canaries: tails.to_vec(), ..traps.clone() },
    ] {
        assert!(made(&good, &wrong.encode_to_vec()).is_err(), "{wrong:?}");
    }
    assert!(made(&good, b"\xff").is_err());
}
