//! The one thread that writes. Writes that arrive while a commit waits for the disk share the next commit, so that a
//! burst of bans costs a few syncs and not one each.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use super::replica::Following;
use super::{StoreError, StoreFaults};
use base::clock::Stopwatch;

/// Writes that share one commit, at most: bounds how long the first of them waits.
const GROUP_MAX: usize = 256;

/// What a write has changed, for those who watch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// The new global revision, when an entity was written.
    pub(super) revision: Option<u64>,
    /// Something was written, and so the medium works.
    pub(super) proves: bool,
}

/// One write with the caller that waits for it.
trait Job: Send {
    /// Does the work inside the group's transaction.
    fn run(&mut self, db: &Connection) -> rusqlite::Result<Changed>;

    /// Whether it changes anything; false where it is enough that a replica was brought up to its server.
    fn writes(&self) -> bool {
        true
    }

    /// Tells the caller how it went, once the group is durable or has failed.
    fn answer(self: Box<Self>, commit: Result<(), StoreError>);
}

/// The [`Job`] behind [`Writer::write`].
struct Write<T, F> {
    work: Option<F>,
    value: Option<T>,
    tell: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Write<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<(T, Changed)> + Send,
{
    fn run(&mut self, db: &Connection) -> rusqlite::Result<Changed> {
        let Some(work) = self.work.take() else {
            return Ok(Changed::default());
        };
        let (value, changed) = work(db)?;
        self.value = Some(value);
        Ok(changed)
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        // The caller may have gone away; its write stands all the same.
        let Write { value, tell, .. } = *self;
        let _ = tell.send(commit.and_then(|()| value.ok_or(StoreError::Closed)));
    }
}

/// The [`Job`] behind [`Writer::catch_up`], [`Writer::nudge`] and, with the lease of a write, [`Writer::prove`].
struct CatchUp {
    tell: Option<oneshot::Sender<Result<(), StoreError>>>,
    lease: bool,
}

impl Job for CatchUp {
    fn run(&mut self, _db: &Connection) -> rusqlite::Result<Changed> {
        Ok(Changed::default())
    }

