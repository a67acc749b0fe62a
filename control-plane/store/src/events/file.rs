//! [`EventStore`] on a file of its own beside that of the store, and the same file as the copy of what a server has.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::{self, Stopwatch};
use rusqlite::Connection;
use tokio::sync::broadcast;

use super::{
    Block, EventLimits, EventPage, EventQuery, EventStore, EventStoreStatus, GIVES_WAY_SECONDS, NewEvent, search,
    tables, volume,
};
use crate::replica_files::ReplicaFolder;
use crate::{Pending, StoreError, file};

/// The name of the file in the data directory.
const FILE: &str = "events.db";
/// How the names of the folders of copies begin.
const COPY: &str = "event-copy-";
/// Blocks that one transaction removes: others wait for so long.
const STEP: usize = 8;

/// Events in a file of the data directory. A file that is damaged is put aside (`events.db.unusable`), and a new one is begun.
#[derive(Debug)]
pub struct EventFile {
    file: Arc<DbFile>,
    limits: EventLimits,
    others: broadcast::Sender<Arc<[u8]>>,
}

/// The copy of the events that a server has, in a folder of its own that ends with it. Blocks come in the order of the server's.
#[derive(Debug)]
pub struct EventCopy {
    file: Arc<DbFile>,
    _folder: ReplicaFolder,
}

/// A file with two connections: searches do not wait for what is appended, nor the reverse.
struct DbFile {
    path: PathBuf,
    durable: bool,
    writer: Mutex<Option<Connection>>,
    reader: Mutex<Option<Connection>>,
    closed: Mutex<bool>,
    gave_way: Mutex<Option<Stopwatch>>,
}

// === impl EventFile ===

impl EventFile {
    /// The events of a directory. Nothing is opened yet: a file that cannot be used fails the calls, and is tried again by the next one.
    #[must_use]
    pub fn new(directory: &Path, limits: EventLimits) -> EventFile {
        let file = Arc::new(DbFile::new(directory.join(FILE), true));
        EventFile { file, limits, others: broadcast::channel(1).0 }
    }
}

impl EventStore for EventFile {
    fn append(&self, events: Vec<NewEvent>) -> Pending<'_, ()> {
        let limits = self.limits;
        Box::pin(self.file.run(move |file| {
            if volume::is_short(file.path.parent().unwrap_or(&file.path)) {
                file.give_way()?;
                return Err(StoreError::DiskFull { path: file.path.clone() });
            }
            let blocks = Block::pack(events).map_err(|error| file.failed(&error))?;
            let now = clock::now_millis();
            let added = file.write(|db| blocks.iter().try_for_each(|block| tables::add(db, block, now, "")));
            if matches!(added, Err(StoreError::DiskFull { .. })) {
                file.give_way()?;
            }
            added?;
            file.fit(&limits, now, blocks.len() * 2)
        }))
    }

    fn search(&self, query: EventQuery) -> Pending<'_, EventPage> {
        Box::pin(self.file.run(move |file| file.read(|db| search::run(db, &query))))
    }

    fn status(&self) -> Pending<'_, EventStoreStatus> {
        Box::pin(self.file.run(move |file| {
            file.read(|db| {
                let (kept, oldest_millis) = (tables::kept(db)?, tables::oldest_millis(db)?);
                Ok(EventStoreStatus { events: kept.events, bytes: tables::used_bytes(db)?, oldest_millis })
            })
        }))
    }

    fn sweep(&self, now_millis: u64) -> Pending<'_, ()> {
        let limits = self.limits;
        Box::pin(self.file.run(move |file| {
            file.fit(&limits, now_millis, usize::MAX)?;
            file.write(|db| tables::shrink(db, false))
        }))
    }

    fn give_way(&self) -> Pending<'_, bool> {
        Box::pin(self.file.run(move |file| file.give_way()))
    }

    fn others(&self) -> broadcast::Receiver<Arc<[u8]>> {
        self.others.subscribe()
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let file = Arc::clone(&self.file);
            let _ended = tokio::task::spawn_blocking(move || file.close()).await;
            Ok(())
        })
    }
}

// === impl EventCopy ===

