//! Several recordings in one order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use recording::{BadEntry, Entry};

/// How many entries are looked ahead, all recordings together. Logs are written when a request ends, so those that took long
/// stand behind others that came later.
const WINDOW: usize = 256;

/// An entry or why it cannot be read.
type Item = Result<Entry, BadEntry>;
/// Entries as they are read.
type Source = Box<dyn Iterator<Item = Item>>;

/// Entries of several recordings by their times.
///
/// Recordings of one time run into each other; within one, an entry is put in its place among the next ones. What has no time
/// stays behind the one before it in its recording. Equal times keep the order of the recordings, and the order in them.
pub struct Ordered {
    sources: Vec<(Source, u64)>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    read: u64,
}

struct Waiting {
    /// The time, the recording, the place in the order of reading.
    key: (u64, usize, u64),
    item: Item,
}

/// Puts recordings in one order.
#[must_use]
pub fn ordered(sources: Vec<Source>) -> Ordered {
    let each = (WINDOW / sources.len().max(1)).max(1);
    let count = sources.len();
    let sources = sources.into_iter().map(|source| (source, 0)).collect();
    let mut ordered = Ordered { sources, waiting: BinaryHeap::new(), read: 0 };
    for at in 0..count {
        (0..each).for_each(|_| ordered.read(at));
    }
    ordered
}

impl Ordered {
    fn read(&mut self, at: usize) {
        let Some((source, latest)) = self.sources.get_mut(at) else { return };
        let Some(item) = source.next() else { return };
        let time = item.as_ref().ok().and_then(|entry| entry.at_millis).unwrap_or(*latest);
        *latest = time;
        self.read += 1;
        self.waiting.push(Reverse(Waiting { key: (time, at, self.read), item }));
    }
}

impl Iterator for Ordered {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let Reverse(Waiting { key: (_, at, _), item }) = self.waiting.pop()?;
        self.read(at);
        Some(item)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests {
    use recording::Place;

    use super::*;
    use proxy_host::traffic::Exchange;

    /// A recording of entries at times; 0 has none, 1 cannot be read.
    fn recording(name: &str, times: Vec<u64>) -> Source {
        let name: std::sync::Arc<str> = name.into();
        Box::new((1..).zip(times).map(move |(number, at)| {
            let place = Place { file: name.clone(), number };
            if at == 1 {
                return Err(BadEntry { place, why: String::new() });
            }
            let at_millis = (at > 0).then_some(at);
            Ok(Entry { place, at_millis, status: None, notes: Vec::new(), exchange: Exchange::default() })
        }))
    }

    fn places(sources: Vec<Source>) -> Vec<String> {
        let place = |item: Item| item.map_or_else(|bad| bad.place.to_string(), |entry| entry.place.to_string());
        ordered(sources).map(place).collect()
    }

    #[test]
    fn recordings_of_one_time_run_into_each_other_and_nothing_is_lost() {
        let sources = vec![recording("a", vec![10, 0, 1, 40, 30]), recording("b", vec![0, 20, 30])];
        assert_eq!(places(sources), ["b#1", "a#1", "a#2", "a#3", "b#2", "a#5", "b#3", "a#4"]);
        assert!(places(Vec::new()).is_empty());
        // An entry finds its place as far as the window goes.
        let times: Vec<u64> = (1000..3000).rev().collect();
        let found = places(vec![recording("a", times)]);
        assert_eq!((found.len(), found[0].as_str(), found[1999].as_str()), (2000, "a#256", "a#1"));
        let many = (0..1000).map(|at| recording("a", vec![2000 - at])).collect();
        assert_eq!(ordered(many).filter_map(Result::ok).map(|entry| entry.at_millis.unwrap()).collect::<Vec<_>>(), {
            (1001..=2000).collect::<Vec<u64>>()
        });
    }
}
