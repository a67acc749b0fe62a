//! The embedded store: one SQLite file in the data directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{broadcast, watch};

use super::access::{self, SELECT_KEY, admin_key};
use super::contents::{Contents, FolderContents};
use super::elsewhere::{self, Elsewhere, Others};
use super::file::{self, FILE, connect, create, explain, lock, verify};
use super::messages::{Listener, Messages};
use super::replica::{Following, Upstream};
use super::replica_files::ReplicaFolder;
use super::setback::{self, Setback, Setbacks};
use super::sqlite_history::Replaced;
use super::writer::{Changed, Writer};
use super::{
    AccessChange, EntityChange, EntityRows, Kept, Origin, Pending, Store, StoreError, StoreFaults, entities, operators,
    schema, sqlite_history,
};
use accounts::AdminKey;
use accounts::{Operator, Session};

/// The statements of the writer that are kept prepared: all that there are.
const STATEMENTS: usize = 256;

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteOptions {
    /// Whether this process is the one that serves from the directory: locks it until the store is closed.
    pub exclusive: bool,
    /// The size the file may grow to, in pages of 4096 bytes; `None` leaves it to the volume. Writes past it fail with
    /// [`StoreError::DiskFull`].
    pub max_pages: Option<u32>,
}

/// [`Store`] on an embedded SQLite file, in WAL mode with a sync on each commit; or on a replica of what a server has, see
/// [`replica`](super::replica).
pub struct SqliteStore {
    path: PathBuf,
    writer: Arc<Writer>,
    reader: Arc<Mutex<Option<Connection>>>,
    lock: Mutex<Option<File>>,
    revisions: watch::Receiver<u64>,
    faults: Arc<Mutex<StoreFaults>>,
    /// Announces what others change; nothing where no other one shares the store.
    elsewhere: broadcast::Sender<Arc<Elsewhere>>,
    setbacks: broadcast::Sender<Arc<Setback>>,
    leads: watch::Receiver<bool>,
    messages: Messages,
    /// Where the file is a replica: of what.
    following: Option<Arc<Following>>,
    /// The folder of a replica, until the store is closed.
    folder: Arc<Mutex<Option<ReplicaFolder>>>,
    contents: Arc<dyn Contents>,
}

impl SqliteStore {
    /// Opens the store in `directory`, creating both where they do not exist. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for a file that is not a readable store (it is never replaced by an empty one),
    /// [`StoreError::TooNew`], [`StoreError::InUse`], [`StoreError::Failed`].
    pub fn open(directory: &Path, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        let path = directory.join(FILE);
        let failed = |error: std::io::Error| StoreError::Failed { path: path.clone(), detail: error.to_string() };
        file::directory(directory).map_err(failed)?;
        let lock = if options.exclusive { Some(lock(directory)?) } else { None };
        if !path.try_exists().map_err(failed)? {
            create(directory, &path)?;
        }
        let mut db = connect(&path)?;
        verify(&db, &path)?;
        schema::migrate(&mut db).map_err(|error| explain(&path, error))?;
        if let Some(pages) = options.max_pages {
            db.pragma_update(None, "max_page_count", pages).map_err(|error| explain(&path, error))?;
        }
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        let revision = entities::revision(&db).map_err(|error| explain(&path, error))?;
        let (announce, revisions) = watch::channel(revision);
        let reader = connect(&path)?;
        reader.pragma_update(None, "query_only", true).map_err(|error| explain(&path, error))?;
        let explained = path.clone();
        let faults: Arc<Mutex<StoreFaults>> = Arc::default();
        let explain = move |error| explain(&explained, error);
        let writer = Writer::start(db, announce, Arc::clone(&faults), None, explain).map_err(failed)?;
        Ok(SqliteStore {
            writer: Arc::new(writer),
            reader: Arc::new(Mutex::new(Some(reader))),
            lock: Mutex::new(lock),
            revisions,
            faults,
            elsewhere: elsewhere::channel(),
            setbacks: setback::channel(),
            leads: watch::channel(true).1,
            // Without its other end: what is told goes nowhere.
            messages: Messages::new().0,
            following: None,
            folder: Arc::default(),
            contents: Arc::new(FolderContents::within(directory)),
            path,
        })
    }

