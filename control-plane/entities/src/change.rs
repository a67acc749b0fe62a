//! Changes of entities as they are asked for, what becomes of them, and how a document changes.

use std::sync::Arc;

use serde_json::Value;

use super::admission::Warning;
use super::{FieldProblem, Slot};
use kit::Kind;
use store::StoreError;

/// One change of a batch.
#[derive(Clone)]
pub struct BatchEntry {
    /// The collection.
    pub kind: &'static Kind,
    /// What is done.
    pub write: BatchWrite,
    /// Which revisions of the entity are accepted; any where there is none.
    pub precondition: Option<Precondition>,
}

/// What an entry of a batch does.
#[derive(Clone)]
pub enum BatchWrite {
    /// Adds an entity; gives it an id where the document has none.
    Create(Value),
    /// Changes an entity that exists.
    Update(String, Replacement),
    /// Removes an entity that nothing names any more.
    Delete(String),
    /// Removes an entity although others name it: their references then lead nowhere until they are changed. What
    /// gateways cannot do without is not removed even so.
    DeleteAnyway(String),
    /// Writes a document of the entity's history again, with the secrets in it; adds the entity where it is gone.
    Restore(String, Value),
}

/// How a batch is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchOptions {
    /// One entry that is refused refuses all, and entries may name each other in any order. Otherwise each entry is
    /// judged by itself, beside those before it, and what is refused is left out.
    pub atomic: bool,
    /// Everything is judged and nothing written.
    pub dry_run: bool,
}

/// The outcome of a batch.
#[derive(Debug)]
pub struct BatchOutcome {
    /// For each entry, in their order: the entity as it is now, or was before its deletion; or why it was refused.
    pub results: Vec<Result<Slot, WriteError>>,
    /// Warnings for the caller; those about one entry come first, with its index.
    pub warnings: Vec<Warning>,
}

impl BatchEntry {
    /// The entity that it is about; `None` for a new one without an id.
    pub(super) fn place(&self) -> Option<(&'static str, String)> {
        let id = match &self.write {
            BatchWrite::Create(document) => document.get("id")?.as_str()?.to_owned(),
            BatchWrite::Update(id, _)
            | BatchWrite::Delete(id)
            | BatchWrite::DeleteAnyway(id)
            | BatchWrite::Restore(id, _) => id.clone(),
        };
        Some((self.kind.collection, id))
    }
}

impl BatchWrite {
    /// The word of the history for it.
    pub(super) fn action(&self) -> &'static str {
        match self {
            BatchWrite::Create(_) => "create",
            BatchWrite::Update(_, Replacement::Whole(_)) => "replace",
            BatchWrite::Update(..) => "patch",
            BatchWrite::Delete(_) | BatchWrite::DeleteAnyway(_) => "delete",
            BatchWrite::Restore(..) => "revert",
        }
    }
}

/// A write that was committed.
#[derive(Clone)]
pub struct Written {
    /// The entity as it is now, or as it was before its deletion.
    pub slot: Slot,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// Why a write was not made. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no such entity.
    NotFound,
    /// The history of the entity has no such version, or not any more.
    NotKept {
        /// The version that was asked for.
        number: u64,
    },
    /// The id is taken.
    Exists,
    /// The entity is not at the revision that the caller demands.
    Stale {
        /// The revision it is at.
        current: u64,
    },
    /// The document is wrong.
    Invalid(Vec<FieldProblem>),
    /// The patch does not fit the entity.
    Patch(String),
    /// A `test` of a JSON patch did not hold.
    PatchTest(String),
    /// Others need the entity, or it cannot be deleted at all.
    InUse(Vec<FieldProblem>),
    /// It was one of several changes that were to be made as one, and another was refused.
    NotApplied,
    /// The store failed.
    Store(StoreError),
}

/// How a document replaces the current one.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// It takes its place.
    Whole(Value),
    /// A JSON merge patch (RFC 7396).
    Merge(Value),
    /// A JSON patch (RFC 6902).
    Patch(json_patch::Patch),
}

/// Which revisions of the entity a caller accepts; any where there is none.
pub type Precondition = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// The condition that an entity is at this revision.
pub fn exactly(expected: u64) -> Precondition {
    Arc::new(move |revision| revision == expected)
}