impl EventCopy {
    /// An empty copy in a folder of its own within `directory`. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn create(directory: &Path) -> Result<EventCopy, StoreError> {
        let folder = ReplicaFolder::create_as(COPY, directory)?;
        Ok(EventCopy { file: Arc::new(DbFile::new(folder.path().join(FILE), false)), _folder: folder })
    }

    /// Adds blocks, each with its position at the server and the time of that in milliseconds since 1970. Blocks the thread.
    ///
    /// # Errors
    /// What the file reports; none of them was added.
    pub fn add(&self, blocks: &[(u64, String, Block)]) -> Result<(), StoreError> {
        self.file
            .write(|db| blocks.iter().try_for_each(|(came, position, block)| tables::add(db, block, *came, position)))
    }

    /// Removes everything: the server has other events now. Blocks the thread.
    ///
    /// # Errors
    /// What the file reports.
    pub fn clear(&self) -> Result<(), StoreError> {
        self.file.write(tables::clear)
    }

    /// Removes blocks beyond the limits, or half of all with `half` (at most once in [`GIVES_WAY_SECONDS`]), the oldest first, and
    /// answers the position of the oldest that is left, if any was removed: the server removes those before it as well. Blocks the
    /// thread.
    ///
    /// # Errors
    /// What the file reports.
    pub fn fit(&self, limits: &EventLimits, now_millis: u64, half: bool) -> Result<Option<String>, StoreError> {
        let half = half && self.file.is_time_to_give_way();
        let before = self.file.read(tables::kept)?;
        let mut removed = false;
        loop {
            let more = self.file.write(|db| {
                for _ in 0..STEP {
                    let kept = tables::kept(db)?;
                    let Some((came, _)) = tables::oldest(db)? else { return Ok(false) };
                    let is_old = came < now_millis.saturating_sub(limits.age_millis);
                    let is_beyond = kept.bytes > limits.bytes || kept.events > limits.events;
                    if !(is_old || is_beyond || (half && kept.bytes > before.bytes / 2)) {
                        return Ok(false);
                    }
                    removed |= tables::remove_oldest(db)?;
                }
                Ok(true)
            })?;
            if !more {
                break;
            }
        }
        if !removed {
            return Ok(None);
        }
        let oldest = self.file.read(tables::oldest)?;
        // All are gone: the server removes every block that is older than now.
        Ok(Some(oldest.map_or_else(|| format!("{now_millis}-0"), |(_, position)| position)))
    }

    /// As [`EventStore::search`].
    ///
    /// # Errors
    /// What the file reports.
    pub async fn search(&self, query: EventQuery) -> Result<EventPage, StoreError> {
        self.file.run(move |file| file.read(|db| search::run(db, &query))).await
    }

    /// As [`EventStore::status`]: the bytes are those of the blocks.
    ///
    /// # Errors
    /// What the file reports.
    pub async fn status(&self) -> Result<EventStoreStatus, StoreError> {
        let read = |db: &Connection| {
            let (kept, oldest_millis) = (tables::kept(db)?, tables::oldest_millis(db)?);
            Ok(EventStoreStatus { events: kept.events, bytes: kept.bytes, oldest_millis })
        };
        self.file.run(move |file| file.read(read)).await
    }

    /// Closes the file. Blocks the thread.
    pub fn close(&self) {
        self.file.close();
    }
}

// === impl DbFile ===

impl DbFile {
    fn new(path: PathBuf, durable: bool) -> DbFile {
        DbFile {
            path,
            durable,
            writer: Mutex::default(),
            reader: Mutex::default(),
            closed: Mutex::default(),
            gave_way: Mutex::default(),
        }
    }

