//! What a control plane knew of a shared store and the server has lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::fabric::LAST_MOMENT;

/// Setbacks that a listener may lag behind.
const LAG: usize = 16;

/// The server of a shared store has another history than this control plane has read: it was started on older data, or a server took over
/// that had missed changes. This control plane has read everything anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// The changes that the server had taken as far as this control plane knows.
    pub had: u64,
    /// Those that it has now.
    pub has: u64,
    /// Of bans and of the allowlist what this control plane knew and the server has not.
    pub lost: Held,
}

/// Bans and entries of the allowlist by their keys, each with its end in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bans.
    pub bans: BTreeMap<String, u64>,
    /// Entries of the allowlist; one for good ends with the last moment that is kept.
    pub allowed: BTreeMap<String, u64>,
}

/// Listens to setbacks.
#[derive(Debug)]
pub struct Setbacks(broadcast::Receiver<Arc<Setback>>);

impl Setbacks {
    /// The next one; `None` once the store is gone. A call that is given up loses nothing.
    pub async fn next(&mut self) -> Option<Arc<Setback>> {
        loop {
            match self.0.recv().await {
                Ok(setback) => return Some(setback),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Whether there were any since the last call of this or of [`Setbacks::next`]. Does not wait. One that a read of the store has met is among
    /// them as soon as the read has its answer.
    pub fn came(&mut self) -> bool {
        let mut came = false;
        loop {
            match self.0.try_recv() {
                Ok(_) | Err(TryRecvError::Lagged(_)) => came = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return came,
            }
        }
    }
}

impl Held {
    /// All of a store.
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Held> {
        let read = |select: &str| -> rusqlite::Result<BTreeMap<String, u64>> {
            let mut select = db.prepare(select)?;
            select
                .query_map([], |row| Ok((row.get(0)?, row.get::<_, Option<u64>>(1)?.unwrap_or(LAST_MOMENT))))?
                .collect()
        };
        let bans = read("SELECT ref_key, until_millis FROM ban")?;
        Ok(Held { bans, allowed: read("SELECT ref_key, until_millis FROM allowed")? })
    }

    /// What of it a store does not have.
    pub(super) fn without(mut self, db: &Connection) -> rusqlite::Result<Held> {
        if self != Held::default() {
            let Held { bans, allowed } = Held::of(db)?;
            self.bans.retain(|key, _| !bans.contains_key(key));
            self.allowed.retain(|key, _| !allowed.contains_key(key));
        }
        Ok(self)
    }

    /// What has not ended at a moment.
    #[must_use]
    pub fn lasting(&self, now: u64) -> Held {
        let lasting = |all: &BTreeMap<String, u64>| {
            all.iter().filter(|(_, until)| **until > now).map(|(key, until)| (key.clone(), *until)).collect()
        };
        Held { bans: lasting(&self.bans), allowed: lasting(&self.allowed) }
    }
}

/// Where setbacks are announced.
pub(super) fn channel() -> broadcast::Sender<Arc<Setback>> {
    broadcast::channel(LAG).0
}

/// A listener from now on.
pub(super) fn listen(sender: &broadcast::Sender<Arc<Setback>>) -> Setbacks {
    Setbacks(sender.subscribe())
}
