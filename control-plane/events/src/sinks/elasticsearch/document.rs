//! Events as documents: the fields of the Elastic Common Schema that events do not have under the same names.

use serde_json::{Map, Value, json};

use crate::queue::Line;

/// The version of the schema.
const ECS_VERSION: &str = "8.17.0";
/// The longest id of a document, in bytes.
const MAX_ID: usize = 512;

/// The body of a bulk request: before each document a line that says to create it.
pub(super) fn bulk(batch: &[Line]) -> Vec<u8> {
    let mut body = Vec::with_capacity(batch.iter().map(|line| line.len() + 256).sum());
    for line in batch {
        let (id, document) = document(line);
        let create = match id.filter(|id| id.len() <= MAX_ID) {
            Some(id) => json!({ "create": { "_id": id } }),
            None => json!({ "create": {} }),
        };
        body.extend(create.to_string().into_bytes());
        body.push(b'\n');
        body.extend(document);
        body.push(b'\n');
    }
    body
}

/// The id of an event, and its document: with `ecs.version`, `event.id`, `observer` and, for an audit event, `event.kind`,
/// `event.category` and `event.action`. What is no object of JSON is sent as it is: the cluster says what is wrong.
fn document(line: &[u8]) -> (Option<String>, Vec<u8>) {
    let Ok(mut event) = serde_json::from_slice::<Map<String, Value>>(line) else { return (None, line.to_vec()) };
    let id = event.get("@id").and_then(Value::as_str).map(str::to_owned);
    let action = event.get("action").and_then(Value::as_str).map(str::to_owned);
    let is_audit = event.get("@type").and_then(Value::as_str) == Some("SvcWafSecurityAudit");
    event.insert("ecs".to_owned(), json!({ "version": ECS_VERSION }));
    let node = event.get("route").and_then(|route| route.get("node")).cloned().unwrap_or(Value::Null);
    event.insert("observer".to_owned(), json!({ "vendor": "Palisade", "type": "waf", "name": node }));
    if let Some(fields) = event.entry("event").or_insert_with(|| json!({})).as_object_mut() {
        if let Some(id) = &id {
            fields.entry("id").or_insert_with(|| id.clone().into());
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
    (id, Value::Object(event).to_string().into_bytes())
}
