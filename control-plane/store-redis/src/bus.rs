//! Messages between control planes, in a stream of the server: several in one entry, and a bounded number of entries.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue as _, RedisError, Value};
use store::messages::lost;
use tokio::sync::{broadcast, mpsc};

use crate::notices::BLOCK_MILLIS;
use crate::upstream::Shared;

/// The entries that the stream keeps, about: a control plane that was away for longer has missed what came before.
const ENTRIES: u64 = 512;
/// The messages of an entry, at most, and the bytes after which it takes no more.
const ENTRY: (usize, usize) = (256, 256 << 10);
/// Between two entries: what comes meanwhile goes in one.
const PACE: Duration = Duration::from_millis(20);
/// How long nothing is tried after the connection was lost.
const BACKOFF: Duration = Duration::from_millis(500);

/// Sends what comes. What the server does not take within its time is lost.
pub(crate) async fn send(shared: Weak<Shared>, name: String, mut outgoing: mpsc::Receiver<Vec<u8>>) {
    let mut next = None;
    loop {
        let Some(first) = (match next.take() {
            Some(message) => Some(message),
            None => outgoing.recv().await,
        }) else {
            return;
        };
        let mut bytes = Vec::new();
        let mut count = 0;
        let mut taken = Some(first);
        while let Some(message) = taken.take() {
            if count > 0 && (count >= ENTRY.0 || bytes.len() + message.len() > ENTRY.1) {
                next = Some(message);
                break;
            }
            pack(&mut bytes, &message);
            count += 1;
            taken = outgoing.try_recv().ok();
        }
        let Some(now) = shared.upgrade() else { return };
        let mut add = redis::cmd("XADD");
        add.arg(&now.keys.bus).arg("MAXLEN").arg("~").arg(ENTRIES).arg("*");
        add.arg("by").arg(&name).arg("messages").arg(bytes);
        let sent = now.link.call(None, async |mut connection| add.query_async::<Value>(&mut connection).await).await;
        if let Err(error) = sent {
            tracing::debug!(%error, count, "messages to other control planes are lost");
            lost(count as u64);
        }
        drop(now);
        tokio::time::sleep(PACE).await;
    }
}

/// Receives what others send, also what came while the connection was lost.
pub(crate) async fn receive(shared: Weak<Shared>, name: String, incoming: broadcast::Sender<Arc<[u8]>>) {
    let mut last = None;
    while let Some(now) = shared.upgrade() {
        let connection = now.link.connect().await;
        drop(now);
        if let Ok(connection) = connection {
            let ended = follow(&shared, connection, &name, &incoming, &mut last).await;
            tracing::debug!(?ended, "the connection for messages of other control planes ended");
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

async fn follow(
    shared: &Weak<Shared>,
    mut connection: MultiplexedConnection,
    name: &str,
    incoming: &broadcast::Sender<Arc<[u8]>>,
    last: &mut Option<String>,
) -> Result<(), RedisError> {
    let Some(now) = shared.upgrade() else { return Ok(()) };
    let (bus, timeout) = (now.keys.bus.clone(), now.timeout + Duration::from_millis(BLOCK_MILLIS));
    drop(now);
    let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    let mut newest = redis::cmd("XREVRANGE");
    newest.arg(&bus).arg("+").arg("-").arg("COUNT").arg(1);
    let newest = tokio::time::timeout(timeout, newest.query_async::<Value>(&mut connection)).await.map_err(late)??;
    let newest = entries(newest).pop().map_or_else(|| "0-0".to_owned(), |entry| entry.id);
    // A server that was emptied, or whose clock is behind: entries after the last one would not be seen.
    let from = last.get_or_insert_with(|| newest.clone());
    if number(from) > number(&newest) {
        from.clone_from(&newest);
    }
    loop {
        let mut wait = redis::cmd("XREAD");
        wait.arg("COUNT").arg(100).arg("BLOCK").arg(BLOCK_MILLIS).arg("STREAMS").arg(&bus).arg(&*from);
        let answer =
            tokio::time::timeout(timeout, wait.query_async::<Value>(&mut connection)).await.map_err(late)??;
        if shared.strong_count() == 0 {
            return Ok(());
        }
        for Entry { id, by, messages } in entries_of_stream(answer) {
            if by != name {
                for message in unpack(&messages) {
                    let _no_listener = incoming.send(message.into());
                }
            }
            *from = id;
        }
    }
}

/// An entry of the stream.
#[derive(Debug)]
struct Entry {
    id: String,
    by: String,
    messages: Vec<u8>,
}

fn entries(answer: Value) -> Vec<Entry> {
    let Value::Array(entries) = answer else { return Vec::new() };
    let entry = |entry| {
        let Value::Array(parts) = entry else { return None };
        let mut parts = parts.into_iter();
        let id = String::from_redis_value(parts.next()?).ok()?;
        // An entry that is none of ours still has an id, behind which the next ones are.
        let mut fields = Vec::<Vec<u8>>::from_redis_value(parts.next()?).unwrap_or_default().into_iter();
        let (_, by, _, messages) = (fields.next(), fields.next(), fields.next(), fields.next());
        let by = String::from_utf8(by.unwrap_or_default()).unwrap_or_default();
        Some(Entry { id, by, messages: messages.unwrap_or_default() })
    };
    entries.into_iter().filter_map(entry).collect()
}

fn entries_of_stream(answer: Value) -> Vec<Entry> {
    let Value::Array(streams) = answer else { return Vec::new() };
    match streams.into_iter().next() {
        Some(Value::Array(parts)) => parts.into_iter().nth(1).map(entries).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The id of an entry as a number; ids are `milliseconds-number`.
fn number(id: &str) -> (u64, u64) {
    let (millis, number) = id.split_once('-').unwrap_or((id, "0"));
    (millis.parse().unwrap_or(0), number.parse().unwrap_or(0))
}

/// A message with its length before it.
fn pack(bytes: &mut Vec<u8>, message: &[u8]) {
    bytes.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(message);
}

/// The messages of [`pack`]; of what is none, what can be read.
fn unpack(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((message, rest)) = rest.split_at_checked(length) else { break };
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_unpacked_as_they_were_packed() {
        let mut bytes = Vec::new();
        for message in [&b"one"[..], b"", b"three"] {
            pack(&mut bytes, message);
        }
        assert_eq!(unpack(&bytes), [&b"one"[..], b"", b"three"]);
        assert_eq!(unpack(&bytes[..bytes.len() - 1]), [&b"one"[..], b""], "what is cut off is left out");
        assert_eq!(unpack(&[0xff; 7]), Vec::<Vec<u8>>::new());
        assert!(number("1-2") > number("1-1") && number("10-0") > number("9-9") && number("x") == (0, 0));
    }
}
