//! Changes of entities: checked, admitted, committed, then visible.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, watch};

use super::admission::{Admission, EntityRef, Refusal};
use super::batch::{BatchEntry, BatchWrite};
use super::desk::Desk;
use super::registry::Kind;
use super::{AnyEntity, EntitySet, FieldProblem, Slot, patch, secret};
use crate::clock;
use crate::store::{Store, StoreError};
use crate::telemetry::spawn_within;

/// How soon entities that could not be read are read again.
const AGAIN: Duration = Duration::from_secs(1);

/// The one way to change entities, and the current view of them. Cheap to clone.
#[derive(Clone)]
pub struct EntityService {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) current: watch::Sender<Arc<EntitySet>>,
    admissions: RwLock<Vec<Arc<dyn Admission>>>,
    /// One commit at a time: a candidate is judged against the entities it will stand beside.
    pub(super) writing: Mutex<()>,
    /// Those that wait for their turn.
    pub(super) desk: Desk,
    faults: Arc<StandingFaults>,
    /// Why what others have written could not be read.
    unread: Mutex<Option<StoreError>>,
}

/// What each judge finds wrong with the entities as they are, looked up only where it refuses a write.
#[derive(Default)]
struct StandingFaults {
    /// By judge, at which revision, and what.
    found: std::sync::Mutex<BTreeMap<usize, (u64, Vec<Refusal>)>>,
}

impl StandingFaults {
    fn of(&self, judge: &dyn Admission, current: &EntitySet) -> Vec<Refusal> {
        // Judges are never removed, so an address stays that of one judge.
        let key = std::ptr::from_ref(judge).cast::<()>().addr();
        let revision = current.revision();
        let known = |found: &BTreeMap<usize, (u64, Vec<Refusal>)>| {
            found.get(&key).filter(|(at, _)| *at == revision).map(|(_, faults)| faults.clone())
        };
        if let Some(faults) = known(&self.found.lock().unwrap_or_else(PoisonError::into_inner)) {
            return faults;
        }
        let faults = judge.admit_all(current, &[]).err().unwrap_or_default();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(key, (revision, faults.clone()));
        faults
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
#[non_exhaustive]
pub enum WriteError {
    /// There is no such entity.
    NotFound,
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

impl EntityService {
    /// Reads the entities of a store.
    ///
    /// # Errors
    /// What the store reports.
    pub async fn open(store: Arc<dyn Store>) -> Result<EntityService, StoreError> {
        let set = EntitySet::load(store.as_ref()).await?;
        for (place, problem) in set.unreadable() {
            tracing::error!(entity = %place, %problem, "a stored entity is unreadable for this release and ignored");
        }
        let shared = Shared {
            store,
            current: watch::Sender::new(Arc::new(set)),
            admissions: RwLock::default(),
            writing: Mutex::new(()),
            desk: Desk::default(),
            faults: Arc::default(),
            unread: Mutex::default(),
        };
        Ok(EntityService { shared: Arc::new(shared) })
    }

    /// Adds a judge of every later write.
    pub fn add_admission(&self, admission: Arc<dyn Admission>) {
        self.shared.admissions.write().unwrap_or_else(PoisonError::into_inner).push(admission);
    }

    /// The entities as they are now.
    pub fn current(&self) -> Arc<EntitySet> {
        self.shared.current.borrow().clone()
    }

    /// The entities now and after each change; a slow reader sees the latest only.
    pub fn subscribe(&self) -> watch::Receiver<Arc<EntitySet>> {
        self.shared.current.subscribe()
    }

    /// Why the view of the entities is older than the store's; `None` where it is not.
    pub async fn unread(&self) -> Option<StoreError> {
        self.shared.unread.lock().await.clone()
    }

    /// Follows changes that others make in the store, until the store is closed. What cannot be read is tried again. For a
    /// task of its own.
    pub async fn follow_store(self) {
        let mut changes = self.shared.store.changes();
        while changes.changed().await.is_ok() {
            while let Err(error) = self.catch_up(&mut changes).await {
                if error == StoreError::Closed {
                    return;
                }
                tracing::error!(%error, "reading the entities failed; the last version stays in use");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    async fn catch_up(&self, changes: &mut watch::Receiver<u64>) -> Result<(), StoreError> {
        let revision = *changes.borrow_and_update();
        let _writing = self.shared.writing.lock().await;
        if self.current().revision() < revision { self.shared.reload().await } else { Ok(()) }
    }

    /// Adds an entity; gives it an id where the document has none.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn create(&self, kind: &'static Kind, mut document: Value) -> Result<Written, WriteError> {
        kind.give_id(&mut document);
        self.write(BatchEntry { kind, write: BatchWrite::Create(document), precondition: None }).await
    }

    /// Changes an entity that exists.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn update(
        &self,
        kind: &'static Kind,
        id: &str,
        replacement: Replacement,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        let write = BatchWrite::Update(id.to_owned(), replacement);
        self.write(BatchEntry { kind, write, precondition }).await
    }

    /// Removes an entity that nothing needs any more.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete(
        &self,
        kind: &'static Kind,
        id: &str,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        self.write(BatchEntry { kind, write: BatchWrite::Delete(id.to_owned()), precondition }).await
    }

    /// Removes an entity although others name it, see [`BatchWrite::DeleteAnyway`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete_anyway(
        &self,
        kind: &'static Kind,
        id: &str,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        self.write(BatchEntry { kind, write: BatchWrite::DeleteAnyway(id.to_owned()), precondition }).await
    }

    /// Runs a write to its end even when the caller goes away: what is committed must become visible.
    pub(super) async fn detached<T: Send + 'static, F>(
        &self,
        work: impl FnOnce(Arc<Shared>) -> F,
    ) -> Result<T, WriteError>
    where
        F: Future<Output = Result<T, WriteError>> + Send + 'static,
    {
        let task = spawn_within(work(Arc::clone(&self.shared)));
        task.await.unwrap_or(Err(WriteError::Store(StoreError::Closed)))
    }
}

// === impl Shared ===

impl Shared {
    /// Asks every judge about several changes that are made as one.
    pub(super) async fn admit_all(
        &self,
        candidate: EntitySet,
        changed: Vec<EntityRef>,
    ) -> Result<(EntitySet, Vec<String>), Vec<Refusal>> {
        let (current, faults) = (self.current.borrow().clone(), Arc::clone(&self.faults));
        let judged = self.ask(candidate, move |judge, candidate| {
            let refusals = match judge.admit_all(candidate, &changed) {
                Ok(warnings) => return Ok(warnings),
                Err(refusals) => refusals,
            };
            // What has stood in the store already is not the fault of this write, and would keep every other from being made.
            if refusals.is_empty() || refusals.iter().any(|(own, _)| own.is_some()) {
                return Err(refusals);
            }
            let before = faults.of(judge, &current);
            let (old, new): (Vec<_>, Vec<_>) = refusals.into_iter().partition(|found| before.contains(found));
            match new.is_empty() {
                true => Ok(old.into_iter().map(|(_, problem)| format!("an older fault stays: {problem}")).collect()),
                false => Err(new),
            }
        });
        let judged = judged.await;
        judged.unwrap_or_else(|failed| Err(vec![(None, failed)]))
    }

