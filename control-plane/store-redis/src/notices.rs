//! Notices of other control planes' changes.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::RedisError;

use crate::stream::Stream;
use crate::upstream::Shared;

/// How long nothing is tried after a connection was lost: the first time, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The entries that are read at once.
const MOST: u64 = 1000;

/// Calls `moved` after each change of another control plane and after each reconnect, until the store is gone.
pub(crate) async fn run(shared: Weak<Shared>, moved: Box<dyn Fn() + Send + Sync>) {
    let mut backoff = BACKOFF.0;
    while let Some(opened) = Stream::open(&shared, |keys| &keys.log).await {
        if let Ok(stream) = opened {
            backoff = BACKOFF.0;
            let ended = follow(&shared, stream, &*moved).await;
            tracing::debug!(?ended, "the connection for change notices ended");
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF.1);
    }
}

async fn follow(shared: &Weak<Shared>, mut stream: Stream, moved: &(dyn Fn() + Send + Sync)) -> Result<(), RedisError> {
    let mut last = stream.newest().await?;
    // What was missed while there was no connection.
    moved();
    loop {
        let newest = stream.after(&last, MOST).await?.pop();
        let Some(now) = shared.upgrade() else { return Ok(()) };
        match newest {
            // Numbers of a server that was emptied or failed over may be below the last one: no entry would be seen again.
            None => moved(),
            Some(entry) => {
                let version = entry.id.split('-').next().and_then(|version| version.parse::<u64>().ok());
                if version.is_none_or(|version| version > now.published.load(Ordering::SeqCst)) {
                    moved();
                }
                last = entry.id;
            }
        }
    }
}
