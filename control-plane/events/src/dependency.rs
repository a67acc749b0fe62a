//! What the control plane tells of something that it depends on.

use serde_json::{Value, json};

use base::clock;

/// A `SvcSecurityEvent` of category `dependency`: `module` has trouble, or has none any more, as `message` tells. `node` is
/// the gateway that it concerns.
pub fn dependency(now_millis: u64, module: &str, node: Option<&str>, message: &str) -> Value {
    json!({
        "@type": "SvcSecurityEvent",
        "@id": uuid::Uuid::new_v4().to_string(),
        "@timestamp": clock::rfc3339(now_millis),
        "event": {
            "kind": "alert", "category": "dependency", "action": "log", "outcome": "observed", "severity": 2,
            "module": module, "dataset": "svc.security",
        },
        "source": { "ip": null, "apikey": null, "user": null },
        "threat": { "score": 0, "tags": [format!("dependency:{module}")], "signals": [] },
        "incident": { "id": null, "count": 0 },
        "route": { "id": null, "name": null, "node": node },
        "message": message,
    })
}