    /// Opens a store whose rows a server has, with a replica in a folder of its own within `directory`, which is removed when
    /// the store is closed. Reads all rows. With `serves` it asks to lead, see [`Store::leads`]; a command beside control planes does not.
    /// Blocks, and must not be called on a thread that drives async tasks.
    ///
    /// # Errors
    /// Those of the server, and [`StoreError::Failed`] about the replica.
    pub fn follow(upstream: Arc<dyn Upstream>, directory: &Path, serves: bool) -> Result<SqliteStore, StoreError> {
        let folder = ReplicaFolder::create(directory)?;
        let path = folder.path().join(FILE);
        let explained = path.clone();
        let explain = move |error| explain(&explained, error);
        create(folder.path(), &path)?;
        let mut db = connect(&path)?;
        // The server is what makes a write durable.
        db.pragma_update(None, "synchronous", "OFF").map_err(&explain)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        let (announce, revisions) = watch::channel(0);
        let (elsewhere, setbacks) = (elsewhere::channel(), setback::channel());
        let announcing = (announce.clone(), elsewhere.clone(), setbacks.clone());
        let following = Following::start(upstream, &mut db, announcing, explain.clone())?;
        let following = Arc::new(following);
        let reader = connect(&path)?;
        reader.pragma_update(None, "query_only", true).map_err(&explain)?;
        let faults: Arc<Mutex<StoreFaults>> = Arc::default();
        let failed = |error: std::io::Error| StoreError::Failed { path: path.clone(), detail: error.to_string() };
        let started = Writer::start(db, announce, Arc::clone(&faults), Some(Arc::clone(&following)), explain);
        let writer = Arc::new(started.map_err(failed)?);
        let (lead, leads) = watch::channel(false);
        if serves {
            following.upstream().lead(lead);
        }
        let (messages, exchange) = Messages::new();
        if serves {
            following.upstream().exchange(exchange);
        }
        let (nudged, told) = (Arc::downgrade(&writer), Arc::downgrade(&following));
        following.upstream().watch(Box::new(move || {
            if let (Some(writer), Some(following)) = (nudged.upgrade(), told.upgrade())
                && !following.nudged.swap(true, Ordering::SeqCst)
            {
                writer.nudge();
            }
        }));
        Ok(SqliteStore {
            writer,
            reader: Arc::new(Mutex::new(Some(reader))),
            lock: Mutex::default(),
            revisions,
            faults,
            elsewhere,
            setbacks,
            leads,
            messages,
            contents: following.upstream().contents(),
            following: Some(following),
            folder: Arc::new(Mutex::new(Some(folder))),
            path,
        })
    }

    /// Waits until a replica has what the server had when this was called.
    async fn catch_up(&self) -> Result<(), StoreError> {
        match &self.following {
            Some(following) if following.upstream().position().await? != following.position() => {
                self.writer.catch_up().await
            }
            _ => Ok(()),
        }
    }

    /// Where the contents of recordings and replays are.
    pub(super) fn contents(&self) -> &Arc<dyn Contents> {
        &self.contents
    }

    /// Whether `directory` holds a store, damaged or not.
    pub fn exists(directory: &Path) -> bool {
        directory.join(FILE).exists()
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let current = self.catch_up().await;
        if let Err(error) = &current {
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).reads = Some(error.clone());
        }
        current?;
        self.read_here(work).await
    }

    /// [`SqliteStore::read`] of what is better old than not at all, such as what gateways are told: of a server that cannot be reached what
    /// the replica has of it. What it lacks is announced when the server is back.
    pub(super) async fn read_known<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let current = self.catch_up().await;
        let result = self.read_here(work).await;
        if let Err(error) = current {
            tracing::warn!(%error, "the shared store does not answer: what was known of it last is used");
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).reads = Some(error);
        }
        result
    }

    async fn read_here<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reader, path) = (Arc::clone(&self.reader), self.path.clone());
        let task =
            tokio::task::spawn_blocking(move || match reader.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                Some(db) => work(db).map_err(|error| explain(&path, error)),
                None => Err(StoreError::Closed),
            });
        let result = task.await.unwrap_or(Err(StoreError::Closed));
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).reads = result.as_ref().err().cloned();
        result
    }

    /// Writes that are no entities.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.write(move |db| Ok((work(db)?, Changed::default()))).await
    }

    /// Makes changes of entities. Where there is no room for them, earlier versions give way, half of them at a time, and at last
    /// the documents that are replaced: a deletion makes room. Those at a server make none on the disk of a replica.
    async fn change_entities(&self, changes: Vec<EntityChange>, judged_at: Option<u64>) -> Result<u64, StoreError> {
        let (changes, mut replaced) = (Arc::new(changes), Replaced::Kept);
        loop {
            let again = Arc::clone(&changes);
            let written = self.writer.write(move |db| entities::write(db, &again, judged_at, replaced)).await;
            let full = match &written {
                Err(StoreError::ServerFull { .. }) => true,
                Err(StoreError::DiskFull { .. }) => self.following.is_none(),
                _ => false,
            };
            if !full || replaced == Replaced::Dropped {
                return written?;
            }
            let again = Arc::clone(&changes);
            if self.write(move |db| sqlite_history::give_way(db, &again)).await != Ok(true) {
                replaced = Replaced::Dropped;
            }
        }
    }

    /// Makes one change.
    async fn change_entity(&self, change: EntityChange) -> Result<u64, StoreError> {
        self.change_entities(vec![change], None).await.map_err(|error| match error {
            StoreError::BatchConflict { current, .. } => StoreError::Conflict { current },
            other => other,
        })
    }
}

