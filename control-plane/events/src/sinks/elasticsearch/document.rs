//! Events as documents.

use serde_json::{Map, Value, json};

use crate::queue::Line;
use crate::sinks::ecs;
use crate::sinks::facts::Facts;
use base::clock;

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

/// The id of an event, and its document in the fields of its format. Data streams need a `@timestamp`, which OCSF does not have. What is no
/// object of JSON is sent as it is: the cluster says what is wrong.
fn document(line: &[u8]) -> (Option<String>, Vec<u8>) {
    let Ok(mut event) = serde_json::from_slice::<Map<String, Value>>(line) else { return (None, line.to_vec()) };
    let facts = Facts::of(&event);
    if facts.is_ocsf {
        event.insert("@timestamp".to_owned(), clock::rfc3339(facts.time.unwrap_or_default()).into());
    } else {
        ecs::complete(&mut event);
    }
    (facts.id, Value::Object(event).to_string().into_bytes())
}
