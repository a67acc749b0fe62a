//! One entity of each kind with every field that can be set, and the smallest valid ones.

use std::path::PathBuf;

use entities::registry;
use entities::{EntitySet, Kind};
use serde_json::{Value, json};

/// What every secret in the samples begins with, or has in it.
pub(crate) const PLANTED: &str = "hunter2";

/// The folder of the samples.
pub(crate) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "entities"].iter().collect()
}

/// The samples.
pub(crate) fn set() -> EntitySet {
    EntitySet::from_dir(&folder()).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// A sample as it is stored.
pub(crate) fn sample(collection: &str, id: &str) -> Value {
    set().slot(collection, id).unwrap().entity.stored()
}

/// The template of a kind with an id and with what has no default.
pub(crate) fn minimal(kind: &Kind) -> Value {
    let mut document = kind.template();
    document["id"] = json!(kind.singleton.unwrap_or("x"));
    for (collection, field, value) in [
        ("threat-feeds", "url", "https://feeds.example/list.txt"),
        ("svc-bouncers", "api_key", "a key"),
        ("api-contracts", "spec", "openapi: 3.1.0"),
    ] {
        if kind.collection == collection {
            document[field] = json!(value);
        }
    }
    document
}

/// What is wrong with a document of a kind where there are no other entities.
pub(crate) fn problems(kind: &Kind, document: Value) -> Vec<String> {
    let found = match kind.read(document) {
        Ok(entity) => entity.check(&EntitySet::empty()),
        Err(problems) => problems,
    };
    found.iter().map(ToString::to_string).collect()
}

/// Every kind with the samples of it.
pub(crate) fn all() -> Vec<(&'static Kind, Value)> {
    let set = set();
    let of = |kind: &'static Kind| set.slots(kind.collection).map(move |slot| (kind, slot.entity.stored()));
    registry::KINDS.iter().flat_map(of).collect()
}
