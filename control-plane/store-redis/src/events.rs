//! Events of several control planes in a stream of the server, and a copy of it in each of them, in which they search.
//!
//! An index at the server would take more memory than the events: compressed in blocks, they are a small part of it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::{FromRedisValue as _, RedisError, Value};
use store::events::{Block, EventCopy, EventLimits, EventPage, EventQuery, EventStore, EventStoreStatus, NewEvent};
use store::{Pending, StoreError};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::link::Link;
use crate::options::RedisOptions;
use crate::stream::{Entry, Stream, next_id, number};

/// The entries that are read at once.
const MOST: u64 = 32;
/// How long nothing is tried after the connection was lost.
const BACKOFF: Duration = Duration::from_millis(500);
/// How long a search waits until the copy has what the server has.
const CATCH_UP: Duration = Duration::from_secs(2);
/// Events that wait for a listener; of more, the oldest are lost.
const LISTENER_EVENTS: usize = 4096;

/// [`EventStore`] on a server.
pub struct SharedEvents {
    shared: Arc<SharedStream>,
    follower: Mutex<Option<JoinHandle<()>>>,
}

struct SharedStream {
    /// A connection of its own: no batch of events makes a ban wait.
    link: Link,
    timeout: Duration,
    key: String,
    /// The name of this control plane in its entries.
    name: String,
    copy: EventCopy,
    limits: EventLimits,
    /// The last entry that the copy has.
    position: watch::Sender<String>,
    others: broadcast::Sender<Arc<[u8]>>,
}

// === impl SharedEvents ===

impl SharedEvents {
    /// The events at a server, with a copy in a folder of its own within `directory`, which is read in the background. Must be called
    /// within a tokio runtime. The server need not answer.
    ///
    /// # Errors
    /// [`StoreError::Failed`] about the copy.
    pub async fn open(
        options: RedisOptions,
        directory: &Path,
        limits: EventLimits,
    ) -> Result<SharedEvents, StoreError> {
        let directory = directory.to_owned();
        let creating = tokio::task::spawn_blocking(move || EventCopy::create(&directory));
        let copy = creating.await.unwrap_or(Err(StoreError::Closed))?;
        let key = format!("{{{}}}:events", options.prefix);
        let mut random = [0; 12];
        getrandom::fill(&mut random)
            .map_err(|error| StoreError::Server { server: options.to_string(), detail: error.to_string() })?;
        let shared = Arc::new(SharedStream {
            timeout: options.timeout,
            link: Link::new(options, key.clone()),
            key,
            name: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            copy,
            limits,
            position: watch::channel("0-0".to_owned()).0,
            others: broadcast::channel(LISTENER_EVENTS).0,
        });
        let follower = tokio::spawn(follow_always(Arc::downgrade(&shared)));
        Ok(SharedEvents { shared, follower: Mutex::new(Some(follower)) })
    }
}

impl Drop for SharedEvents {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.lock().unwrap_or_else(PoisonError::into_inner).take() {
            follower.abort();
        }
    }
}

impl EventStore for SharedEvents {
    fn append(&self, events: Vec<NewEvent>) -> Pending<'_, ()> {
        Box::pin(async move {
            let shared = &self.shared;
            let failed = |detail: String| StoreError::Server { server: shared.link.server.to_string(), detail };
            let packing = tokio::task::spawn_blocking(move || Block::pack(events));
            let blocks = packing.await.map_err(|_| StoreError::Closed)?.map_err(|error| failed(error.to_string()))?;
            let bytes = blocks.iter().map(|block| block.body().len()).sum();
            let mut adding = redis::pipe();
            for block in &blocks {
                adding.cmd("XADD").arg(&shared.key).arg("*").arg("by").arg(&shared.name).arg("block").arg(block.body());
            }
            let added = shared
                .link
                .call(Some(bytes), async |mut connection| adding.query_async::<Value>(&mut connection).await)
                .await;
            if matches!(added, Err(StoreError::ServerFull { .. })) {
                self.give_way().await?;
            }
            added.map(|_| ())
        })
    }

    fn search(&self, query: EventQuery) -> Pending<'_, EventPage> {
        Box::pin(async move {
            self.shared.catch_up().await;
            self.shared.copy.search(query).await
        })
    }

    fn status(&self) -> Pending<'_, EventStoreStatus> {
        Box::pin(self.shared.copy.status())
    }

    fn sweep(&self, now_millis: u64) -> Pending<'_, ()> {
        Box::pin(async move { self.shared.fit(now_millis, false).await.map(|_| ()) })
    }

    fn give_way(&self) -> Pending<'_, bool> {
        Box::pin(self.shared.fit(base::clock::now_millis(), true))
    }

    fn others(&self) -> broadcast::Receiver<Arc<[u8]>> {
        self.shared.others.subscribe()
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(follower) = follower {
                follower.abort();
                let _aborted = follower.await;
            }
            self.shared.link.close().await;
            let shared = Arc::clone(&self.shared);
            let _ended = tokio::task::spawn_blocking(move || shared.copy.close()).await;
            Ok(())
        })
    }
}

