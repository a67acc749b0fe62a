//! Notices of other control planes' changes, over a connection that waits at the server.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue as _, RedisError, Value};

use crate::upstream::Shared;

/// How long one command waits at the server, in milliseconds.
pub(crate) const BLOCK_MILLIS: u64 = 1000;
/// How long nothing is tried after a connection was lost: the first time, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Calls `moved` after each change of another control plane and after each reconnect, until the store is gone.
pub(crate) async fn run(shared: Weak<Shared>, moved: Box<dyn Fn() + Send + Sync>) {
    let mut backoff = BACKOFF.0;
    while let Some(now) = shared.upgrade() {
        let connection = now.link.connect().await;
        drop(now);
        if let Ok(connection) = connection {
            backoff = BACKOFF.0;
            let ended = follow(&shared, connection, &*moved).await;
            tracing::debug!(?ended, "the connection for change notices ended");
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF.1);
    }
}

async fn follow(
    shared: &Weak<Shared>,
    mut connection: MultiplexedConnection,
    moved: &(dyn Fn() + Send + Sync),
) -> Result<(), RedisError> {
    let Some(now) = shared.upgrade() else { return Ok(()) };
    let (log, timeout) = (now.keys.log.clone(), now.timeout + Duration::from_millis(BLOCK_MILLIS));
    drop(now);
    let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    let mut newest = redis::cmd("XREVRANGE");
    newest.arg(&log).arg("+").arg("-").arg("COUNT").arg(1);
    let newest = tokio::time::timeout(timeout, newest.query_async::<Value>(&mut connection)).await.map_err(late)??;
    let mut last = entries(newest).pop().unwrap_or_else(|| "0-0".to_owned());
    // What was missed while there was no connection.
    moved();
    loop {
        let mut wait = redis::cmd("XREAD");
        wait.arg("COUNT").arg(1000).arg("BLOCK").arg(BLOCK_MILLIS).arg("STREAMS").arg(&log).arg(&last);
        let answer =
            tokio::time::timeout(timeout, wait.query_async::<Value>(&mut connection)).await.map_err(late)??;
        let Some(now) = shared.upgrade() else { return Ok(()) };
        match entries_of_stream(answer).pop() {
            // Numbers of a server that was emptied or failed over may be below the last one: no entry would be seen again.
            None => moved(),
            Some(id) => {
                let version = id.split('-').next().and_then(|version| version.parse::<u64>().ok());
                if version.is_none_or(|version| version > now.published.load(Ordering::SeqCst)) {
                    moved();
                }
                last = id;
            }
        }
    }
}

/// The ids of entries, oldest first but for one that was asked for alone.
fn entries(answer: Value) -> Vec<String> {
    let Value::Array(entries) = answer else { return Vec::new() };
    let id = |entry| match entry {
        Value::Array(parts) => parts.into_iter().next().and_then(|id| String::from_redis_value(id).ok()),
        _ => None,
    };
    entries.into_iter().filter_map(id).collect()
}

/// The ids of the entries of the one stream that was read.
fn entries_of_stream(answer: Value) -> Vec<String> {
    let Value::Array(streams) = answer else { return Vec::new() };
    match streams.into_iter().next() {
        Some(Value::Array(parts)) => parts.into_iter().nth(1).map(entries).unwrap_or_default(),
        _ => Vec::new(),
    }
}
