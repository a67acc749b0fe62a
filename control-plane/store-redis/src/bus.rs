//! Messages between control planes, in a stream of the server: several in one entry, and a bounded number of entries.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{RedisError, Value};
use store::messages::lost;
use tokio::sync::{broadcast, mpsc};

use crate::stream::{Entry, Stream, number};
use crate::upstream::Shared;

/// The entries that the stream keeps, about: a control plane that was away for longer has missed what came before.
const ENTRIES: u64 = 512;
/// The entries that are read at once.
const MOST: u64 = 100;
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
    while let Some(opened) = Stream::open(&shared, |keys| &keys.bus).await {
        if let Ok(stream) = opened {
            let ended = follow(&shared, stream, &name, &incoming, &mut last).await;
            tracing::debug!(?ended, "the connection for messages of other control planes ended");
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

async fn follow(
    shared: &Weak<Shared>,
    mut stream: Stream,
    name: &str,
    incoming: &broadcast::Sender<Arc<[u8]>>,
    last: &mut Option<String>,
) -> Result<(), RedisError> {
    let newest = stream.newest().await?;
    let from = last.get_or_insert_with(|| newest.clone());
    // A server that was emptied, or whose clock is behind: entries after the last one would not be seen.
    if number(from) > number(&newest) {
        from.clone_from(&newest);
    }
    loop {
        let entries = stream.after(from, MOST).await?;
        if shared.strong_count() == 0 {
            return Ok(());
        }
        for Entry { id, values } in entries {
            if let [by, messages] = values.as_slice()
                && by != name.as_bytes()
            {
                for message in unpack(messages) {
                    let _no_listener = incoming.send(message.into());
                }
            }
            *from = id;
        }
    }
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
