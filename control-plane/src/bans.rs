//! Bans in the store: what was acknowledged to a node or an operator outlives the control plane.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use snapshot::{BanChange, BanRequest};

use crate::link::{BanSink, Verdict};
use crate::store::{BanRow, Store};

/// [`BanSink`] over a [`Store`].
pub struct StoredBans {
    store: Arc<dyn Store>,
    runtime: tokio::runtime::Handle,
}

/// A ban with its evidence, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Evidence {
    reason: String,
    score: f64,
    tags: Vec<String>,
    /// Milliseconds since the Unix epoch.
    issued_at: u64,
    /// The node that asked for it; empty for an operator.
    issued_by: String,
}

impl StoredBans {
    /// Bans in `store`. Must be called within a tokio runtime of more than one thread.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, runtime: tokio::runtime::Handle::current() }
    }
}

impl BanSink for StoredBans {
    fn put(&self, node: &str, ban: &BanRequest) -> Result<Verdict, String> {
        let standing = self.list(ban.issued_at_millis)?.into_iter().find(|held| held.key == ban.key);
        if let Some(longer) = standing.filter(|held| held.until_millis >= ban.until_millis) {
            return Ok(Verdict::Live(longer));
        }
        let evidence = Evidence {
            reason: ban.reason.clone(),
            score: ban.score,
            tags: ban.tags.clone(),
            issued_at: ban.issued_at_millis,
            issued_by: node.to_owned(),
        };
        let json = serde_json::to_string(&evidence).map_err(|error| error.to_string())?;
        let row = BanRow { ref_key: ban.key.clone(), json, until_millis: ban.until_millis };
        self.runtime.block_on(self.store.ban_put(row)).map_err(|error| error.to_string())?;
        let change = BanChange { key: ban.key.clone(), until_millis: ban.until_millis, reason: ban.reason.clone() };
        Ok(Verdict::Live(change))
    }

    fn lift(&self, key: &str) -> Result<(), String> {
        self.runtime.block_on(self.store.ban_remove(key)).map(drop).map_err(|error| error.to_string())
    }

    fn list(&self, now: u64) -> Result<Vec<BanChange>, String> {
        let rows = self.runtime.block_on(self.store.bans()).map_err(|error| error.to_string())?;
        let live = rows.into_iter().filter(|row| row.until_millis > now);
        let change = |row: BanRow| {
            let evidence = serde_json::from_str::<Evidence>(&row.json);
            let reason = evidence.map_or(String::new(), |evidence| evidence.reason);
            BanChange { key: row.ref_key, until_millis: row.until_millis, reason }
        };
        Ok(live.map(change).collect())
    }
}
