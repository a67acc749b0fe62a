//! What other control planes change in a shared store, on its way to the gateways of this one.

use std::collections::BTreeSet;
use std::time::Duration;

use snapshot::{AllowChange, BanChange, Down};
use store::{Elsewhere, Keys, Store, StoreError};

use crate::Fabric;
use crate::bans::{allow_of, allowed, change_of, lift_of, list};

/// How long to wait before what could not be read is read again.
const RETRY: Duration = Duration::from_millis(200);
/// The changes of one message.
const MESSAGE: usize = 1000;

impl Fabric {
    /// Tells gateways what other control planes change of bans and of the allowlist, until the store is closed. For a task of its own.
    pub async fn follow_others(self) {
        let mut elsewhere = self.inner.store.elsewhere();
        while let Some(changed) = elsewhere.next().await {
            while let Err(error) = self.tell_of_others(&changed).await {
                if error == StoreError::Closed {
                    return;
                }
                tracing::warn!(%error, "what another control plane has changed of bans cannot be read yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Reads what was changed and tells it, in the order of the record: nothing that this control plane changes meanwhile is told before it.
    async fn tell_of_others(&self, changed: &Elsewhere) -> Result<(), StoreError> {
        let read = async {
            match changes(self.store(), changed, self.now()).await {
                Ok(downs) => (Ok(()), downs),
                Err(error) => (Err(error), Vec::new()),
            }
        };
        self.announcer().change_many(read).await
    }
}

/// As gateways are told.
async fn changes(store: &dyn Store, changed: &Elsewhere, now: u64) -> Result<Vec<Down>, StoreError> {
    let (bans, allows) = match changed {
        Elsewhere::Anything => (list(store, now).await?, allowed(store, now).await?),
        Elsewhere::Keys(Keys { bans, allowed, .. }) => {
            (bans_of(store, bans, now).await?, allowed_of(store, allowed, now).await?)
        }
    };
    let allows = allows.chunks(MESSAGE).map(|part| Down { allowed: part.to_vec(), ..Down::default() });
    let bans = bans.chunks(MESSAGE).map(|part| Down { bans: part.to_vec(), ..Down::default() });
    Ok(allows.chain(bans).collect())
}

async fn bans_of(store: &dyn Store, keys: &BTreeSet<String>, now: u64) -> Result<Vec<BanChange>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let found = store.bans_named(now, keys.iter().cloned().collect()).await?;
    let live: Vec<BanChange> = found.iter().map(change_of).collect();
    let known: BTreeSet<&str> = live.iter().map(|change| change.key.as_str()).collect();
    let gone: Vec<BanChange> = keys.iter().filter(|key| !known.contains(key.as_str())).cloned().map(lift_of).collect();
    Ok([gone, live].concat())
}

async fn allowed_of(store: &dyn Store, keys: &BTreeSet<String>, now: u64) -> Result<Vec<AllowChange>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let entries = store.allowlist(now).await?;
    let live: Vec<AllowChange> = entries.iter().filter(|entry| keys.contains(&entry.key)).map(allow_of).collect();
    let known: BTreeSet<&str> = live.iter().map(|change| change.key.as_str()).collect();
    let gone = keys.iter().filter(|key| !known.contains(key.as_str()));
    let gone = gone.map(|key| AllowChange { key: key.clone(), until_millis: 0 });
    Ok(gone.chain(live.iter().cloned()).collect())
}