    fn writes(&self) -> bool {
        self.lease
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        if let Some(tell) = self.tell {
            let _ = tell.send(commit);
        }
    }
}

/// A handle to the writing thread.
pub(super) struct Writer {
    jobs: Mutex<Option<Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread; with `following`, the database is a replica. `explain` turns an engine error into one of the domain.
    pub(super) fn start(
        db: Connection,
        revisions: watch::Sender<u64>,
        faults: Arc<Mutex<StoreFaults>>,
        following: Option<Arc<Following>>,
        explain: impl Fn(rusqlite::Error) -> StoreError + Send + 'static,
    ) -> std::io::Result<Writer> {
        let (jobs, queue) = channel::<Box<dyn Job>>();
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            run(db, &queue, &revisions, &faults, following.as_deref(), &explain);
        })?;
        Ok(Writer { jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Queues a write and waits until it is durable. The closure must check before it changes anything: an outcome such
    /// as a conflict is an `Ok` of the engine, so that it does not undo the writes it shares the commit with.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<(T, Changed)> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        let job = Box::new(Write { work: Some(work), value: None, tell });
        if !self.send(job) {
            return Err(StoreError::Closed);
        }
        told.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Waits until a replica was brought up to its server.
    pub(super) async fn catch_up(&self) -> Result<(), StoreError> {
        let (tell, told) = oneshot::channel();
        if !self.send(Box::new(CatchUp { tell: Some(tell), lease: false })) {
            return Err(StoreError::Closed);
        }
        told.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Brings a replica up to its server, soon.
    pub(super) fn nudge(&self) {
        self.send(Box::new(CatchUp { tell: None, lease: false }));
    }

    /// Takes the lease of a replica's server and gives it back, soon: whether that works is noted in the faults.
    pub(super) fn prove(&self) {
        self.send(Box::new(CatchUp { tell: None, lease: true }));
    }

    /// Whether a lease shows that what has failed so works again. It needs no memory at the server, so that it says nothing of a full one.
    pub(super) fn proves_by_lease(error: &StoreError) -> bool {
        matches!(error, StoreError::Server { .. } | StoreError::ServerBusy { .. } | StoreError::Unanswered { .. })
    }

    fn send(&self, job: Box<dyn Job>) -> bool {
        match self.jobs.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(jobs) => {
                // Before the writer can take it off again.
                metrics::gauge!("palisade_store_queued_writes").increment(1);
                jobs.send(job).is_ok()
            }
            None => false,
        }
    }

    /// Lets the thread finish what is queued, and waits for it. Blocks.
    pub(super) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn run(
    mut db: Connection,
    queue: &Receiver<Box<dyn Job>>,
    revisions: &watch::Sender<u64>,
    faults: &Mutex<StoreFaults>,
    following: Option<&Following>,
    explain: &dyn Fn(rusqlite::Error) -> StoreError,
) {
    measure(&db);
    while let Ok(first) = queue.recv() {
        let mut group: Vec<Box<dyn Job>> = std::iter::once(first).chain(queue.try_iter()).take(GROUP_MAX).collect();
        let (watch, changes) = (Stopwatch::start(), db.total_changes());
        let outcome = match following {
            None => {
                let outcome = commit(&mut db, &mut group).map_err(explain);
                outcome.map(|changed| Changed { proves: db.total_changes() != changes, ..changed })
            }
            Some(following) => commit_replica(&mut db, &mut group, following, explain),
        };
        metrics::histogram!("palisade_store_commit_seconds").record(watch.seconds());
        if let (Some(following), Err(_)) = (following, &outcome) {
            // What waits behind them would wait for the same server, one timeout after the other.
            group.extend(queue.try_iter());
            // A notice may be among them: the next one must not be taken for queued already.
            following.nudged.store(false, Ordering::SeqCst);
        }
        let writes = group.iter().any(|job| job.writes());
        let count = u32::try_from(group.len()).unwrap_or(u32::MAX);
        metrics::gauge!("palisade_store_queued_writes").decrement(count);
        measure(&db);
        let result = match outcome {
            Ok(changed) => {
                metrics::counter!("palisade_store_writes_total").increment(u64::from(count));
                if let Some(revision) = changed.revision {
                    revisions.send_replace(revision);
                }
                let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
                let leased = following.is_some() && writes;
                if changed.proves || (leased && faults.writes.as_ref().is_some_and(Writer::proves_by_lease)) {
                    faults.writes = None;
                }
                Ok(())
            }
            Err(error) if !writes => {
                faults.lock().unwrap_or_else(PoisonError::into_inner).reads = Some(error.clone());
                Err(error)
            }
            Err(error) => {
                metrics::counter!("palisade_store_failures_total").increment(1);
                faults.lock().unwrap_or_else(PoisonError::into_inner).writes = Some(error.clone());
                Err(error)
            }
        };
        for job in group {
            job.answer(result.clone());
        }
    }
    // The last connection to close, this one, folds the log into the main file: after a clean stop a copy of the one
    // file is a whole backup.
}

fn measure(db: &Connection) {
    let number = |pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
    if let (Ok(pages), Ok(size)) = (number("page_count"), number("page_size")) {
        metrics::gauge!("palisade_store_size_bytes").set(f64::from(pages) * f64::from(size));
    }
}

/// Runs a group in one transaction: all of it becomes durable, or none of it.
fn commit(db: &mut Connection, group: &mut [Box<dyn Job>]) -> rusqlite::Result<Changed> {
    // Dropped without a commit, the transaction rolls back.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut all = Changed::default();
    for job in group {
        let changed = job.run(&transaction)?;
        all.revision = changed.revision.or(all.revision);
    }
    transaction.commit()?;
    Ok(all)
}

/// The same on a replica: it is brought up to its server first, and the server takes what was changed, or refuses it, before the
/// transaction ends here.
fn commit_replica(
    db: &mut Connection,
    group: &mut [Box<dyn Job>],
    following: &Following,
    explain: &dyn Fn(rusqlite::Error) -> StoreError,
) -> Result<Changed, StoreError> {
    let writes = group.iter().any(|job| job.writes());
    following.catch_up(db, writes)?;
    if !writes {
        return Ok(Changed::default());
    }
    let written = (|| {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let mut all = Changed::default();
        for job in group {
            let changed = job.run(&transaction).map_err(explain)?;
            all.revision = changed.revision.or(all.revision);
        }
        let position = following.publish(&transaction)?;
        all.proves = position.is_some();
        match (transaction.commit(), position) {
            (Ok(()), Some(position)) => following.moved(position),
            (Ok(()), None) => {}
            // The server has it: the replica reads it from there, as a change of another.
            (Err(error), Some(_)) => {
                tracing::warn!(%error, "a change that the server has taken is not in the replica yet")
            }
            (Err(error), None) => return Err(explain(error)),
        }
        Ok(all)
    })();
    // Kept for the next change only after one: others would wait for its end.
    if !written.as_ref().is_ok_and(|changed| changed.proves) {
        following.upstream().release();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer on a database whose `child` rows are checked only when they are committed.
    fn writer() -> (Writer, watch::Receiver<u64>) {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);",
        )
        .unwrap();
        let (revisions, seen) = watch::channel(0);
        let explain = |error: rusqlite::Error| StoreError::Failed { path: "memory".into(), detail: error.to_string() };
        (Writer::start(db, revisions, Arc::default(), None, explain).unwrap(), seen)
    }

    fn insert(statement: &'static str) -> impl FnOnce(&Connection) -> rusqlite::Result<((), Changed)> + Send {
        move |db| db.execute(statement, []).map(|_| ((), Changed { revision: Some(7), ..Changed::default() }))
    }

    #[tokio::test]
    async fn nothing_is_acknowledged_before_its_commit() {
        let (writer, seen) = writer();
        // The statement goes through; what fails is the commit.
        let failed = writer.write(insert("INSERT INTO child VALUES (1)")).await;
        assert!(matches!(failed, Err(StoreError::Failed { .. })), "{failed:?}");
        assert_eq!(*seen.borrow(), 0, "a change that was not made is not announced");
        assert_eq!(writer.write(insert("INSERT INTO parent VALUES (1)")).await, Ok(()));
        assert_eq!(*seen.borrow(), 7);
        let children = |db: &Connection| {
            let count: u64 = db.query_row("SELECT count(*) FROM child", [], |row| row.get(0))?;
            Ok((count, Changed::default()))
        };
        assert_eq!(writer.write(children).await, Ok(0));
        writer.close();
        assert_eq!(writer.write(children).await, Err(StoreError::Closed));
    }
}
