//! What follows when the server of a shared store has lost changes: gateways hold what the store has, and operators are told.

use std::time::Duration;

use snapshot::{AllowChange, Down};
use store::{Held, Setback, StoreError};

use crate::Fabric;
use crate::bans::lift_of;
use events::Part;

/// How long to wait before the store is asked again.
const RETRY: Duration = Duration::from_millis(200);
/// The keys that the event names, at most.
const NAMED: usize = 20;

impl Fabric {
    /// Lifts at every gateway the bans, and takes back the entries of the allowlist, that the store has lost, and reports it, until the store
    /// is closed. For a task of its own.
    pub async fn follow_setbacks(self) {
        let mut setbacks = self.inner.store.setbacks();
        while let Some(setback) = setbacks.next().await {
            self.events().mishap(Part::Store, &described(&setback, self.now()));
            while let Err(error) = self.take_back(&setback.lost).await {
                if error == StoreError::Closed {
                    return;
                }
                tracing::warn!(%error, "bans that the shared store has lost cannot be lifted yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// In the order of the record, so that no ban is lifted that was made since.
    async fn take_back(&self, lost: &Held) -> Result<(), StoreError> {
        let now = self.now();
        let lost = lost.lasting(now);
        if lost == Held::default() {
            return Ok(());
        }
        let taken = async {
            match self.store().note_lost(lost, now).await {
                Ok(Held { bans, allowed }) => {
                    let allowed = allowed.into_keys().map(|key| AllowChange { key, until_millis: 0 }).collect();
                    let bans = bans.into_keys().map(lift_of).collect();
                    (Ok(()), Down { allowed, bans, ..Down::default() })
                }
                Err(error) => (Err(error), Down::default()),
            }
        };
        self.announcer().change(taken).await
    }
}

fn described(setback: &Setback, now: u64) -> String {
    let Setback { had, has, lost } = setback;
    let Held { bans, allowed } = lost.lasting(now);
    let keys = |all: Vec<&String>| {
        let shown: Vec<&str> = all.iter().take(NAMED).map(|key| key.as_str()).collect();
        let more = all.len().saturating_sub(NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        if shown.is_empty() { String::new() } else { format!(" ({}{rest})", shown.join(", ")) }
    };
    format!(
        "the shared store has lost changes: it was at change {had} and is at change {has} of another history, as after a restore from an \
         older file or a failover to a server that had missed changes. This control plane has read it anew. Gateways lift {} bans{} and \
         forget {} entries of the allowlist{} that it does not have any more",
        bans.len(),
        keys(bans.keys().collect()),
        allowed.len(),
        keys(allowed.keys().collect()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_names_what_is_lost_within_a_bound() {
        let bans = (0..25).map(|number| (format!("ip:192.0.2.{number:02}"), 9)).chain([("ip:ended".to_owned(), 5)]);
        let lost = Held { bans: bans.collect(), ..Held::default() };
        let text = described(&Setback { had: 7, has: 5, lost }, 5);
        assert!(text.contains("was at change 7 and is at change 5"), "{text}");
        assert!(text.contains("25 bans (ip:192.0.2.00, ") && text.contains("192.0.2.19 and 5 more)"), "{text}");
        assert!(text.contains("0 entries of the allowlist that"), "{text}");
    }
}
