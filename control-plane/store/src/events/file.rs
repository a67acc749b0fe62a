//! [`EventStore`] on a file of its own beside that of the store, and the same file as the copy of what a server has.

use std::path::Path;
use std::sync::Arc;

use base::clock;
use rusqlite::Connection;
use tokio::sync::broadcast;

use super::db_file::{DbFile, STEP};
use super::{
    Block, EventLimits, EventPage, EventQuery, EventStore, EventStoreStatus, NewEvent, search, tables, volume,
};
use crate::replica_files::ReplicaFolder;
use crate::{Pending, StoreError};

/// The name of the file in the data directory.
const FILE: &str = "events.db";
/// How the names of the folders of copies begin.
const COPY: &str = "event-copy-";

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

    /// Removes blocks beyond the limits, or half of all with `half` (at most once in [`GIVES_WAY_SECONDS`](super::GIVES_WAY_SECONDS)),
    /// the oldest first, and answers the position of the last one that was removed, if any was: the server removes it and those before it
    /// as well. The server may have blocks that this copy has not read yet, so that nothing is said of what comes after it. Blocks the thread.
    ///
    /// # Errors
    /// What the file reports.
    pub fn fit(&self, limits: &EventLimits, now_millis: u64, half: bool) -> Result<Option<String>, StoreError> {
        let half = half && self.file.is_time_to_give_way();
        let before = self.file.read(tables::kept)?;
        let mut removed = None;
        loop {
            let more = self.file.write(|db| {
                for _ in 0..STEP {
                    let kept = tables::kept(db)?;
                    let Some((came, position)) = tables::oldest(db)? else { return Ok(false) };
                    let is_old = came < now_millis.saturating_sub(limits.age_millis);
                    let is_beyond = kept.bytes > limits.bytes || kept.events > limits.events;
                    if !(is_old || is_beyond || (half && kept.bytes > before.bytes / 2)) {
                        return Ok(false);
                    }
                    if !tables::remove_oldest(db)? {
                        return Ok(false);
                    }
                    removed = Some(position);
                }
                Ok(true)
            })?;
            if !more {
                return Ok(removed);
            }
        }
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
