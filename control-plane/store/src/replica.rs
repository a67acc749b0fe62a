//! A store that several control planes share: its rows are on a server ([`Upstream`]), and each control plane works on a
//! replica of them, an SQLite file that is thrown away when it stops.
//!
//! So the rules of a change (limits, what gives way, what is counted) are one set of statements for both stores. A write takes a
//! short lease of the server, brings the replica up to the server's version, makes the change there, and publishes the
//! rows that it has changed: the server takes all of them, if its version is still the same, or none. It is acknowledged when the
//! server has taken them. A read first asks the server for its version, and waits for the replica where that is behind.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{broadcast, watch};

use super::elsewhere::Elsewhere;
use super::messages::Exchange;
use super::replica_rows::{self as rows, Tables};
use super::setback::{Held, Setback};
use super::{Contents, Pending, StoreError, entities};

/// How often a replica is brought up to date at most before a write gives up: each time, the server has moved on so far that the
/// replica had to be read anew.
const ATTEMPTS: usize = 5;

/// A moment in the history of a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of changes that the server has taken; 0 where it holds nothing.
    pub version: u64,
    /// A name of the last change that no other one has: after a failover to a server that has missed changes, the same version
    /// may be another one.
    pub token: String,
}

/// A row as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The number of its table in [`tables`].
    pub table: usize,
    /// Which row, encoded; unique in its table.
    pub key: Vec<u8>,
    /// Its columns, encoded; `None` where it is gone.
    pub row: Option<Vec<u8>>,
}

/// What a replica lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing.
    Current,
    /// These rows, and then it is at this position.
    Changes(Position, Vec<RowChange>),
    /// It cannot be said, or is too much: everything is to be read anew.
    Reload,
    /// The replica has changes that the server has not: the server was started on older data, or another one took over that had missed
    /// them. Everything is to be read anew.
    Diverged,
}

/// Takes a part of the rows that [`Upstream::load`] reads.
pub type TakeRows<'a> = &'a mut dyn FnMut(Vec<RowChange>) -> Result<(), StoreError>;

/// The server that has the rows of a shared store. All but [`Upstream::position`] block, and must not be called on a thread that
/// drives async tasks; each ends within a bounded time.
pub trait Upstream: Send + Sync + 'static {
    /// Where the server is now.
    fn position(&self) -> Pending<'_, Position>;

    /// What a replica at this position lacks.
    fn follow(&self, at: &Position) -> Result<Behind, StoreError>;

    /// As [`Upstream::follow`], and takes the lease: for a short time, only this control plane publishes. Waits while another one
    /// has it.
    fn begin(&self, at: &Position) -> Result<Behind, StoreError>;

    /// Takes all of these rows, where the server is still at this position and no other control plane has the lease, and answers the
    /// position that results. With an error nothing was taken, but for [`StoreError::Unanswered`].
    fn publish(&self, at: &Position, changes: &[RowChange]) -> Result<Position, StoreError>;

    /// Gives the lease back, if it is held. A lease ends by itself as well.
    fn release(&self);

    /// Reads every row, in parts, and answers the position at which the parts, one after the other, result in one consistent view;
    /// `None` where the server has moved on too far meanwhile: what was read is of no use.
    fn load(&self, take: TakeRows<'_>) -> Result<Option<Position>, StoreError>;

    /// Calls `moved` soon after each change of another control plane, and after each reconnect, until the store is closed.
    fn watch(&self, moved: Box<dyn Fn() + Send + Sync>);

    /// What makes acknowledged changes less durable than they should be, in sentences.
    fn cautions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Asks to lead, and goes on asking until the store is closed; `leads` says whether this control plane does. It stops leading by itself
    /// when the server cannot be reached for the time that it has given.
    fn lead(&self, leads: watch::Sender<bool>);

    /// Carries messages to other control planes and from them, until the store is closed.
    fn exchange(&self, exchange: Exchange);

    /// Where the contents of recordings and replays are: they are in no replica.
    fn contents(&self) -> Arc<dyn Contents>;

    /// Gives the lease back, and ends what [`Upstream::watch`], [`Upstream::lead`] and [`Upstream::exchange`] began and every connection.
    fn close(&self);
}

/// The names of the tables whose rows a shared store has, in the order of their numbers.
///
/// # Errors
/// [`StoreError::Failed`]: the engine does not work here.
pub fn tables() -> Result<Vec<String>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Failed { path: "memory".into(), detail: error.to_string() };
    let mut db = Connection::open_in_memory().map_err(failed)?;
    super::schema::migrate(&mut db).map_err(failed)?;
    Ok(Tables::of(&db).map_err(failed)?.names())
}

/// The version of the tables that this release reads and writes.
#[must_use]
pub fn schema_version() -> u32 {
    super::schema::known_version()
}

/// Where the revision, changes of others, and setbacks of the server are announced.
pub(super) type Announcing = (watch::Sender<u64>, broadcast::Sender<Arc<Elsewhere>>, broadcast::Sender<Arc<Setback>>);

/// The replica's side: where it is, and how it gets on.
pub(super) struct Following {
    upstream: Arc<dyn Upstream>,
    tables: Tables,
    position: Mutex<Position>,
    revisions: watch::Sender<u64>,
    elsewhere: broadcast::Sender<Arc<Elsewhere>>,
    setbacks: broadcast::Sender<Arc<Setback>>,
    /// A look at the server is queued already.
    pub(super) nudged: AtomicBool,
    explain: Box<dyn Fn(rusqlite::Error) -> StoreError + Send + Sync>,
}