    /// Each judge may take its time to compile.
    async fn ask<E: Send + 'static>(
        &self,
        candidate: EntitySet,
        ask: impl Fn(&dyn Admission, &EntitySet) -> Result<Vec<String>, E> + Send + 'static,
    ) -> Result<Result<(EntitySet, Vec<String>), E>, FieldProblem> {
        let judges = self.admissions.read().unwrap_or_else(PoisonError::into_inner).clone();
        let judging = tokio::task::spawn_blocking(move || {
            let mut warnings = Vec::new();
            for judge in judges {
                warnings.extend(ask(judge.as_ref(), &candidate)?);
            }
            Ok((candidate, warnings))
        });
        judging.await.map_err(|error| {
            tracing::error!(%error, "an entity could not be compiled");
            FieldProblem::new("", "compiling the entity failed inside the control plane; see its log")
        })
    }

    /// Makes a committed change visible.
    pub(super) async fn publish(&self, mut candidate: EntitySet, revision: u64) {
        if candidate.revision() + 1 == revision {
            candidate.set_revision(revision);
            self.current.send_replace(Arc::new(candidate));
        } else if let Err(error) = self.reload().await {
            // Somebody else has written in between; what they wrote is in the store and not in the candidate.
            tracing::error!(%error, "reading the entities failed; the last version stays in use");
        }
    }

    async fn reload(&self) -> Result<(), StoreError> {
        let loaded = EntitySet::load(self.store.as_ref()).await;
        *self.unread.lock().await = loaded.as_ref().err().cloned();
        self.current.send_replace(Arc::new(loaded?));
        Ok(())
    }
}

/// Gives the document the id of its path, and refuses another one.
pub(super) fn keep_id(document: &mut Value, id: &str) -> Result<(), WriteError> {
    let Some(fields) = document.as_object_mut() else {
        return Ok(());
    };
    match fields.get("id").filter(|found| !found.is_null()) {
        Some(found) if found.as_str() != Some(id) => {
            let message = format!("the path names `{id}`, the document {found}: an id cannot change");
            Err(WriteError::Invalid(vec![FieldProblem::new("/id", message).expected(format!("`{id}`"))]))
        }
        _ => {
            fields.insert("id".to_owned(), Value::from(id));
            Ok(())
        }
    }
}

pub(super) fn demand(precondition: Option<&Precondition>, current: u64) -> Result<(), WriteError> {
    let accepted = precondition.is_none_or(|accepts| accepts(current));
    if accepted { Ok(()) } else { Err(WriteError::Stale { current }) }
}

/// The document that is to be read in the place of the current one. The change is made on what is shown, so that no
/// patch finds a secret out, and what brings the mask back keeps the secret.
pub(super) fn apply(slot: &Slot, replacement: Replacement) -> Result<Value, WriteError> {
    let shown = slot.entity.shown();
    let mut document = shown.clone();
    match replacement {
        Replacement::Whole(whole) => document = whole,
        Replacement::Merge(patch) => json_patch::merge(&mut document, &patch),
        Replacement::Patch(patch) => patch::apply(&mut document, patch)?,
    }
    secret::restore(&mut document, &shown, &slot.entity.stored());
    Ok(document)
}

/// Keeps the times that the server notes in the metadata, whatever the document says about them.
pub(super) fn stamp(document: &mut Value, before: Option<&Slot>) {
    let now = Value::from(clock::rfc3339(clock::now_millis()));
    let created = before.and_then(|slot| slot.entity.head().metadata.get("created_at").cloned());
    let Some(fields) = document.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()));
    // Metadata of another type is left for the reader to find fault with.
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("created_at".to_owned(), created.unwrap_or_else(|| now.clone()));
        metadata.insert("updated_at".to_owned(), now);
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("revision", &self.revision).field("id", &self.entity.head().id).finish()
    }
}

impl std::fmt::Debug for dyn AnyEntity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entity").field("id", &self.head().id).finish_non_exhaustive()
    }
}
