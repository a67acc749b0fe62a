//! [`Upstream`] on Redis: one hash for each table, a hash with the version, and a stream that says which rows each change had.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::Stopwatch;
use redis::{Script, Value};
use store::messages::Exchange;
use store::replica::{Behind, Position, RowChange, TakeRows, Upstream};
use store::{Contents, Pending, StoreError};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answers::{self, Begun, Published};
use crate::contents::RedisContents;
use crate::explain::emptied;
use crate::link::Link;
use crate::options::RedisOptions;
use crate::{bus, lead, notices, pack};

/// How long a lease lasts when it is taken, in milliseconds: longer than any change takes.
const LEASE_MILLIS: u64 = 2000;
/// How long it goes on after a change, in milliseconds, for the next one.
const KEEP_MILLIS: u64 = 100;
/// How long after a change the next one counts on it, in seconds: what remains is for making that change.
const TRUST_SECONDS: f64 = 0.04;
/// When a change that counts on the lease of the one before asks for a longer one, in milliseconds: few changes take that long.
const EXTEND_MILLIS: u64 = 20;
/// How long a change waits while other control planes have the lease.
const WAIT: Duration = Duration::from_secs(4);
/// The most rows that are answered to a replica that is behind; with more, it reads everything anew, in parts.
const MAX_BEHIND: u64 = 20_000;
/// The entries that the log keeps.
const LOG_ENTRIES: u64 = 2000;
/// The most keys of one entry of the log.
const LOG_KEYS: u64 = 20_000;
/// The rows of a part when a table is read, and the bytes that a part should have at most.
const PART: (u64, u64, usize) = (10, 1000, 1 << 20);

/// A server, or several of which one is in charge.
pub(crate) struct RedisUpstream {
    shared: Arc<Shared>,
    /// Drives the connections: callers may have a runtime of another kind, or none.
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    scripts: Scripts,
    contents: RedisContents,
    held: Mutex<Option<(Stopwatch, Position)>>,
    /// The task that makes the lease last for a change that takes long.
    extension: Mutex<Option<JoinHandle<()>>>,
    /// What the settings of the server make less durable than it should be.
    cautions: Vec<String>,
    /// The task that asks to lead, and what it says.
    leading: Mutex<Option<(JoinHandle<()>, watch::Receiver<bool>)>>,
    /// The names of this control plane's changes: a random number, and one that grows.
    name: String,
    number: AtomicU64,
}

/// What the background task needs as well.
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
    pub(crate) timeout: Duration,
    /// The last change of this control plane: its own notice is no news.
    pub(crate) published: AtomicU64,
}

/// The names of the keys.
pub(crate) struct Keys {
    pub(crate) head: String,
    pub(crate) log: String,
    pub(crate) leader: String,
    pub(crate) bus: String,
    lease: String,
    turn: String,
    tables: Vec<String>,
}

struct Scripts {
    begin: Script,
    publish: Script,
    release: Script,
    extend: Script,
}

impl RedisUpstream {
    /// Makes the first connection. Blocks.
    pub(crate) fn connect(options: &RedisOptions) -> Result<RedisUpstream, StoreError> {
        let server = options.to_string();
        let failed = |detail: String| StoreError::Server { server: server.clone(), detail };
        let tables = store::replica::tables()?;
        let prefix = &options.prefix;
        let key = |name: &str| format!("{{{prefix}}}:{name}");
        let keys = Keys {
            head: key("head"),
            log: key("log"),
            leader: key("leader"),
            bus: key("bus"),
            lease: key("lease"),
            turn: key("turn"),
            tables: tables.iter().map(|table| key(&format!("rows:{table}"))).collect(),
        };
        if options.tls {
            // The client takes the process's provider; one that was chosen before stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let mut random = [0; 12];
        getrandom::fill(&mut random).map_err(|error| failed(format!("no random numbers: {error}")))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-redis")
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let shared = Shared {
            link: Link::new(options.clone(), keys.head.clone()),
            keys,
            timeout: options.timeout,
            published: AtomicU64::new(0),
        };
        let contents = RedisContents::new(options, shared.keys.head.clone(), runtime.handle().clone());
        let mut upstream = RedisUpstream {
            shared: Arc::new(shared),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            scripts: Scripts {
                begin: Script::new(include_str!("scripts/begin.lua")),
                publish: Script::new(include_str!("scripts/publish.lua")),
                release: Script::new(include_str!("scripts/release.lua")),
                extend: Script::new(include_str!("scripts/extend.lua")),
            },
            contents,
            held: Mutex::default(),
            extension: Mutex::default(),
            cautions: Vec::new(),
            leading: Mutex::default(),
            name: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            number: AtomicU64::new(0),
        };
        upstream.cautions = upstream.handle.block_on(crate::settings::look(&upstream.shared.link));
        upstream.handle.block_on(position(&upstream.shared))?;
        Ok(upstream)
    }

    fn ask(&self, at: &Position, lease: u64) -> Result<Begun, StoreError> {
        let keys = &self.shared.keys;
        let mut call = self.scripts.begin.prepare_invoke();
        call.key(&keys.head).key(&keys.lease).key(&keys.turn).key(&keys.log).key(&keys.tables);
        call.arg(&self.name).arg(lease).arg(at.version).arg(&at.token).arg(MAX_BEHIND);
        call.arg(store::replica::schema_version());
        let link = &self.shared.link;
        let answer = link.call(None, async |mut connection| call.invoke_async::<Value>(&mut connection).await);
        answers::begun(&link.server, self.handle.block_on(answer)?)
    }

    fn scan(&self, table: &str, cursor: &[u8], count: u64) -> Result<(Vec<u8>, Vec<Vec<u8>>), StoreError> {
        let mut command = redis::cmd("HSCAN");
        command.arg(table).arg(cursor).arg("COUNT").arg(count);
        let link = &self.shared.link;
        let answer = link.call(None, async |mut connection| command.query_async::<Value>(&mut connection).await);
        answers::scanned(&link.server, self.handle.block_on(answer)?)
    }

    fn give_back(&self) -> impl Future<Output = ()> + Send + 'static {
        self.give_up(self.shared.keys.lease.clone())
    }

