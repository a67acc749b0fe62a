//! The history of entities: what they were, what has changed between two versions, and the way back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::change::{BatchEntry, BatchWrite, Precondition, WriteError, Written};
use super::{AnyEntity, EntityService, FieldProblem, MASK};
use base::clock;
use kit::{Kind, token};
use store::history::{DeletedPage, Version, VersionHead, VersionPage};
use store::{Author, AuthorKind, Origin, StoreError};

/// How often versions that are too old are removed where nothing is written.
const SWEEP: Duration = Duration::from_secs(3600);

/// In whose name changes are made.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    author: Author,
    detail: Arc<str>,
}

/// A version of an entity.
#[derive(Clone, Debug)]
pub struct EntityVersion {
    /// Who has made it, when, and how.
    pub head: VersionHead,
    /// What the entity was after the change.
    pub state: VersionState,
}

/// What an entity was after a change.
#[derive(Clone, Debug)]
pub enum VersionState {
    /// Gone.
    Deleted,
    /// This.
    Is(Arc<dyn AnyEntity>),
    /// A document that this release cannot read, and where. It is not shown, because its secrets cannot be found in it.
    Unreadable(Vec<FieldProblem>),
}

/// What has changed from one version to another.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionChanges {
    /// The JSON Patch (RFC 6902) that makes one document of the other, both as they are shown: secrets are masked in it.
    pub patch: json_patch::Patch,
    /// The pointers of secrets that are others, though both are shown as [`MASK`].
    pub secrets: Vec<String>,
}

// === impl Signature ===

impl Default for Signature {
    fn default() -> Signature {
        Signature { author: Author::nameless(AuthorKind::ControlPlane), detail: Arc::default() }
    }
}

impl Signature {
    pub(super) fn new(author: Author, detail: Arc<str>) -> Signature {
        Signature { author, detail }
    }

    /// What the history says of a change that is made now. `write` is the last one that has made it what it is.
    pub(super) fn origin(&self, write: &BatchWrite, existed: bool, exists: bool) -> Origin {
        let action = match (write.action(), existed, exists) {
            (_, _, false) => "delete",
            ("revert", ..) => "revert",
            (_, false, true) => "create",
            // Deleted and made anew.
            ("create", true, true) => "replace",
            (action, true, true) => action,
        };
        Origin {
            at_millis: clock::now_millis(),
            author: self.author.clone(),
            action: action.to_owned(),
            detail: Arc::clone(&self.detail),
        }
    }
}

// === impl EntityService ===

impl EntityService {
    /// The versions of an entity that are kept, newest first, after leaving out `skip`, at most `limit`. Those of a deleted entity as well.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn versions(&self, kind: &Kind, id: &str, skip: u32, limit: u32) -> Result<VersionPage, StoreError> {
        self.store().versions(kind.collection, id, skip, limit).await
    }

    /// The entities of a collection that were deleted and can be reverted to their last version, the last deleted first, after leaving
    /// out `skip`, at most `limit`.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn deleted(&self, kind: &Kind, skip: u32, limit: u32) -> Result<DeletedPage, StoreError> {
        self.store().deleted(kind.collection, skip, limit).await
    }

    /// A version of an entity by its number, which is the revision of the change; `None` where it is not kept.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn version(
        &self,
        kind: &'static Kind,
        id: &str,
        number: u64,
    ) -> Result<Option<EntityVersion>, StoreError> {
        let found = self.store().version(kind.collection, id, number).await?;
        // A contract has up to 80 MiB.
        let reading = tokio::task::spawn_blocking(move || found.map(|version| EntityVersion::read(kind, version)));
        reading.await.map_err(|_| StoreError::Closed)
    }

    /// Writes an earlier version of an entity again, also of one that was deleted: it is checked and admitted as any document, and its
    /// secrets are those of that version. No precondition holds for an entity that is gone.
    ///
    /// # Errors
    /// See [`WriteError`]; [`WriteError::NotKept`] for a version that is not there, [`WriteError::Invalid`] also for one that deleted the
    /// entity and for one that this release cannot read.
    pub async fn revert(
        &self,
        kind: &'static Kind,
        id: &str,
        number: u64,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        let found = self.version(kind, id, number).await.map_err(WriteError::Store)?;
        let document = match found.ok_or(WriteError::NotKept { number })?.state {
            VersionState::Is(entity) => entity.stored(),
            VersionState::Unreadable(problems) => return Err(WriteError::Invalid(problems)),
            VersionState::Deleted => {
                let message = format!("version {number} deleted the entity: it has no document");
                return Err(WriteError::Invalid(vec![FieldProblem::new("/version", message)]));
            }
        };
        let write = BatchWrite::Restore(id.to_owned(), document);
        let signed = self.by(self.signature.author.clone(), &format!("to version {number}"));
        signed.write(BatchEntry { kind, write, precondition }).await
    }

    /// Removes versions that are too old, periodically while this control plane leads, until the store is closed. For a task of its own.
    pub async fn sweep_history(self) {
        let (store, mut ticks) = (self.store(), tokio::time::interval(SWEEP));
        loop {
            ticks.tick().await;
            if !*store.leads().borrow() {
                continue;
            }
            match store.history_sweep(clock::now_millis()).await {
                Ok(_) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "deleting old versions of entities failed"),
            }
        }
    }
}