impl Store for SqliteStore {
    fn entities(&self) -> Pending<'_, EntityRows> {
        Box::pin(self.read(entities::all))
    }

    fn entity_put(&self, collection: &str, id: &str, body: String, expected: u64) -> Pending<'_, u64> {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        Box::pin(self.change_entity(EntityChange {
            collection,
            id,
            expected,
            body: Some(body),
            origin: Origin::default(),
        }))
    }

    fn entity_remove(&self, collection: &str, id: &str, expected: u64) -> Pending<'_, u64> {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        Box::pin(self.change_entity(EntityChange { collection, id, expected, body: None, origin: Origin::default() }))
    }

    fn entities_write(&self, changes: Vec<EntityChange>, judged_at: Option<u64>) -> Pending<'_, u64> {
        Box::pin(self.change_entities(changes, judged_at))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.revisions.clone()
    }

    fn admin_key_put(&self, key: AdminKey) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| access::put(db, &key)))
    }

    fn admin_key(&self, id: &str) -> Pending<'_, Option<AdminKey>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| {
            db.prepare_cached(&format!("{SELECT_KEY} WHERE id = ?1"))?.query_row([id], admin_key).optional()
        }))
    }

    fn admin_keys(&self) -> Pending<'_, Vec<AdminKey>> {
        Box::pin(self.read(|db| {
            let mut statement = db.prepare_cached(&format!("{SELECT_KEY} ORDER BY created_at, id"))?;
            statement.query_map([], admin_key)?.collect()
        }))
    }

    fn admin_key_revoke(&self, id: &str, now_millis: u64) -> Pending<'_, bool> {
        let id = id.to_owned();
        Box::pin(self.write(move |db| access::revoke(db, &id, now_millis)))
    }

    fn access_change(&self, change: AccessChange, event: String) -> Pending<'_, bool> {
        Box::pin(self.write(move |db| access::change(db, &change, &event)))
    }

    fn kept_events(&self, after: u64) -> Pending<'_, Vec<Kept>> {
        Box::pin(self.read(move |db| access::kept(db, after)))
    }

    fn kept_events_told(&self, last: Kept) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| access::told(db, &last)))
    }

    fn operator_add(&self, operator: Operator) -> Pending<'_, bool> {
        Box::pin(self.write(move |db| operators::add(db, &operator)))
    }

    fn operator(&self, name: &str) -> Pending<'_, Option<Operator>> {
        let name = name.to_owned();
        Box::pin(self.read(move |db| operators::find(db, &name)))
    }

    fn operators(&self) -> Pending<'_, Vec<Operator>> {
        Box::pin(self.read(|db| operators::all(db)))
    }

    fn operator_remove(&self, name: &str) -> Pending<'_, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |db| operators::remove(db, &name)))
    }

    fn operator_set_password(&self, name: &str, hash: &str, now_millis: u64) -> Pending<'_, bool> {
        let (name, hash) = (name.to_owned(), hash.to_owned());
        Box::pin(self.write(move |db| operators::set_password(db, &name, &hash, now_millis)))
    }

    fn session_begin(&self, session: Session, password_hash: &str, with_code: bool, limit: u32) -> Pending<'_, bool> {
        let hash = password_hash.to_owned();
        Box::pin(self.write(move |db| operators::begin(db, &session, &hash, with_code, limit)))
    }

    fn session(&self, token_sha256: [u8; 32]) -> Pending<'_, Option<(Session, Operator)>> {
        Box::pin(self.read_known(move |db| operators::session(db, &token_sha256)))
    }

    fn session_touch(&self, token_sha256: [u8; 32], now_millis: u64) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| operators::touch(db, &token_sha256, now_millis)))
    }

    fn session_end(&self, token_sha256: [u8; 32]) -> Pending<'_, bool> {
        Box::pin(self.write(move |db| operators::end(db, &token_sha256)))
    }

    fn sessions_sweep(&self, seen_until: u64, created_until: u64) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| operators::sweep(db, seen_until, created_until)))
    }

    fn document_put(&self, name: &str, body: Vec<u8>) -> Pending<'_, ()> {
        let name = name.to_owned();
        Box::pin(self.write(move |db| {
            db.prepare_cached("INSERT OR REPLACE INTO document (name, body) VALUES (?1, ?2)")?
                .execute(params![name, body])?;
            Ok(())
        }))
    }

    fn document_put_first(&self, name: &str, body: Vec<u8>) -> Pending<'_, Vec<u8>> {
        let name = name.to_owned();
        Box::pin(self.write(move |db| {
            db.prepare_cached("INSERT INTO document (name, body) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING")?
                .execute(params![name, body])?;
            db.prepare_cached("SELECT body FROM document WHERE name = ?1")?.query_row([name], |row| row.get(0))
        }))
    }

    fn document(&self, name: &str) -> Pending<'_, Option<Vec<u8>>> {
        let name = name.to_owned();
        Box::pin(self.read(move |db| {
            db.prepare_cached("SELECT body FROM document WHERE name = ?1")?
                .query_row([name], |row| row.get(0))
                .optional()
        }))
    }

    fn document_remove(&self, name: &str) -> Pending<'_, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |db| Ok(db.execute("DELETE FROM document WHERE name = ?1", [name])? > 0)))
    }

    fn document_names(&self, prefix: &str) -> Pending<'_, Vec<String>> {
        let prefix = prefix.to_owned();
        Box::pin(self.read(move |db| {
            let select = "SELECT name FROM document WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name";
            db.prepare_cached(select)?.query_map([prefix], |row| row.get(0))?.collect()
        }))
    }

    fn puzzle_spend(&self, id: &str, until_millis: u64) -> Pending<'_, bool> {
        let id = id.to_owned();
        Box::pin(self.write(move |db| {
            let insert = "INSERT INTO puzzle (id, until_millis) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
            Ok(db.prepare_cached(insert)?.execute(params![id, until_millis])? > 0)
        }))
    }

    fn puzzles_sweep(&self, until_millis: u64) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| {
            let removed = db.execute("DELETE FROM puzzle WHERE until_millis <= ?1", [until_millis])?;
            Ok(u64::try_from(removed).unwrap_or(u64::MAX))
        }))
    }

    fn faults(&self) -> StoreFaults {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn elsewhere(&self) -> Others {
        elsewhere::listen(&self.elsewhere)
    }

    fn setbacks(&self) -> Setbacks {
        setback::listen(&self.setbacks)
    }

    fn leads(&self) -> watch::Receiver<bool> {
        self.leads.clone()
    }

    fn is_dedicated(&self) -> bool {
        self.following.is_some()
    }

    fn tell(&self, message: Vec<u8>) {
        if self.following.is_some() {
            self.messages.tell(message);
        }
    }

    fn told(&self) -> Listener {
        self.messages.listen()
    }

    fn cautions(&self) -> Vec<String> {
        self.following.as_ref().map(|following| following.upstream().cautions()).unwrap_or_default()
    }

    fn ping(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.read(|db| entities::revision(db).map(|_| ())).await?;
            // What a failed write has said of a server may have ended, and the next write may be long in coming.
            if self.following.is_some() && self.faults().writes.is_some_and(|error| Writer::proves_by_lease(&error)) {
                self.writer.prove();
            }
            Ok(())
        })
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let (writer, reader) = (Arc::clone(&self.writer), Arc::clone(&self.reader));
            let (following, folder) = (self.following.clone(), Arc::clone(&self.folder));
            let closing = tokio::task::spawn_blocking(move || {
                // The reader goes first: the last connection to close is the one that folds the log into the file.
                drop(reader.lock().unwrap_or_else(PoisonError::into_inner).take());
                writer.close();
                if let Some(following) = following {
                    following.upstream().close();
                }
                drop(folder.lock().unwrap_or_else(PoisonError::into_inner).take());
            });
            let _ = closing.await;
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
            Ok(())
        })
    }
}