    /// Removes a key that has this control plane's name.
    fn give_up(&self, key: String) -> impl Future<Output = ()> + Send + 'static {
        let (shared, script, name) = (Arc::clone(&self.shared), self.scripts.release.clone(), self.name.clone());
        async move {
            let mut call = script.key(key);
            call.arg(name);
            // It ends by itself as well.
            let _ =
                shared.link.call(None, async |mut connection| call.invoke_async::<Value>(&mut connection).await).await;
        }
    }

    /// Has the lease last for a change that may take longer than what is left of it: otherwise another control plane could take it, and the
    /// server would refuse the change.
    fn extend_soon(&self) {
        let (shared, script, name) = (Arc::clone(&self.shared), self.scripts.extend.clone(), self.name.clone());
        let task = self.handle.spawn(async move {
            tokio::time::sleep(Duration::from_millis(EXTEND_MILLIS)).await;
            let mut call = script.key(&shared.keys.lease);
            call.arg(name).arg(LEASE_MILLIS);
            // Without it the server may refuse the change, as without a lease.
            let _ =
                shared.link.call(None, async |mut connection| call.invoke_async::<Value>(&mut connection).await).await;
        });
        self.replace_extension(Some(task));
    }

    /// Ends a task that extends the lease: what it has sent is carried out before what follows, and it sends nothing more.
    fn replace_extension(&self, task: Option<JoinHandle<()>>) {
        let before = std::mem::replace(&mut *self.extension.lock().unwrap_or_else(PoisonError::into_inner), task);
        if let Some(task) = before {
            task.abort();
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<(Stopwatch, Position)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the server is; an error where another release has written to it.
async fn position(shared: &Shared) -> Result<Position, StoreError> {
    let mut command = redis::cmd("HMGET");
    command.arg(&shared.keys.head).arg("version").arg("token").arg("schema");
    let link = &shared.link;
    let answer = link.call(None, async |mut connection| command.query_async::<Value>(&mut connection).await).await?;
    answers::position(&link.server, answer)
}

impl Upstream for RedisUpstream {
    fn position(&self) -> Pending<'_, Position> {
        Box::pin(async {
            let shared = Arc::clone(&self.shared);
            let asked = self.handle.spawn(async move { position(&shared).await });
            asked.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    fn follow(&self, at: &Position) -> Result<Behind, StoreError> {
        match self.ask(at, 0)? {
            Begun::Behind(behind) => Ok(behind),
            Begun::Busy => Err(StoreError::ServerBusy { server: self.shared.link.server.to_string() }),
            Begun::Emptied => Err(emptied(&self.shared.link.server)),
        }
    }

    fn begin(&self, at: &Position) -> Result<Behind, StoreError> {
        if self.held().as_ref().is_some_and(|(since, held)| held == at && since.seconds() < TRUST_SECONDS) {
            self.extend_soon();
            return Ok(Behind::Current);
        }
        *self.held() = None;
        let waited = Stopwatch::start();
        loop {
            match self.ask(at, LEASE_MILLIS)? {
                Begun::Behind(behind) => return Ok(behind),
                Begun::Emptied => return Err(emptied(&self.shared.link.server)),
                Begun::Busy if waited.seconds() > WAIT.as_secs_f64() => {
                    return Err(StoreError::ServerBusy { server: self.shared.link.server.to_string() });
                }
                Begun::Busy => self.handle.block_on(async { tokio::time::sleep(Duration::from_millis(3)).await }),
            }
        }
    }

    fn publish(&self, at: &Position, changes: &[RowChange]) -> Result<Position, StoreError> {
        let keys = &self.shared.keys;
        let token = format!("{}-{}", self.name, self.number.fetch_add(1, Ordering::Relaxed));
        let mut call = self.scripts.publish.prepare_invoke();
        call.key(&keys.head).key(&keys.lease).key(&keys.turn).key(&keys.log).key(&keys.tables);
        call.arg(&self.name).arg(at.version).arg(&at.token).arg(&token).arg(KEEP_MILLIS);
        call.arg(store::replica::schema_version()).arg(LOG_ENTRIES).arg(LOG_KEYS);
        let rows = pack::changes(keys.tables.len(), changes);
        let bytes = rows.len();
        call.arg(rows);
        let link = &self.shared.link;
        *self.held() = None;
        self.replace_extension(None);
        let attempt = || {
            let since = Stopwatch::start();
            // Its notice may come before its answer does.
            let before = self.shared.published.swap(at.version + 1, Ordering::SeqCst);
            let answer =
                link.call(Some(bytes), async |mut connection| call.invoke_async::<Value>(&mut connection).await);
            let answer = self.handle.block_on(answer).and_then(|answer| answers::published(&link.server, answer));
            if !matches!(answer, Ok(Published::Taken { .. })) {
                self.shared.published.store(before, Ordering::SeqCst);
            }
            answer.map(|answer| (answer, since))
        };
        let asked = Stopwatch::start();
        let answer = match attempt() {
            // The server knows a change that it has made by its token, so that this never makes it twice. One that hangs is not
            // waited for again.
            Err(unanswered @ StoreError::Unanswered { .. })
                if asked.seconds() < self.shared.timeout.as_secs_f64() / 2.0 =>
            {
                match attempt() {
                    Ok((taken @ Published::Taken { .. }, since)) => Ok((taken, since)),
                    // Another control plane may have made the next change since.
                    _ => Err(unanswered),
                }
            }
            other => other,
        };
        match answer? {
            (Published::Taken { version, awaited }, since) => {
                let position = Position { version, token };
                if !awaited {
                    *self.held() = Some((since, position.clone()));
                }
                Ok(position)
            }
            (Published::Refused, _) => Err(StoreError::ServerBusy { server: link.server.to_string() }),
        }
    }

    fn release(&self) {
        *self.held() = None;
        self.replace_extension(None);
        let runs = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if runs {
            self.handle.spawn(self.give_back());
        }
    }

    fn load(&self, take: TakeRows<'_>) -> Result<Option<Position>, StoreError> {
        let before = self.handle.block_on(position(&self.shared))?;
        if before.version == 0 {
            return Ok(Some(before));
        }
        let (fewest, most, bytes) = PART;
        for (number, table) in self.shared.keys.tables.iter().enumerate() {
            let (mut cursor, mut count) = (b"0".to_vec(), fewest);
            loop {
                let (next, found) = self.scan(table, &cursor, count)?;
                let size: usize = found.iter().map(Vec::len).sum();
                count = if size < bytes / 2 { (count * 2).min(most) } else { (count / 2).max(1) };
                let mut found = found.into_iter();
                let mut rows = Vec::new();
                while let (Some(key), Some(row)) = (found.next(), found.next()) {
                    rows.push(RowChange { table: number, key, row: Some(row) });
                }
                take(rows)?;
                if next == b"0" {
                    break;
                }
                cursor = next;
            }
        }
        // A part may be older than another one: what was changed since the first is read once more, as one view.
        match self.follow(&before)? {
            Behind::Current => Ok(Some(before)),
            Behind::Changes(position, changes) => take(changes).map(|()| Some(position)),
            Behind::Reload | Behind::Diverged => Ok(None),
        }
    }

    fn watch(&self, moved: Box<dyn Fn() + Send + Sync>) {
        self.handle.spawn(notices::run(Arc::downgrade(&self.shared), moved));
    }

    fn exchange(&self, exchange: Exchange) {
        let Exchange { outgoing, incoming } = exchange;
        self.handle.spawn(bus::send(Arc::downgrade(&self.shared), self.name.clone(), outgoing));
        self.handle.spawn(bus::receive(Arc::downgrade(&self.shared), self.name.clone(), incoming));
    }

    fn contents(&self) -> Arc<dyn Contents> {
        Arc::new(self.contents.clone())
    }

    fn cautions(&self) -> Vec<String> {
        self.cautions.clone()
    }

    fn lead(&self, leads: watch::Sender<bool>) {
        let leads_now = leads.subscribe();
        let asking = self.handle.spawn(lead::run(Arc::downgrade(&self.shared), self.name.clone(), leads));
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = Some((asking, leads_now));
    }

    fn close(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            if self.held().take().is_some() {
                runtime.block_on(self.give_back());
            }
            if let Some((asking, leads)) = self.leading.lock().unwrap_or_else(PoisonError::into_inner).take() {
                asking.abort();
                // Waits for its end: a key that it renews after it was given up would last.
                let _ended = runtime.block_on(asking);
                if *leads.borrow() {
                    runtime.block_on(self.give_up(self.shared.keys.leader.clone()));
                }
            }
            runtime.block_on(self.shared.link.close());
            runtime.block_on(self.contents.close());
            runtime.shutdown_background();
        }
    }
}

impl Drop for RedisUpstream {
    fn drop(&mut self) {
        // A runtime must not be waited for on a thread that drives tasks.
        if let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }
}
