//! A stream of the server, read over a connection that waits there.

use std::sync::Weak;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue as _, RedisError, Value};
use store::StoreError;

use crate::link::Link;
use crate::upstream::{Keys, Shared};

/// How long one command waits at the server, in milliseconds.
const BLOCK_MILLIS: u64 = 1000;

/// A stream, and a connection for it alone.
pub(crate) struct Stream {
    connection: MultiplexedConnection,
    key: String,
    /// How long an answer may take, the wait at the server included.
    timeout: Duration,
}

/// An entry of a stream.
pub(crate) struct Entry {
    /// `milliseconds-number`, or what was given in their place.
    pub(crate) id: String,
    /// The values of its fields, in their order.
    pub(crate) values: Vec<Vec<u8>>,
}

impl Stream {
    /// Opens a connection for the stream at a key; `None` where the store is gone.
    pub(crate) async fn open(shared: &Weak<Shared>, key: impl FnOnce(&Keys) -> &String) -> Option<Result<Stream, ()>> {
        let shared = shared.upgrade()?;
        let stream = Stream::connect(&shared.link, key(&shared.keys).clone(), shared.timeout).await;
        Some(stream.map_err(|_explained_by_other_calls| ()))
    }

    /// Opens a connection for the stream at a key of a server whose answers may take as long as `timeout`.
    pub(crate) async fn connect(link: &Link, key: String, timeout: Duration) -> Result<Stream, StoreError> {
        let timeout = timeout + Duration::from_millis(BLOCK_MILLIS);
        Ok(Stream { connection: link.connect().await?, key, timeout })
    }

    /// The id of the newest entry; that before all others where there is none.
    pub(crate) async fn newest(&mut self) -> Result<String, RedisError> {
        let mut newest = redis::cmd("XREVRANGE");
        newest.arg(&self.key).arg("+").arg("-").arg("COUNT").arg(1);
        let newest = entries(self.ask(&newest).await?).pop();
        Ok(newest.map_or_else(|| "0-0".to_owned(), |entry| entry.id))
    }

    /// Whether the server has the entry of this id.
    pub(crate) async fn has(&mut self, id: &str) -> Result<bool, RedisError> {
        let mut range = redis::cmd("XRANGE");
        range.arg(&self.key).arg(id).arg(id).arg("COUNT").arg(1);
        Ok(!entries(self.ask(&range).await?).is_empty())
    }

    /// The entries after `last`, oldest first, at most `most`. Waits a while for the first one; none may come.
    pub(crate) async fn after(&mut self, last: &str, most: u64) -> Result<Vec<Entry>, RedisError> {
        let mut wait = redis::cmd("XREAD");
        wait.arg("COUNT").arg(most).arg("BLOCK").arg(BLOCK_MILLIS).arg("STREAMS").arg(&self.key).arg(last);
        let Value::Array(streams) = self.ask(&wait).await? else { return Ok(Vec::new()) };
        Ok(match streams.into_iter().next() {
            Some(Value::Array(parts)) => parts.into_iter().nth(1).map(entries).unwrap_or_default(),
            _ => Vec::new(),
        })
    }

    async fn ask(&mut self, command: &redis::Cmd) -> Result<Value, RedisError> {
        let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        tokio::time::timeout(self.timeout, command.query_async(&mut self.connection)).await.map_err(late)?
    }
}

/// The id of an entry as a number; ids are `milliseconds-number`.
pub(crate) fn number(id: &str) -> (u64, u64) {
    let (millis, number) = id.split_once('-').unwrap_or((id, "0"));
    (millis.parse().unwrap_or(0), number.parse().unwrap_or(0))
}

/// The lowest id that is behind one.
pub(crate) fn next_id(id: &str) -> String {
    let (millis, number) = number(id);
    match number.checked_add(1) {
        Some(next) => format!("{millis}-{next}"),
        None => format!("{}-0", millis.saturating_add(1)),
    }
}

fn entries(answer: Value) -> Vec<Entry> {
    let Value::Array(entries) = answer else { return Vec::new() };
    let entry = |entry| {
        let Value::Array(parts) = entry else { return None };
        let mut parts = parts.into_iter();
        let id = String::from_redis_value(parts.next()?).ok()?;
        // An entry that is none of ours still has an id, behind which the next ones are.
        let fields = Vec::<Vec<u8>>::from_redis_value(parts.next()?).unwrap_or_default();
        Some(Entry { id, values: fields.into_iter().skip(1).step_by(2).collect() })
    };
    entries.into_iter().filter_map(entry).collect()
}