impl Following {
    /// Reads everything into an empty replica.
    pub(super) fn start(
        upstream: Arc<dyn Upstream>,
        db: &mut Connection,
        (revisions, elsewhere, setbacks): Announcing,
        explain: impl Fn(rusqlite::Error) -> StoreError + Send + Sync + 'static,
    ) -> Result<Following, StoreError> {
        let tables = Tables::of(db).and_then(|tables| tables.watch(db).map(|()| tables)).map_err(&explain)?;
        let following = Following {
            upstream,
            tables,
            position: Mutex::default(),
            revisions,
            elsewhere,
            setbacks,
            nudged: AtomicBool::new(false),
            explain: Box::new(explain),
        };
        following.reload(db, false)?;
        Ok(following)
    }

    pub(super) fn upstream(&self) -> &Arc<dyn Upstream> {
        &self.upstream
    }

    /// Where the replica is.
    pub(super) fn position(&self) -> Position {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The replica is there now.
    pub(super) fn moved(&self, position: Position) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// Brings the replica up to the server, with the lease for a write.
    pub(super) fn catch_up(&self, db: &mut Connection, lease: bool) -> Result<(), StoreError> {
        self.nudged.store(false, Ordering::SeqCst);
        for _ in 0..ATTEMPTS {
            let at = self.position();
            match if lease { self.upstream.begin(&at)? } else { self.upstream.follow(&at)? } {
                Behind::Current => return Ok(()),
                Behind::Changes(position, changes) => {
                    let taken = self.take_over(db, position, &changes);
                    // It was taken with the question. Where the question fails it was mostly not, or ends by itself: to give it back then would
                    // hold up reads at a server that takes no writes.
                    if lease && taken.is_err() {
                        self.upstream.release();
                    }
                    return taken;
                }
                behind @ (Behind::Reload | Behind::Diverged) => {
                    self.upstream.release();
                    self.reload(db, behind == Behind::Diverged)?;
                }
            }
        }
        Err((self.explain)(too_fast()))
    }

    /// Makes changes of others here.
    fn take_over(&self, db: &mut Connection, position: Position, changes: &[RowChange]) -> Result<(), StoreError> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&self.explain)?;
        let elsewhere = self.tables.elsewhere(&transaction, changes).map_err(&self.explain)?;
        self.tables.apply(&transaction, changes).map_err(&self.explain)?;
        rows::forget_changed(&transaction).map_err(&self.explain)?;
        transaction.commit().map_err(&self.explain)?;
        self.moved(position);
        let _no_listener = elsewhere.map(|changed| self.elsewhere.send(Arc::new(changed)));
        self.announce(db)
    }

    /// Gives the rows that a transaction has changed to the server. `None` where it has changed none.
    pub(super) fn publish(&self, transaction: &Connection) -> Result<Option<Position>, StoreError> {
        let changes = self.tables.changed(transaction).map_err(&self.explain)?;
        if changes.is_empty() {
            return Ok(None);
        }
        rows::forget_changed(transaction).map_err(&self.explain)?;
        self.upstream.publish(&self.position(), &changes).map(Some)
    }

    /// Reads everything anew. `diverged`: what the server lacks of the replica is announced.
    fn reload(&self, db: &mut Connection, diverged: bool) -> Result<(), StoreError> {
        let before = self.position();
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&self.explain)?;
        let held = if diverged { Held::of(&transaction) } else { Ok(Held::default()) }.map_err(&self.explain)?;
        let position = self.read_into(&transaction)?;
        if position.version == 0 && before.version > 0 {
            // It was emptied meanwhile: the server says so to the next question.
            return Ok(());
        }
        rows::forget_changed(&transaction).map_err(&self.explain)?;
        if position.version == 0 {
            // Goes to the server with the first change.
            super::schema::begin(&transaction).map_err(&self.explain)?;
        }
        let lost = held.without(&transaction).map_err(&self.explain)?;
        transaction.commit().map_err(&self.explain)?;
        let (had, has) = (before.version, position.version);
        if diverged {
            metrics::counter!("palisade_store_setbacks_total").increment(1);
            // Before the position says that it was read: a read that has its answer finds this announced.
            let _no_listener = self.setbacks.send(Arc::new(Setback { had, has, lost }));
        }
        self.moved(position);
        let _no_listener = self.elsewhere.send(Arc::new(Elsewhere::Anything));
        self.announce(db)
    }

    fn read_into(&self, transaction: &Connection) -> Result<Position, StoreError> {
        for _ in 0..ATTEMPTS {
            self.tables.empty(transaction).map_err(&self.explain)?;
            let mut take = |rows: Vec<RowChange>| self.tables.apply(transaction, &rows).map_err(&self.explain);
            if let Some(position) = self.upstream.load(&mut take)? {
                return Ok(position);
            }
        }
        Err((self.explain)(too_fast()))
    }

    /// Tells those who watch if the global revision is another one.
    fn announce(&self, db: &Connection) -> Result<(), StoreError> {
        let revision = entities::revision(db).map_err(&self.explain)?;
        self.revisions.send_if_modified(|known| std::mem::replace(known, revision) != revision);
        Ok(())
    }
}

fn too_fast() -> rusqlite::Error {
    rusqlite::Error::InvalidParameterName("the server moves on faster than it can be read".to_owned())
}
