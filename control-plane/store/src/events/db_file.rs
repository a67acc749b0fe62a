//! A file of events, opened when it is needed, and put aside or removed when it is of no use.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::Stopwatch;
use rusqlite::Connection;

use super::{EventLimits, GIVES_WAY_SECONDS, tables};
use crate::{StoreError, file};

/// Blocks that one transaction removes: others wait for so long.
pub(super) const STEP: usize = 8;

/// A file with two connections: searches do not wait for what is appended, nor the reverse.
pub(super) struct DbFile {
    pub(super) path: PathBuf,
    durable: bool,
    writer: Slot,
    reader: Slot,
    /// Grows whenever the file is put aside or removed: connections of earlier numbers are to the file that was there before.
    generation: AtomicU64,
    /// Held while the file is opened, put aside or removed. Never taken before a slot.
    changing: Mutex<()>,
    closed: Mutex<bool>,
    gave_way: Mutex<Option<Stopwatch>>,
}

/// A connection, if there is one, with the generation of the file that it is to.
type Slot = Mutex<Option<(u64, Connection)>>;

// === impl DbFile ===

impl DbFile {
    pub(super) fn new(path: PathBuf, durable: bool) -> DbFile {
        DbFile {
            path,
            durable,
            writer: Mutex::default(),
            reader: Mutex::default(),
            generation: AtomicU64::new(0),
            changing: Mutex::default(),
            closed: Mutex::default(),
            gave_way: Mutex::default(),
        }
    }

