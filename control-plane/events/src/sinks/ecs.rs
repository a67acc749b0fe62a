//! The fields of the Elastic Common Schema that events do not have under the same names.

use serde_json::{Map, Value, json};

/// The version of the schema.
const ECS_VERSION: &str = "8.17.0";

/// Adds `ecs.version`, `event.id`, `observer` and, for an audit event, `event.kind`, `event.category` and `event.action`.
pub(super) fn complete(event: &mut Map<String, Value>) {
    let id = event.get("@id").and_then(Value::as_str).map(str::to_owned);
    let action = event.get("action").and_then(Value::as_str).map(str::to_owned);
    let is_audit = event.get("@type").and_then(Value::as_str) == Some("SvcWafSecurityAudit");
    event.insert("ecs".to_owned(), json!({ "version": ECS_VERSION }));
    let node = event.get("route").and_then(|route| route.get("node")).cloned().unwrap_or(Value::Null);
    event.insert("observer".to_owned(), json!({ "vendor": "Palisade", "type": "waf", "name": node }));
    let Some(fields) = event.entry("event").or_insert_with(|| json!({})).as_object_mut() else { return };
    if let Some(id) = id {
        fields.entry("id").or_insert_with(|| id.into());
    }
    if is_audit {
        fields.entry("kind").or_insert_with(|| "event".into());
        fields.entry("category").or_insert_with(|| json!(["configuration"]));
        fields.entry("dataset").or_insert_with(|| "svc.audit".into());
        if let Some(action) = action {
            fields.entry("action").or_insert_with(|| action.into());
        }
    }
}
