use kit::{Entity, Guard, Head, References};
use serde_json::json;

use super::compile::traps;
use super::guard::HoneypotGuard;
use super::*;

struct Nothing;

impl References for Nothing {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}

#[test]
fn the_longest_ban_is_that_of_policies_that_ban() {
    let ban = |action| HoneypotPolicy { action, ..HoneypotPolicy::default() }.longest_ban();
    assert_eq!(ban(HoneypotAction::Ban), Some(86_400));
    assert_eq!((ban(HoneypotAction::Deny), ban(HoneypotAction::Monitor)), (None, None));
}

#[test]
fn the_defaults_are_right_and_compile() {
    let policy = HoneypotPolicy::default();
    assert_eq!(policy.check(&Head::default(), &Nothing), []);
    let traps = traps(&policy);
    assert_eq!((traps.exact.len(), traps.prefixes.len(), traps.heads.len()), (12, 4, 0));
}

#[test]
fn a_prefix_takes_the_place_of_those_that_begin_with_it() {
    let paths = ["/B*", "/b/c*", "/a*", "/ab*", "/abc/d*", "/b", "/B", "/c*"].map(str::to_owned).to_vec();
    let traps = traps(&HoneypotPolicy { paths, ..HoneypotPolicy::default() });
    let shown: Vec<&str> = traps.prefixes.iter().map(|decoy| decoy.shown.as_str()).collect();
    assert_eq!(shown, ["/a*", "/B*", "/c*"]);
    assert_eq!((traps.exact.len(), traps.exact[0].shown.as_str()), (1, "/b"));
}

#[test]
fn a_long_description_is_cut() {
    let canary = Canary { value: "bait".into(), description: "\u{e4}".repeat(512), place: CanaryPlace::Any };
    let traps = traps(&HoneypotPolicy { canaries: vec![canary], ..HoneypotPolicy::default() });
    assert_eq!(traps.canaries[0].label.len(), 130);
}

#[test]
fn a_preset_lays_it_down_where_a_policy_is_named() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: serde_json::Value| lay_down(config.as_object().unwrap()).unwrap().0;
    assert_eq!(laid(json!({ "honeypot_policy": "traps", "gate": true })), Some(json!({ "policy": "traps" })));
    assert_eq!((laid(json!({ "honeypot_policy": null })), laid(json!({}))), (None, None));
    assert!(lay_down(json!({ "honeypot_policy": 1 }).as_object().unwrap()).is_err());
}

#[test]
fn what_a_honeypot_does_not_do_is_told() {
    let guard = |disabled, empty, bans| HoneypotGuard { policy: "traps".into(), disabled, empty, bans };
    let gaps = |guard: HoneypotGuard| guard.gaps(&[], &[]);
    assert_eq!(gaps(guard(true, false, true)), ["the honeypot policy `traps` is disabled"]);
    assert_eq!(gaps(guard(false, true, true)), ["the honeypot policy `traps` has neither paths nor canaries"]);
    let ungated = "no threat gate refuses the callers that the honeypot policy `traps` bans";
    assert_eq!(gaps(guard(false, false, true)), [ungated]);
    assert_eq!(gaps(guard(false, false, false)), Vec::<String>::new());
    let of = |acts_on_score| policies::PolicyGuard::new(None, &snapshot::Policy::default(), acts_on_score);
    let (gate, response) = (of(false), of(true));
    assert_eq!(guard(false, false, true).gaps(&[&response], &[&gate]), Vec::<String>::new());
    assert_eq!(guard(false, false, true).gaps(&[], &[&response]), [ungated]);
}
