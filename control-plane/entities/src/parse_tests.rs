//! What is said of documents that cannot be read, shown on collections with fields of many kinds.

use crate::{Entity, Kind, Route};
use policies::ThreatPolicy;
use serde_json::{Value, json};
use waf::control::WafConfig;

fn problem<T: Entity>(document: Value) -> String {
    let problems = Kind::of::<T>().read(document).expect_err("a wrong document");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

#[test]
fn problems_name_the_field_and_what_it_should_be() {
    assert_eq!(
        problem::<WafConfig>(json!({"id": "a", "enabled": "yes"})),
        "/enabled: invalid type: string \"yes\" (expected a boolean)"
    );
    assert!(
        problem::<WafConfig>(json!({"enable": true}))
            .starts_with("/enable: unknown field `enable`, did you mean `enabled`?")
    );
    assert!(problem::<WafConfig>(json!({"nam": "x"})).contains("did you mean `name`?"));
    assert!(
        problem::<WafConfig>(json!({"crs": {"paranoia": 1}})).starts_with("/crs/paranoia: unknown field `paranoia`")
    );
    assert!(
        problem::<WafConfig>(json!({"oversize_body_action": "rejct"}))
            .starts_with("/oversize_body_action: unknown value `rejct`, did you mean `reject`?")
    );
    assert_eq!(
        problem::<ThreatPolicy>(json!({"tiers": [{"min_score": 1}, {"action": "log"}]})),
        "/tiers/1/min_score: the field `min_score` is required"
    );
    assert!(
        problem::<ThreatPolicy>(json!({"tiers": [{"min_score": 1, "status": 70000}]}))
            .contains("/tiers/0/status: invalid value: integer `70000` (expected a whole number from 0 to 65535)")
    );
    assert_eq!(problem::<Route>(json!([])), "a route is an object, this is an array (expected a JSON object)");
    assert!(problem::<Route>(json!({"kind": "waf-config"})).starts_with("/kind: "));
    let both = problem::<Route>(json!({"tags": "x", "enabled": 1}));
    assert!(both.contains("/tags: ") && both.contains("/enabled: "), "{both}");
}

#[test]
fn a_field_name_cannot_forge_the_list_of_known_ones() {
    let text = problem::<Route>(json!({"x`, expected one of `y": 1}));
    assert!(text.contains("unknown field `x`, expected one of `y`") && text.contains("`hosts`"), "{text}");
}