// === impl EntityVersion ===

impl EntityVersion {
    fn read(kind: &'static Kind, version: Version) -> EntityVersion {
        let Version { head, body } = version;
        let state = match body.map(|body| serde_json::from_str(&body)) {
            None => VersionState::Deleted,
            Some(Err(error)) => VersionState::Unreadable(vec![FieldProblem::new("", error.to_string())]),
            Some(Ok(document)) => match kind.read(document) {
                Ok(entity) => VersionState::Is(entity),
                Err(problems) => VersionState::Unreadable(problems.into_iter().map(place).collect()),
            },
        };
        EntityVersion { head, state }
    }

    /// What has changed from an earlier or later version to this one; the document of a deletion is null. `None` where one of them
    /// cannot be read.
    #[must_use]
    pub fn changes_since(&self, other: &EntityVersion) -> Option<VersionChanges> {
        let documents = |version: &EntityVersion| match &version.state {
            VersionState::Deleted => Some((Value::Null, Value::Null)),
            VersionState::Is(entity) => Some((entity.shown(), entity.stored())),
            VersionState::Unreadable(_) => None,
        };
        let ((before, had), (after, has)) = (documents(other)?, documents(self)?);
        let mut secrets = Vec::new();
        each_mask(&after, &mut String::new(), &mut |pointer| {
            let was = before.pointer(pointer).is_some_and(|value| value == MASK);
            if was && had.pointer(pointer) != has.pointer(pointer) {
                secrets.push(pointer.to_owned());
            }
        });
        Some(VersionChanges { patch: json_patch::diff(&before, &after), secrets })
    }
}

/// A problem without its sentence, which may repeat a value: in a document of another release that may be a secret.
fn place(problem: FieldProblem) -> FieldProblem {
    FieldProblem::new(problem.pointer, "this release cannot read it")
}

/// Calls `found` with the pointer of each mask of a document.
fn each_mask(value: &Value, pointer: &mut String, found: &mut dyn FnMut(&str)) {
    let length = pointer.len();
    match value {
        Value::String(text) if text == MASK => found(pointer),
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                each_mask(entry, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointer.push('/');
                pointer.push_str(&token(name));
                each_mask(field, pointer, found);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::change::Replacement;
    use super::*;
    use store::{EntityChange, SqliteOptions, SqliteStore, Store};

    #[test]
    fn a_change_has_one_action_by_its_outcome() {
        let signature = Signature::new(Author::operator("alice"), "exclusion-apply".into());
        let origin = |write: &BatchWrite, existed, exists| signature.origin(write, existed, exists);
        let (create, id) = (BatchWrite::Create(json!({})), || "a".to_owned());
        let patch = BatchWrite::Update(id(), Replacement::Merge(json!({})));
        let whole = BatchWrite::Update(id(), Replacement::Whole(json!({})));
        let restore = BatchWrite::Restore(id(), json!({}));
        for (write, existed, exists, action) in [
            (&create, false, true, "create"),
            (&create, true, true, "replace"),
            (&whole, true, true, "replace"),
            (&patch, true, true, "patch"),
            (&patch, false, true, "create"),
            (&restore, false, true, "revert"),
            (&restore, true, true, "revert"),
            (&BatchWrite::DeleteAnyway(id()), true, false, "delete"),
        ] {
            assert_eq!(origin(write, existed, exists).action, action, "{existed} {exists}");
        }
        let Origin { author, detail, .. } = origin(&create, false, true);
        assert_eq!((author, &*detail), (Author::operator("alice"), "exclusion-apply"));
        assert_eq!(Signature::default().author.kind, AuthorKind::ControlPlane);
    }

    #[tokio::test(start_paused = true)]
    async fn old_versions_go_where_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let service = EntityService::open(Arc::clone(&store)).await.unwrap();
        let sweeping = tokio::spawn(service.sweep_history());
        // The first round is over before there is anything to remove.
        tokio::time::sleep(SWEEP / 2).await;
        let change = |at_millis: u64, body: Option<&str>, expected: u64| EntityChange {
            collection: "waf-rulesets".to_owned(),
            id: "old".to_owned(),
            expected,
            body: body.map(ToOwned::to_owned),
            origin: Origin { at_millis, ..Origin::default() },
        };
        store.entities_write(vec![change(1, Some("{}"), 0)], None).await.unwrap();
        store.entities_write(vec![change(2, None, 1)], None).await.unwrap();
        let mut rounds = 0;
        while store.versions("waf-rulesets", "old", 0, 9).await.unwrap().total > 0 {
            tokio::time::sleep(SWEEP).await;
            // The clock of this test does not wait for the thread that writes; a write that changes nothing does.
            assert_eq!(store.history_sweep(0).await, Ok(0));
            rounds += 1;
            assert!(rounds < 100, "nothing removes them");
        }
        store.close().await.unwrap();
        sweeping.await.unwrap();
    }
}
