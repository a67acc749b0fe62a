//! The entities as they are, and what every change of them shares: the store, the judges, the turn to write.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::admission::{Admission, EntityRef, Refusal, Warning};
use super::change::WriteError;
use super::history::Signature;
use super::write_queue::WriteQueue;
use super::{EntitySet, FieldProblem};
use store::{Author, Elsewhere, Store, StoreError};
use telemetry::spawn_within;

/// How soon entities that could not be read are read again.
const AGAIN: Duration = Duration::from_secs(1);

/// The one way to change entities, and the current view of them. Cheap to clone.
#[derive(Clone)]
pub struct EntityService {
    shared: Arc<Shared>,
    /// What the history of entities says of the changes that are made with this handle.
    pub(super) signature: Signature,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) current: watch::Sender<Arc<EntitySet>>,
    admissions: RwLock<Vec<Arc<dyn Admission>>>,
    /// One commit at a time: a candidate is judged against the entities it will stand beside.
    pub(super) writing: Mutex<()>,
    /// One batch at a time that is only tried.
    pub(super) trying: Mutex<()>,
    /// Those that wait for their turn.
    pub(super) queue: WriteQueue,
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
            trying: Mutex::new(()),
            queue: WriteQueue::default(),
            faults: Arc::default(),
            unread: Mutex::default(),
        };
        Ok(EntityService { shared: Arc::new(shared), signature: Signature::default() })
    }

    /// The same entities, for changes that have this author in the history. `detail` is a note for people, see `store::Origin::detail`; may be
    /// empty. Without this, the author of changes is the control plane itself.
    #[must_use]
    pub fn by(&self, author: Author, detail: &str) -> EntityService {
        EntityService { shared: Arc::clone(&self.shared), signature: Signature::new(author, detail.into()) }
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.shared.store)
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
        let (mut changes, mut others) = (self.shared.store.changes(), self.shared.store.elsewhere());
        loop {
            // Also where the revision is lower than before, or is the same of another history.
            let anew = tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
                changed = others.next() => match changed {
                    Some(Elsewhere::Anything) => true,
                    Some(Elsewhere::Keys(_)) => continue,
                    None => return,
                },
            };
            while let Err(error) = self.catch_up(&mut changes, anew).await {
                if error == StoreError::Closed {
                    return;
                }
                tracing::error!(%error, "reading the entities failed; the last version stays in use");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    async fn catch_up(&self, changes: &mut watch::Receiver<u64>, anew: bool) -> Result<(), StoreError> {
        let revision = *changes.borrow_and_update();
        let _writing = self.shared.writing.lock().await;
        if anew || self.current().revision() < revision { self.shared.reload().await } else { Ok(()) }
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
    ) -> Result<(EntitySet, Vec<Warning>), Vec<Refusal>> {
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
                true => {
                    Ok(old.into_iter().map(|(_, found)| (None, format!("an older fault stays: {found}"))).collect())
                }
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
        ask: impl Fn(&dyn Admission, &EntitySet) -> Result<Vec<Warning>, E> + Send + 'static,
    ) -> Result<Result<(EntitySet, Vec<Warning>), E>, FieldProblem> {
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
    pub(super) fn publish(&self, mut candidate: EntitySet, revision: u64) {
        candidate.set_revision(revision);
        self.current.send_replace(Arc::new(candidate));
    }

    /// Reads the entities anew. The caller holds the right to write.
    pub(super) async fn reload(&self) -> Result<(), StoreError> {
        let loaded = EntitySet::load(self.store.as_ref()).await;
        *self.unread.lock().await = loaded.as_ref().err().cloned();
        self.current.send_replace(Arc::new(loaded?));
        Ok(())
    }
}
