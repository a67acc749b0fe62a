//! Which reports of a worker were taken: each counts once.

use std::collections::HashMap;

use prost::Message;

/// The workers that are told apart, at most.
const MAX_WORKERS: usize = 4096;

/// The last report of each worker.
#[derive(Debug, Default)]
pub(super) struct Workers(HashMap<(String, u64), Last>);

#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    /// When it came, in milliseconds since 1970.
    seen: u64,
}

/// The workers as they are kept.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptWorkers {
    #[prost(message, repeated, tag = "1")]
    pub(super) workers: Vec<KeptWorker>,
}

/// A worker.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptWorker {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(fixed64, tag = "2")]
    worker: u64,
    #[prost(uint64, tag = "3")]
    sequence: u64,
    #[prost(uint64, tag = "4")]
    seen: u64,
}

impl Workers {
    /// Adds reports that were taken before a restart.
    pub(super) fn add(&mut self, kept: KeptWorkers) {
        for KeptWorker { node, worker, sequence, seen } in kept.workers {
            self.admit(&node, worker, sequence, seen);
        }
    }

    pub(super) fn kept(&self) -> KeptWorkers {
        let kept = self.0.iter().map(|((node, worker), Last { sequence, seen })| KeptWorker {
            node: node.clone(),
            worker: *worker,
            sequence: *sequence,
            seen: *seen,
        });
        KeptWorkers { workers: kept.collect() }
    }

    /// Whether a report counts: each does once, in the order in which a worker sends them.
    pub(super) fn admit(&mut self, node: &str, worker: u64, sequence: u64, now: u64) -> bool {
        if worker == 0 || sequence == 0 {
            return false;
        }
        let key = (node.to_owned(), worker);
        if self.0.get(&key).is_some_and(|last| sequence <= last.sequence) {
            return false;
        }
        if self.0.len() >= MAX_WORKERS && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, last)| last.seen).map(|(key, _)| key.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(key, Last { sequence, seen: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_counts_once_also_after_a_restart() {
        let mut workers = Workers::default();
        assert!(workers.admit("a", 1, 1, 0) && workers.admit("b", 1, 1, 0) && workers.admit("a", 2, 5, 0));
        assert!(!workers.admit("a", 1, 1, 0) && !workers.admit("a", 0, 1, 0) && !workers.admit("a", 3, 0, 0));
        let kept = workers.kept();
        let mut workers = Workers::default();
        workers.add(kept);
        assert!(!workers.admit("a", 2, 5, 0) && !workers.admit("a", 2, 4, 0) && workers.admit("a", 2, 6, 0));
    }

    #[test]
    fn many_workers_keep_to_their_room() {
        let mut workers = Workers::default();
        assert!((1..20_000).all(|worker| workers.admit("a", worker, 1, worker)));
        assert_eq!(workers.0.len(), MAX_WORKERS);
        assert!(!workers.admit("a", 19_999, 1, 0), "the newest is known");
    }
}
