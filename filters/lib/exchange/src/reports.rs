//! Reports of plugins that wait for the node link: of each kind as many as its quota holds.
//!
//! A flood of one kind drops reports of that kind alone, and what is dropped is counted by kind. Kinds take turns on the link.

use std::collections::{BTreeMap, VecDeque};

use snapshot::ReportBatch;

/// The longest report, in bytes; a longer one is dropped.
pub const MAX_REPORT: usize = 64 * 1024;
/// How much of one kind waits at most: reports, and their bytes.
pub const REPORT_QUOTA: (usize, usize) = (2_000, 512 * 1024);
/// The most kinds of reports of a worker.
pub const MAX_REPORT_KINDS: usize = 32;
/// How many bytes of one kind go up in one message.
const TURN: usize = 64 * 1024;

/// The reports of a worker that wait for the link.
#[derive(Debug, Default)]
pub struct ReportQueues {
    kinds: BTreeMap<&'static str, Queue>,
    /// Reports of kinds beyond the most that there may be.
    excess: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Dropped since the control plane was last told.
    dropped: u64,
}

impl ReportQueues {
    /// Queues a report; the oldest of its kind give way. How many reports were dropped for it.
    pub fn push(&mut self, kind: &'static str, data: Vec<u8>) -> u64 {
        if !self.kinds.contains_key(kind) && self.kinds.len() >= MAX_REPORT_KINDS {
            self.excess = self.excess.saturating_add(1);
            return 1;
        }
        let queue = self.kinds.entry(kind).or_default();
        let before = queue.dropped;
        if data.len() > MAX_REPORT {
            queue.dropped = queue.dropped.saturating_add(1);
        } else {
            queue.bytes = queue.bytes.saturating_add(data.len());
            queue.waiting.push_back(data);
            queue.shrink();
        }
        queue.dropped.saturating_sub(before)
    }

    /// Whether nothing waits, and nothing was dropped that the control plane does not know of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.excess == 0 && self.kinds.values().all(|queue| queue.waiting.is_empty() && queue.dropped == 0)
    }

    /// The next reports of each kind: some of all kinds, however much waits of one.
    pub fn take(&mut self) -> Vec<ReportBatch> {
        let mut batches: Vec<ReportBatch> =
            self.kinds.iter_mut().filter_map(|(kind, queue)| queue.take(kind)).collect();
        if self.excess > 0 {
            let dropped = std::mem::take(&mut self.excess);
            batches.push(ReportBatch { kind: String::new(), reports: Vec::new(), dropped });
        }
        batches
    }

    /// Takes back what could not be sent: it is the oldest again.
    pub fn put_back(&mut self, batches: Vec<ReportBatch>) {
        for batch in batches {
            let Some(queue) = self.kinds.get_mut(batch.kind.as_str()) else {
                self.excess = self.excess.saturating_add(batch.dropped);
                continue;
            };
            queue.dropped = queue.dropped.saturating_add(batch.dropped);
            for report in batch.reports.into_iter().rev() {
                queue.bytes = queue.bytes.saturating_add(report.len());
                queue.waiting.push_front(report);
            }
            queue.shrink();
        }
    }
}

impl Queue {
    fn shrink(&mut self) {
        while self.waiting.len() > REPORT_QUOTA.0 || self.bytes > REPORT_QUOTA.1 {
            let Some(oldest) = self.waiting.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.len());
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn take(&mut self, kind: &str) -> Option<ReportBatch> {
        if self.waiting.is_empty() && self.dropped == 0 {
            return None;
        }
        let (mut reports, mut bytes) = (Vec::new(), 0_usize);
        while let Some(next) = self.waiting.pop_front_if(|next| bytes == 0 || bytes.saturating_add(next.len()) <= TURN)
        {
            bytes = bytes.saturating_add(next.len().max(1));
            self.bytes = self.bytes.saturating_sub(next.len());
            reports.push(next);
        }
        Some(ReportBatch { kind: kind.to_owned(), reports, dropped: std::mem::take(&mut self.dropped) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(batches: &[ReportBatch]) -> Vec<(&str, usize, u64)> {
        batches.iter().map(|batch| (batch.kind.as_str(), batch.reports.len(), batch.dropped)).collect()
    }

    #[test]
    fn a_flood_of_one_kind_drops_reports_of_that_kind_alone() {
        let mut queues = ReportQueues::default();
        assert_eq!(queues.push("quiet", b"first".to_vec()), 0);
        let dropped: u64 = (0..3_000_u32).map(|number| queues.push("flood", number.to_le_bytes().to_vec())).sum();
        assert_eq!(dropped, 1_000);
        let batches = queues.take();
        assert_eq!(sizes(&batches), [("flood", 2_000, 1_000), ("quiet", 1, 0)]);
        assert_eq!(batches[0].reports[0], 1_000_u32.to_le_bytes(), "the oldest went");
        assert!(queues.is_empty() && queues.take().is_empty());
    }

    #[test]
    fn kinds_take_turns_and_long_reports_go_alone() {
        let mut queues = ReportQueues::default();
        for _ in 0..20 {
            queues.push("long", vec![0; MAX_REPORT]);
        }
        for _ in 0..3 {
            queues.push("some", vec![0; 30_000]);
        }
        queues.push("none", vec![]);
        assert_eq!(sizes(&queues.take()), [("long", 1, 12), ("none", 1, 0), ("some", 2, 0)]);
        assert_eq!(sizes(&queues.take()), [("long", 1, 0), ("some", 1, 0)]);
        assert_eq!(queues.push("long", vec![0; MAX_REPORT + 1]), 1);
        assert_eq!(sizes(&queues.take()), [("long", 1, 1)]);
    }

    #[test]
    fn what_could_not_be_sent_is_the_oldest_again() {
        let mut queues = ReportQueues::default();
        for number in 0..2_000_u32 {
            queues.push("a", number.to_le_bytes().to_vec());
        }
        let batch = queues.take();
        queues.push("a", b"newest".to_vec());
        queues.put_back(batch);
        let batch = queues.take().remove(0);
        assert_eq!((batch.reports.len(), batch.dropped), (2_000, 1));
        assert_eq!((batch.reports[0].as_slice(), batch.reports[1_999].as_slice()), (&[1, 0, 0, 0][..], &b"newest"[..]));
    }

    #[test]
    fn kinds_have_a_bound() {
        let mut queues = ReportQueues::default();
        let kinds: Vec<&'static str> = (0..=MAX_REPORT_KINDS).map(|kind| &*kind.to_string().leak()).collect();
        let dropped: u64 = kinds.iter().map(|kind| queues.push(kind, vec![1])).sum();
        assert_eq!(dropped, 1);
        let batches = queues.take();
        assert_eq!((batches.len(), batches.last().map(|last| last.dropped)), (MAX_REPORT_KINDS + 1, Some(1)));
        queues.put_back(batches);
        assert_eq!(queues.take().len(), MAX_REPORT_KINDS + 1);
    }
}