// === impl SharedStream ===

impl SharedStream {
    /// Waits for a moment until the copy has what the server has now. What a server that does not answer has is not waited for.
    async fn catch_up(&self) {
        let mut ask = redis::cmd("XREVRANGE");
        ask.arg(&self.key).arg("+").arg("-").arg("COUNT").arg(1);
        let newest = self.link.call(None, async |mut connection| ask.query_async::<Value>(&mut connection).await).await;
        let Ok(Value::Array(entries)) = newest else { return };
        let Some(Value::Array(parts)) = entries.into_iter().next() else { return };
        let Some(id) = parts.into_iter().next().and_then(|id| String::from_redis_value(id).ok()) else { return };
        let mut position = self.position.subscribe();
        let reached = position.wait_for(|position| number(position) >= number(&id));
        let _late_or_there = tokio::time::timeout(CATCH_UP, reached).await;
    }

    /// Removes what is beyond the limits from the copy and from the server, half of all with `half`, and answers whether it has.
    async fn fit(self: &Arc<Self>, now_millis: u64, half: bool) -> Result<bool, StoreError> {
        let shared = Arc::clone(self);
        let fitting = tokio::task::spawn_blocking(move || shared.copy.fit(&shared.limits, now_millis, half));
        let Some(removed) = fitting.await.unwrap_or(Err(StoreError::Closed))? else { return Ok(false) };
        let mut trim = redis::cmd("XTRIM");
        trim.arg(&self.key).arg("MINID").arg("=").arg(next_id(&removed));
        self.link
            .call(None, async |mut connection| trim.query_async::<Value>(&mut connection).await)
            .await
            .map(|_| true)
    }

    /// Adds entries to the copy, and tells listeners of those that come after `told_after` from others.
    async fn take(self: &Arc<Self>, entries: Vec<Entry>, told_after: (u64, u64)) -> Result<(), StoreError> {
        let Some(last) = entries.last().map(|entry| entry.id.clone()) else { return Ok(()) };
        let shared = Arc::clone(self);
        let adding = tokio::task::spawn_blocking(move || {
            let mut blocks = Vec::new();
            for Entry { id, values } in entries {
                let [by, block] = values.as_slice() else { continue };
                let block = Block::unpack(block.clone());
                if by != shared.name.as_bytes() && number(&id) > told_after {
                    for line in block.lines() {
                        let _no_listener = shared.others.send(Arc::clone(line));
                    }
                }
                blocks.push((number(&id).0, id, block));
            }
            shared.copy.add(&blocks)
        });
        adding.await.unwrap_or(Err(StoreError::Closed))?;
        self.position.send_replace(last);
        Ok(())
    }
}

/// Follows the stream as long as the store is open.
async fn follow_always(shared: Weak<SharedStream>) {
    loop {
        let Some(now) = shared.upgrade() else { return };
        let opened = Stream::connect(&now.link, now.key.clone(), now.timeout).await;
        drop(now);
        if let Ok(stream) = opened {
            let ended = follow(&shared, stream).await;
            tracing::debug!(?ended, "the connection for events of other control planes ended");
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

async fn follow(shared: &Weak<SharedStream>, mut stream: Stream) -> Result<(), RedisError> {
    let Some(now) = shared.upgrade() else { return Ok(()) };
    let newest = stream.newest().await?;
    // A server that was emptied, or that has an older state again, lacks what the copy read last: the copy begins anew, so that it has
    // no event that the server lacks. The newest entry does not tell: ids are times, so what came since is beyond it.
    let read_last = now.position.borrow().clone();
    if number(&read_last) > (0, 0) && !stream.has(&read_last).await? {
        let clearing = Arc::clone(&now);
        let cleared = tokio::task::spawn_blocking(move || clearing.copy.clear()).await;
        if matches!(cleared, Ok(Ok(()))) {
            now.position.send_replace("0-0".to_owned());
        }
    }
    drop(now);
    let told_after = number(&newest);
    loop {
        let Some(now) = shared.upgrade() else { return Ok(()) };
        let from = now.position.borrow().clone();
        drop(now);
        let entries = stream.after(&from, MOST).await?;
        let Some(now) = shared.upgrade() else { return Ok(()) };
        let came = !entries.is_empty();
        let taken = match now.take(entries, told_after).await {
            Ok(()) if came => now.fit(base::clock::now_millis(), false).await.map(|_| ()),
            other => other,
        };
        if let Err(error) = taken {
            tracing::warn!(%error, "the copy of the stored events cannot be brought up to date; trying again");
            tokio::time::sleep(BACKOFF).await;
        }
    }
}

impl std::fmt::Debug for SharedEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedEvents").field("key", &self.shared.key).finish_non_exhaustive()
    }
}
