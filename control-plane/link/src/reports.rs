//! Where reports of plugins go: each kind to its receiver, over a queue of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use snapshot::ReportBatch;
use tokio::sync::{Semaphore, mpsc};

/// How many bytes of reports of one kind wait for their receiver; beyond them they are dropped.
const QUEUE_BYTES: usize = 8 << 20;
/// What a report takes of them beside its bytes.
const OVERHEAD: usize = 64;
/// Under which label reports are counted that have no receiver: what nodes send must not make labels.
const UNKNOWN: &str = "unknown";

/// Reports of one kind from one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reports {
    /// The node.
    pub node: String,
    /// The reports, in the order of one worker.
    pub reports: Vec<Vec<u8>>,
}

/// The receivers of all kinds. Clones share them.
#[derive(Clone, Default)]
pub struct ReportKinds {
    kinds: Arc<RwLock<BTreeMap<&'static str, Kind>>>,
}

#[derive(Clone)]
struct Kind {
    queue: mpsc::UnboundedSender<(Reports, tokio::sync::OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// Reports of one kind, from all nodes, as they come.
#[derive(Debug)]
pub struct ReportReceiver {
    queue: mpsc::UnboundedReceiver<(Reports, tokio::sync::OwnedSemaphorePermit)>,
}

impl ReportReceiver {
    /// The next reports; `None` once the kind has another receiver.
    pub async fn next(&mut self) -> Option<Reports> {
        self.queue.recv().await.map(|(reports, _room)| reports)
    }
}

impl ReportKinds {
    /// The receiver of a kind, in place of any before. One that is slow loses reports, and blocks neither nodes nor other kinds.
    #[must_use]
    pub fn receive(&self, kind: &'static str) -> ReportReceiver {
        let (sender, queue) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(QUEUE_BYTES));
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(kind, Kind { queue: sender, room });
        ReportReceiver { queue }
    }

    /// Passes on what a node sent.
    pub(crate) fn take(&self, node: &str, batches: Vec<ReportBatch>) {
        for ReportBatch { kind, reports, dropped } in batches {
            let known = self.find(&kind);
            let label = known.as_ref().map_or(UNKNOWN, |(label, _)| label);
            count_dropped(label, dropped);
            let Some((_, receiver)) = known else {
                count_dropped(label, reports.len() as u64);
                continue;
            };
            let received = reports.len() as u64;
            if received == 0 {
                continue;
            }
            let bytes: usize = reports.iter().map(|report| report.len() + OVERHEAD).sum();
            let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
            let room = Arc::clone(&receiver.room).try_acquire_many_owned(permits).ok();
            let reports = Reports { node: node.to_owned(), reports };
            let passed = room.is_some_and(|room| receiver.queue.send((reports, room)).is_ok());
            if passed {
                metrics::counter!("palisade_reports_total", "kind" => label).increment(received);
            } else {
                count_dropped(label, received);
            }
        }
    }

    fn find(&self, kind: &str) -> Option<(&'static str, Kind)> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.get_key_value(kind).map(|(label, kind)| (*label, kind.clone()))
    }
}

impl fmt::Debug for ReportKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(kinds.keys()).finish()
    }
}

fn count_dropped(kind: &'static str, by: u64) {
    if by > 0 {
        metrics::counter!("palisade_reports_dropped_total", "kind" => kind).increment(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(kind: &str, reports: Vec<Vec<u8>>) -> Vec<ReportBatch> {
        vec![ReportBatch { kind: kind.into(), reports, dropped: 0 }]
    }

    #[tokio::test]
    async fn reports_go_to_the_receiver_of_their_kind() {
        let kinds = ReportKinds::default();
        let (mut one, mut two) = (kinds.receive("one"), kinds.receive("two"));
        kinds.take("n1", batch("two", vec![b"a".to_vec(), b"b".to_vec()]));
        kinds.take("n2", batch("one", vec![b"c".to_vec()]));
        kinds.take("n2", batch("three", vec![b"d".to_vec()]));
        assert_eq!(
            two.next().await.unwrap(),
            Reports { node: "n1".into(), reports: vec![b"a".to_vec(), b"b".to_vec()] }
        );
        assert_eq!(one.next().await.unwrap().node, "n2");
        let mut other = kinds.receive("one");
        assert!(one.next().await.is_none(), "the kind has another receiver");
        kinds.take("n3", batch("one", vec![vec![]]));
        assert_eq!(other.next().await.unwrap().node, "n3");
    }

    #[tokio::test]
    async fn a_slow_receiver_loses_reports_and_blocks_no_other() {
        let kinds = ReportKinds::default();
        let (mut slow, mut quick) = (kinds.receive("slow"), kinds.receive("quick"));
        (0..300).for_each(|_| kinds.take("n", batch("slow", vec![vec![0; 64 * 1024]])));
        kinds.take("n", batch("quick", vec![b"a".to_vec()]));
        assert_eq!(quick.next().await.unwrap().reports.len(), 1);
        let mut passed = 0;
        while let Ok(Some(_)) = tokio::time::timeout(std::time::Duration::from_millis(1), slow.next()).await {
            passed += 1;
        }
        assert_eq!(passed, QUEUE_BYTES / (64 * 1024 + OVERHEAD));
        kinds.take("n", batch("slow", vec![b"room again".to_vec()]));
        assert_eq!(slow.next().await.unwrap().reports[0], b"room again");
    }
}