    /// Works with the file on a thread that may block.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&DbFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&file)).await.unwrap_or(Err(StoreError::Closed))
    }

    /// One transaction.
    fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(&self.writer, |db| {
            let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    /// One consistent view.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(&self.reader, |db| work(&*db.transaction()?))
    }

    fn with<T>(
        &self,
        connection: &Mutex<Option<Connection>>,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if *held(&self.closed) {
            return Err(StoreError::Closed);
        }
        let mut connection = held(connection);
        let db = match connection.as_mut() {
            Some(db) => db,
            None => connection.insert(self.open()?),
        };
        let done = work(db);
        if done.as_ref().is_err_and(tables::is_useless) {
            *connection = None;
            drop(connection);
            self.put_aside();
        }
        done.map_err(|error| file::explain(&self.path, error))
    }

    fn open(&self) -> Result<Connection, StoreError> {
        if let Some(directory) = self.path.parent() {
            file::directory(directory).map_err(|error| self.failed(&error))?;
        }
        // Made here first, so that no other user can read what is written to it; its log gets the same permissions.
        let made = std::fs::File::options().create(true).append(true).open(&self.path);
        let made = made.and_then(|made| made.set_permissions(Permissions::from_mode(0o600)));
        made.map_err(|error| self.failed(&error))?;
        let opened = tables::open(&self.path, self.durable);
        let opened = match opened {
            Err(error) if tables::is_useless(&error) => {
                tracing::error!(path = %self.path.display(), %error, "the stored events cannot be read");
                self.put_aside();
                tables::open(&self.path, self.durable)
            }
            other => other,
        };
        opened.map_err(|error| file::explain(&self.path, error))
    }

    /// Puts the file aside, in the place of one that was put aside before. Calls that are at work with it go on with what they have.
    fn put_aside(&self) {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".unusable");
        tracing::error!(path = %self.path.display(), aside = %aside.display(), "put aside; events go on in a new file");
        for (from, to) in [("", ""), ("-wal", "-wal"), ("-shm", "-shm")] {
            let named = |path: &std::ffi::OsStr, end: &str| {
                let mut path = path.to_owned();
                path.push(end);
                PathBuf::from(path)
            };
            let (from, to) = (named(self.path.as_os_str(), from), named(&aside, to));
            if let Err(error) = std::fs::rename(&from, &to)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %from.display(), %error, "it could not be put aside");
            }
        }
        for connection in [&self.writer, &self.reader] {
            // The call that holds it opens it again by itself.
            if let Ok(mut connection) = connection.try_lock() {
                *connection = None;
            }
        }
    }

    /// Removes blocks until all is within the limits, at most `most` of them.
    fn fit(&self, limits: &EventLimits, now_millis: u64, most: usize) -> Result<(), StoreError> {
        let mut left = most.max(STEP);
        loop {
            let step = left.min(STEP);
            let more = self.write(|db| {
                for _ in 0..step {
                    let Some((came, _)) = tables::oldest(db)? else { return Ok(false) };
                    let is_old = came < now_millis.saturating_sub(limits.age_millis);
                    let is_beyond = tables::kept(db)?.events > limits.events || tables::used_bytes(db)? > limits.bytes;
                    if !(is_old || is_beyond) || !tables::remove_oldest(db)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
            left -= step;
            if !more || left == 0 {
                return Ok(());
            }
        }
    }

    /// Whether none have given way for some time. Begins that time again if so.
    fn is_time_to_give_way(&self) -> bool {
        let mut last = held(&self.gave_way);
        let is_time = last.as_ref().is_none_or(|last| last.seconds() >= GIVES_WAY_SECONDS);
        if is_time {
            *last = Some(Stopwatch::start());
        }
        is_time
    }

    /// Removes half of the events and gives their room back, if it is time. Where there is no room even for that, all of them.
    fn give_way(&self) -> Result<bool, StoreError> {
        if !self.is_time_to_give_way() {
            return Ok(false);
        }
        let half = self.read(tables::kept).map(|kept| kept.events / 2);
        let removed = half.and_then(|half| {
            while self.write(|db| {
                for _ in 0..STEP {
                    if tables::kept(db)?.events <= half || !tables::remove_oldest(db)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })? {}
            self.write(|db| tables::shrink(db, true))?;
            self.with(&self.writer, |db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).or(Ok(())))
        });
        match removed {
            Err(StoreError::DiskFull { .. }) => {
                *held(&self.writer) = None;
                *held(&self.reader) = None;
                for end in ["-wal", "-shm", ""] {
                    let mut path = self.path.clone().into_os_string();
                    path.push(end);
                    let _ = std::fs::remove_file(path);
                }
                tracing::error!(path = %self.path.display(), "the volume is full: all stored events were removed");
                Ok(true)
            }
            other => other.map(|()| true),
        }
    }

    fn close(&self) {
        *held(&self.closed) = true;
        // The reader goes first: the last connection to close folds the log in.
        drop(held(&self.reader).take());
        drop(held(&self.writer).take());
    }

    fn failed(&self, error: &std::io::Error) -> StoreError {
        StoreError::Failed { path: self.path.clone(), detail: error.to_string() }
    }
}

impl std::fmt::Debug for DbFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbFile").field("path", &self.path).finish_non_exhaustive()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
