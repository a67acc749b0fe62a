//! Several recordings in one order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use recording::{BadEntry, Entry};

/// How many entries are looked ahead, all recordings together. Logs are written when a request ends, so those that took long
/// stand behind others that came later.
const WINDOW: usize = 256;
/// The bytes of the entries that are looked ahead, all recordings together, from which on no more are read: each recording has
/// one entry at least, and an entry may have 32 MiB.
const WINDOW_BYTES: usize = 64 << 20;

/// An entry or why it cannot be read.
type Item = Result<Entry, BadEntry>;
/// Entries as they are read.
type Source = Box<dyn Iterator<Item = Item>>;

/// Entries of several recordings by their times.
///
/// Recordings of one time run into each other; within one, an entry is put in its place among the next ones. What has no time
/// stays behind the one before it in its recording. Equal times keep the order of the recordings, and the order in them. It
/// holds 256 entries, or fewer that have 64 MiB together: a longer one makes the way shorter that an entry finds back.
pub struct Ordered {
    sources: Vec<Ahead>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// How many entries of each recording are looked ahead.
    each: usize,
    /// The bytes of what waits.
    bytes: usize,
    read: u64,
}

/// A recording.
struct Ahead {
    source: Source,
    /// The time of the entry that was read last.
    latest: u64,
    /// Its entries that wait.
    waiting: usize,
    ended: bool,
}

struct Waiting {
    /// The time, the recording, the place in the order of reading.
    key: (u64, usize, u64),
    weight: usize,
    item: Item,
}

/// Puts recordings in one order.
#[must_use]
pub fn ordered(sources: Vec<Source>) -> Ordered {
    let each = (WINDOW / sources.len().max(1)).max(1);
    let count = sources.len();
    let sources = sources.into_iter().map(|source| Ahead { source, latest: 0, waiting: 0, ended: false }).collect();
    let mut ordered = Ordered { sources, waiting: BinaryHeap::new(), each, bytes: 0, read: 0 };
    (0..count).for_each(|at| ordered.fill(at));
    ordered
}

impl Ordered {
    /// Looks ahead in a recording, as far as there is room.
    fn fill(&mut self, at: usize) {
        let Some(ahead) = self.sources.get_mut(at) else { return };
        while !ahead.ended && ahead.waiting < self.each && (ahead.waiting == 0 || self.bytes < WINDOW_BYTES) {
            let Some(item) = ahead.source.next() else {
                ahead.ended = true;
                return;
            };
            let time = item.as_ref().ok().and_then(|entry| entry.at_millis).unwrap_or(ahead.latest);
            let weight = item.as_ref().map_or_else(|bad| bad.why.len(), Entry::weight);
            (ahead.latest, ahead.waiting) = (time, ahead.waiting + 1);
            self.read += 1;
            self.bytes = self.bytes.saturating_add(weight);
            self.waiting.push(Reverse(Waiting { key: (time, at, self.read), weight, item }));
        }
    }
}

impl Iterator for Ordered {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let Reverse(Waiting { key: (_, at, _), weight, item }) = self.waiting.pop()?;
        self.bytes = self.bytes.saturating_sub(weight);
        if let Some(ahead) = self.sources.get_mut(at) {
            ahead.waiting -= 1;
        }
        self.fill(at);
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
    use std::cell::Cell;
    use std::rc::Rc;

    use recording::Place;

    use super::*;
    use proxy_host::traffic::Exchange;

    #[test]
    fn what_is_looked_ahead_is_bounded_in_bytes() {
        const LONG: usize = 4 << 20;
        let (read, given) = (Rc::new(Cell::new(0_usize)), Cell::new(0_usize));
        let counted = Rc::clone(&read);
        let entries = (0..300_u64).map(move |number| {
            counted.set(counted.get() + 1);
            let mut exchange = Exchange::default();
            // Small ones among them, and behind them.
            exchange.request.body = vec![b'a'; if number % 10 == 9 || number > 280 { 10 } else { LONG }];
            let place = Place { file: "long".into(), number };
            Ok(Entry { place, at_millis: Some(number), status: None, notes: Vec::new(), exchange })
        });
        let mut most = 0;
        for entry in ordered(vec![Box::new(entries)]) {
            given.set(given.get() + 1);
            most = most.max(read.get() - given.get());
            assert_eq!(entry.unwrap().at_millis, Some(given.get() as u64 - 1), "the order stays");
        }
        assert_eq!((read.get(), given.get()), (300, 300));
        let longest = WINDOW_BYTES / LONG + 1;
        // A tenth of them takes no room.
        assert!(most > longest / 2 && most <= longest + longest / 9 + 20, "{most} of 4 MiB wait");
        // Each recording has an entry, however long the others' are.
        let long = |file: &str, at: u64| -> Source {
            let mut exchange = Exchange::default();
            exchange.request.body = vec![b'a'; 33 << 20];
            let place = Place { file: file.into(), number: 1 };
            Box::new(std::iter::once(Ok(Entry {
                place,
                at_millis: Some(at),
                status: None,
                notes: Vec::new(),
                exchange,
            })))
        };
        let found = places(vec![long("a", 30), long("b", 20), long("c", 10), recording("d", vec![15, 25])]);
        assert_eq!(found, ["c#1", "d#1", "b#1", "d#2", "a#1"]);
    }

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