    /// Works with the file on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&DbFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&file)).await.unwrap_or(Err(StoreError::Closed))
    }

    /// One transaction.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(&self.writer, |db| {
            let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    /// One consistent view.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(&self.reader, |db| work(&*db.transaction()?))
    }

    fn with<T>(&self, slot: &Slot, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        if *held(&self.closed) {
            return Err(StoreError::Closed);
        }
        let mut slot = held(slot);
        if slot.as_ref().is_some_and(|(generation, _)| *generation != self.generation()) {
            *slot = None;
        }
        let (generation, db) = match slot.as_mut() {
            Some(opened) => opened,
            None => slot.insert(self.open()?),
        };
        let (generation, done) = (*generation, work(db));
        if done.as_ref().is_err_and(tables::is_useless) {
            *slot = None;
            let _changing = held(&self.changing);
            self.put_aside(generation);
        }
        done.map_err(|error| file::explain(&self.path, error))
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn open(&self) -> Result<(u64, Connection), StoreError> {
        if let Some(directory) = self.path.parent() {
            file::directory(directory).map_err(|error| self.failed(&error))?;
        }
        let _changing = held(&self.changing);
        let generation = self.generation();
        match self.open_file()? {
            Err(error) if tables::is_useless(&error) => {
                tracing::error!(path = %self.path.display(), %error, "the stored events cannot be read");
                self.put_aside(generation);
                self.open_file()?
            }
            other => other,
        }
        .map(|db| (self.generation(), db))
        .map_err(|error| file::explain(&self.path, error))
    }

    fn open_file(&self) -> Result<rusqlite::Result<Connection>, StoreError> {
        // Made here first, so that no other user can read what is written to it; its log gets the same permissions.
        let made = std::fs::File::options().create(true).append(true).open(&self.path);
        let made = made.and_then(|made| made.set_permissions(Permissions::from_mode(0o600)));
        made.map_err(|error| self.failed(&error))?;
        Ok(tables::open(&self.path, self.durable))
    }

    /// Puts the file of a generation aside, in the place of one that was put aside before, unless that was done already. Calls that are at work
    /// with it go on with what they have; later ones are to the new file. The caller holds `changing`.
    fn put_aside(&self, generation: u64) {
        if self.generation() != generation {
            return;
        }
        let mut aside = self.path.clone().into_os_string();
        aside.push(".unusable");
        tracing::error!(path = %self.path.display(), aside = %aside.display(), "put aside; events go on in a new file");
        for end in ["", "-wal", "-shm"] {
            let (from, to) = (with_end(self.path.as_os_str(), end), with_end(&aside, end));
            if let Err(error) = std::fs::rename(&from, &to)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %from.display(), %error, "it could not be put aside");
            }
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes the file with all of its events, and closes it: the room is free when no connection has it any more.
    fn remove(&self) {
        let changing = held(&self.changing);
        for end in ["-wal", "-shm", ""] {
            let _ = std::fs::remove_file(with_end(self.path.as_os_str(), end));
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
        drop(changing);
        for slot in [&self.writer, &self.reader] {
            *held(slot) = None;
        }
        tracing::error!(path = %self.path.display(), "the volume is full: all stored events were removed");
    }

    /// Removes blocks until all is within the limits, at most `most` of them.
    pub(super) fn fit(&self, limits: &EventLimits, now_millis: u64, most: usize) -> Result<(), StoreError> {
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
    pub(super) fn is_time_to_give_way(&self) -> bool {
        let mut last = held(&self.gave_way);
        let is_time = last.as_ref().is_none_or(|last| last.seconds() >= GIVES_WAY_SECONDS);
        if is_time {
            *last = Some(Stopwatch::start());
        }
        is_time
    }

    /// Removes half of the events and gives their room back, if it is time. Where there is no room even for that, all of them.
    pub(super) fn give_way(&self) -> Result<bool, StoreError> {
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
                self.remove();
                Ok(true)
            }
            other => other.map(|()| true),
        }
    }

    pub(super) fn close(&self) {
        *held(&self.closed) = true;
        // The reader goes first: the last connection to close folds the log in.
        drop(held(&self.reader).take());
        drop(held(&self.writer).take());
    }

    pub(super) fn failed(&self, error: &std::io::Error) -> StoreError {
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

fn with_end(path: &OsStr, end: &str) -> PathBuf {
    let mut path = path.to_owned();
    path.push(end);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::super::{Block, NewEvent};
    use super::*;

    fn block(number: u64) -> Block {
        let event = format!(r#"{{"@id":"event_{number}","@timestamp":1}}"#).into_bytes();
        Block::pack(vec![NewEvent::read(&event.into(), 1).unwrap()]).unwrap().remove(0)
    }

    fn corrupt<T>() -> rusqlite::Result<T> {
        Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None))
    }

    /// The events that the reader finds, and those that the writer does, after `meanwhile` while the reader is at work. What it was at work with
    /// ends as `last` says.
    fn after(meanwhile: fn(&Arc<DbFile>), last: fn() -> rusqlite::Result<()>) -> (u64, u64) {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(DbFile::new(folder.path().join("events.db"), true));
        for number in 0..3 {
            file.write(|db| tables::add(db, &block(number), 1, "")).unwrap();
        }
        let ((tell_begun, begun), (tell_end, end)) = (mpsc::channel(), mpsc::channel::<()>());
        let reading = Arc::clone(&file);
        let reader = std::thread::spawn(move || {
            reading.read(|db| {
                assert_eq!(tables::kept(db)?.events, 3);
                tell_begun.send(()).unwrap();
                end.recv_timeout(Duration::from_secs(60)).unwrap();
                last()
            })
        });
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        meanwhile(&file);
        // In the new file there is none.
        assert_eq!(file.write(tables::kept).unwrap().events, 0);
        file.write(|db| tables::add(db, &block(9), 2, "")).unwrap();
        tell_end.send(()).unwrap();
        let _ended = reader.join().unwrap();
        let events = (file.read(tables::kept).unwrap().events, file.write(tables::kept).unwrap().events);
        file.close();
        events
    }

    #[test]
    fn after_a_file_was_put_aside_both_connections_are_to_the_new_one() {
        let damaged = |file: &Arc<DbFile>| assert!(file.write(|_| corrupt::<()>()).is_err());
        assert_eq!(after(damaged, || Ok(())), (1, 1));
        // One that finds the damage later does not put the new file aside.
        assert_eq!(after(damaged, corrupt), (1, 1));
    }

    #[test]
    fn after_a_file_was_removed_both_connections_are_to_the_new_one() {
        let removed = |file: &Arc<DbFile>| {
            let (before, removing) = (file.generation(), Arc::clone(file));
            std::thread::spawn(move || removing.remove());
            while file.generation() == before {
                std::thread::yield_now();
            }
        };
        assert_eq!(after(removed, || Ok(())), (1, 1));
    }
}
