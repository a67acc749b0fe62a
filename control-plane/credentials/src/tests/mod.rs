//! The audit of routes, and imports, as a whole.

mod audit;
mod hostile;
mod import;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use kit::{AnyEntity, Collection, EntitySource, FieldProblem, Head, References, Slot};
use serde_json::Value;

/// Entities in memory.
#[derive(Default)]
struct Entities {
    collections: BTreeMap<String, Arc<Collection>>,
}

/// A document as an entity.
struct Document {
    head: Head,
    value: Value,
}

impl Entities {
    fn with(mut self, collection: &str, documents: &[Value]) -> Entities {
        let slot = |value: &Value| {
            let id = value["id"].as_str().unwrap().to_owned();
            let head = Head { id: id.clone(), ..Head::default() };
            (id, Slot { revision: 1, entity: Arc::new(Document { head, value: value.clone() }) as Arc<dyn AnyEntity> })
        };
        self.collections.insert(collection.to_owned(), Arc::new(documents.iter().map(slot).collect()));
        self
    }
}

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        self.collections.get(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.collections.get(collection)
    }
}

impl AnyEntity for Document {
    fn head(&self) -> &Head {
        &self.head
    }

    fn shown(&self) -> Value {
        self.value.clone()
    }

    fn stored(&self) -> Value {
        self.value.clone()
    }

    fn check(&self, _refs: &dyn References) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn is_enabled(&self) -> bool {
        self.value["enabled"] != false
    }

    fn unused(&self) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn misread(&self) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn longest_ban(&self) -> Option<u64> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
