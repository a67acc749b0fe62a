//! The contracts that the report looks at, each read once for each of its versions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contract::compile::{Options, compile, read_text};
use kit::Item;
use snapshot::{content_hash, hex};

use super::declared::Declared;
use crate::control::ApiContract;

/// A contract as the report sees it.
#[derive(Debug, Default)]
pub(super) struct ReadContract {
    /// Why it does not compile.
    pub(super) broken: Option<String>,
    /// Its operations and what they declare; none where it does not compile.
    pub(super) declared: Declared,
    /// The hash of the document and the base path.
    pub(super) version: String,
}

/// The contracts by id.
#[derive(Debug, Default)]
pub(super) struct Contracts(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    entity: ApiContract,
    read: Arc<ReadContract>,
}

impl Contracts {
    /// A contract as it is now. One that is new takes as long as to compile it; the lock is not held meanwhile.
    pub(super) fn get(&self, item: &Item<ApiContract>) -> Arc<ReadContract> {
        if let Some(known) = self.lock().get(&item.head.id).filter(|known| known.entity == item.body) {
            return Arc::clone(&known.read);
        }
        let read = Arc::new(ReadContract::of(&item.body));
        let known = Known { entity: item.body.clone(), read: Arc::clone(&read) };
        self.lock().insert(item.head.id.clone(), known);
        read
    }

    /// Forgets those that are not among these ids.
    pub(super) fn keep(&self, used: impl Fn(&str) -> bool) {
        self.lock().retain(|id, _| used(id));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadContract {
    fn of(contract: &ApiContract) -> Self {
        let text = [contract.spec.as_bytes(), contract.base_path.as_bytes()].join(b"\0".as_slice());
        let version = hex(&content_hash(&text));
        if let Err(error) = compile(&contract.spec, &contract.base_path, Options { responses: false }) {
            return Self { broken: Some(error.to_string()), version, ..Self::default() };
        }
        let declared = read_text(&contract.spec).map(|document| Declared::read(&document)).unwrap_or_default();
        Self { broken: None, declared, version }
    }
}
