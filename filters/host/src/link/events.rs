//! Events that wait for the link.

use std::collections::VecDeque;

/// The most bytes of events that wait: what callers do fills this queue while the control plane is lost.
const MAX_BYTES: usize = 8 << 20;

/// Events that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Events {
    /// Adds an event; the oldest give way where there are more than `most`, at least one, or more than 8 MiB. How many did.
    pub(super) fn push(&mut self, event: Vec<u8>, most: usize) -> u64 {
        self.bytes = self.bytes.saturating_add(event.len());
        self.waiting.push_back(event);
        let mut dropped = 0;
        while self.waiting.len() > most.max(1) || (self.bytes > MAX_BYTES && self.waiting.len() > 1) {
            let gone = self.waiting.pop_front().map_or(0, |event| event.len());
            self.bytes = self.bytes.saturating_sub(gone);
            dropped += 1;
        }
        dropped
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The lengths of the events.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> + Clone {
        self.waiting.iter().map(Vec::len)
    }

    /// Takes so many of the oldest.
    pub(super) fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let taken: Vec<Vec<u8>> = self.waiting.drain(..count.min(self.waiting.len())).collect();
        self.bytes = self.bytes.saturating_sub(taken.iter().map(Vec::len).sum());
        taken
    }

    /// Takes back what could not be sent.
    pub(super) fn put_back(&mut self, events: Vec<Vec<u8>>) {
        for event in events.into_iter().rev() {
            self.bytes = self.bytes.saturating_add(event.len());
            self.waiting.push_front(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(events: &mut Events) -> Vec<u8> {
        events.take(usize::MAX).iter().filter_map(|event| event.first().copied()).collect()
    }

    #[test]
    fn the_oldest_give_way_by_number_and_by_bytes() {
        let mut events = Events::default();
        assert_eq!((1..=5).map(|number| events.push(vec![number], 3)).sum::<u64>(), 2);
        assert_eq!(firsts(&mut events), [3, 4, 5]);
        let mebibytes = |number, count: usize| vec![number; count << 20];
        let dropped: u64 = (1..=5).map(|number| events.push(mebibytes(number, 3), 1000)).sum();
        assert_eq!((dropped, events.lengths().count()), (3, 2));
        let taken = events.take(1);
        events.put_back(taken);
        assert_eq!(events.push(mebibytes(6, 3), 1000), 1);
        // One that is longer than all may be is alone, and room is there again once it was taken.
        assert_eq!(events.push(mebibytes(7, 9), 1000), 2);
        assert_eq!(firsts(&mut events), [7]);
        assert_eq!((events.push(mebibytes(8, 8), 1000), events.push(vec![9], 0)), (0, 1));
    }
}
