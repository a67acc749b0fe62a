//! Bans that the store could not take when gateways asked for them: in force at the gateways of this control plane, and stored as soon as that
//! works, so that the others have them, too.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use snapshot::BanRequest;
use store::StoreError;

use crate::bans::Bans;

/// Bans that wait, at most; of more, those asked for first are given up and end at their time where they are in force.
const MAX: usize = 10_000;
/// How often they are offered to the store.
const EVERY: Duration = Duration::from_secs(1);
/// Those that are offered at once, at most.
const AT_ONCE: usize = 500;

/// Those that wait, oldest first, each with the node that asks for it.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(Mutex<VecDeque<(String, BanRequest)>>);

impl Unrecorded {
    pub(crate) fn keep(&self, node: &str, asked: &[BanRequest]) {
        let mut waiting = self.lock();
        waiting.extend(asked.iter().map(|ban| (node.to_owned(), ban.clone())));
        let given_up = waiting.len().saturating_sub(MAX);
        waiting.drain(..given_up);
        if given_up > 0 {
            tracing::error!(
                given_up,
                "too many bans wait for the store: only the gateways of this control plane have them"
            );
        }
    }

    /// The first of them that one node has asked for and that have not ended.
    fn next(&self, now: u64) -> Option<(String, Vec<BanRequest>)> {
        let mut waiting = self.lock();
        waiting.retain(|(_, ban)| ban.until_millis > now);
        let node = waiting.front()?.0.clone();
        let count = waiting.iter().take(AT_ONCE).take_while(|(by, _)| *by == node).count();
        Some((node, waiting.drain(..count).map(|(_, ban)| ban).collect()))
    }

    fn put_back(&self, node: &str, asked: Vec<BanRequest>) {
        let mut waiting = self.lock();
        asked.into_iter().rev().for_each(|ban| waiting.push_front((node.to_owned(), ban)));
        waiting.truncate(MAX);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, BanRequest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bans {
    /// Stores bans that could not be stored when they were asked for, and tells the gateways the outcome, until the store is closed. For a
    /// task of its own.
    pub async fn keep_unrecorded(self) {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            // Other changes wait for a record that is under way: none is tried while the store does not answer.
            if self.unrecorded().lock().is_empty() || self.store().ping().await.is_err() {
                continue;
            }
            while let Some((node, asked)) = self.unrecorded().next(self.now()) {
                match self.record_late(&node, &asked).await {
                    Ok(()) => tracing::info!(node, count = asked.len(), "bans are stored that could not be before"),
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        tracing::debug!(%error, "bans cannot be stored yet");
                        self.unrecorded().put_back(&node, asked);
                        break;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(number: usize, until_millis: u64) -> BanRequest {
        BanRequest { key: number.to_string(), until_millis, ..BanRequest::default() }
    }

    #[test]
    fn bans_wait_in_their_order_by_node_and_within_a_bound() {
        let waiting = Unrecorded::default();
        waiting.keep("a", &[ban(1, 5), ban(2, 9), ban(3, 9)]);
        waiting.keep("b", &[ban(4, 9)]);
        let (node, asked) = waiting.next(5).unwrap();
        assert_eq!((node.as_str(), asked.clone()), ("a", vec![ban(2, 9), ban(3, 9)]), "what has ended is not stored");
        waiting.put_back(&node, asked.clone());
        assert_eq!(waiting.next(5), Some((node, asked)));
        assert_eq!(waiting.next(5), Some(("b".to_owned(), vec![ban(4, 9)])));
        assert_eq!(waiting.next(5), None);
        let many: Vec<BanRequest> = (0..MAX + 7).map(|number| ban(number, 9)).collect();
        waiting.keep("a", &many);
        assert_eq!(waiting.lock().len(), MAX);
        assert_eq!(waiting.next(5).unwrap().1, many[7..7 + AT_ONCE], "the oldest give way");
    }
}
