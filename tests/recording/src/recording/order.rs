//! Streams of entries, merged by time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;

use super::files::File;
use super::{Meter, entries};
use crate::{BadEntry, Entries, Entry, Options};

/// A file below this many bytes is put in order by itself.
const SMALL_FILE: u64 = 1 << 20;
/// Where its entries have more than this many bytes together, it is not small.
const SMALL_CONTENT: usize = 16 << 20;
/// How many entries of a large file are looked at for a time.
const LOOKED_AT: usize = 100;

/// Milliseconds; what has no time and nothing before it that has one comes first.
type Time = Option<u64>;
type Item = Result<Entry, BadEntry>;

/// The merged streams.
pub(super) struct Merge {
    options: Options,
    meter: Meter,
    /// Files in their order, before their times are known.
    listed: Vec<File>,
    /// Files that are not open; the next one is the last.
    waiting: Vec<Waiting>,
    /// The first entries of the open streams.
    heads: BinaryHeap<Reverse<Head>>,
    /// The stream whose entry was handed out last.
    current: Option<Stream>,
}

struct Waiting {
    file: File,
    time: Time,
    index: usize,
    is_small: bool,
}

/// A stream and the entry that comes next.
struct Head {
    time: Time,
    item: Item,
    stream: Stream,
}

struct Stream {
    /// The place of its file among the files.
    index: usize,
    /// The time of the entry that came last.
    time: Time,
    rest: Entries,
}

impl Merge {
    pub(super) fn new(listed: Vec<File>, options: Options, meter: Meter) -> Self {
        Self { options, meter, listed, waiting: Vec::new(), heads: BinaryHeap::new(), current: None }
    }

    /// One stream, in its own order.
    pub(super) fn single(rest: Entries, options: Options, meter: Meter) -> Self {
        Self { current: Some(Stream { index: 0, time: None, rest }), ..Self::new(Vec::new(), options, meter) }
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> Option<Item> {
        if !self.listed.is_empty() {
            self.look_for_times();
        }
        if let Some(stream) = self.current.take() {
            self.put(stream);
        }
        let at_once = self.options.files_at_once.max(1);
        while self.heads.len() < at_once && self.waiting.last().is_some_and(|waiting| self.is_due(waiting)) {
            if let Some(waiting) = self.waiting.pop() {
                let stream = self.open(&waiting);
                self.put(stream);
            }
        }
        let Reverse(head) = self.heads.pop()?;
        self.current = Some(head.stream);
        Some(head.item)
    }

    fn is_due(&self, waiting: &Waiting) -> bool {
        self.heads.peek().is_none_or(|Reverse(head)| (waiting.time, waiting.index) <= head.key())
    }

    /// Puts a stream among the others, unless it is at its end.
    fn put(&mut self, mut stream: Stream) {
        if let Some(item) = stream.rest.next() {
            stream.time = time(&item).or(stream.time);
            self.heads.push(Reverse(Head { time: stream.time, item, stream }));
        }
    }

    fn open(&self, waiting: &Waiting) -> Stream {
        let rest = entries(&waiting.file, &self.options, &self.meter);
        let rest = if waiting.is_small { sorted(rest, waiting.time) } else { rest };
        Stream { index: waiting.index, time: waiting.time, rest }
    }

    /// Finds out when each file begins.
    fn look_for_times(&mut self) {
        let files = std::mem::take(&mut self.listed);
        let only_one = files.len() == 1;
        let mut before = None;
        for (index, file) in files.into_iter().enumerate() {
            let mut is_small = file.is_regular && file.length < SMALL_FILE;
            let found = match (only_one || !file.is_regular, is_small) {
                (true, _) => None,
                (false, true) => {
                    let (earliest, fits) = earliest(entries(&file, &self.options, &Meter::default()));
                    is_small = fits;
                    earliest
                }
                (false, false) => {
                    let first = entries(&file, &self.options, &Meter::default()).take(LOOKED_AT);
                    first.into_iter().find_map(|item| time(&item))
                }
            };
            before = found.or(before);
            self.waiting.push(Waiting { file, time: before, index, is_small });
        }
        self.waiting.sort_unstable_by_key(|waiting| Reverse((waiting.time, waiting.index)));
    }
}

impl fmt::Debug for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").field("waiting", &self.waiting.len()).field("open", &self.heads.len()).finish()
    }
}

fn time(item: &Item) -> Time {
    item.as_ref().ok()?.at_millis
}

/// The earliest time of a file's entries, and whether they are few enough to be put in order.
fn earliest(entries: Entries) -> (Time, bool) {
    let mut earliest = None;
    let mut size = 0;
    for item in entries {
        earliest = [earliest, time(&item)].into_iter().flatten().min();
        size += weight(&item);
        if size > SMALL_CONTENT {
            return (earliest, false);
        }
    }
    (earliest, true)
}

/// The entries in the order of time: those without one behind the one before. A file that grew meanwhile is not put in
/// order as a whole.
fn sorted(mut entries: Entries, begin: Time) -> Entries {
    let mut items = Vec::new();
    let (mut size, mut last) = (0, begin);
    while size <= SMALL_CONTENT
        && let Some(item) = entries.next()
    {
        size += weight(&item);
        last = time(&item).or(last);
        items.push((last, item));
    }
    items.sort_by_key(|(time, _)| *time);
    Box::new(items.into_iter().map(|(_, item)| item).chain(entries))
}

/// About how many bytes an entry has in memory.
fn weight(item: &Item) -> usize {
    item.as_ref().map_or(256, Entry::weight)
}

impl Head {
    fn key(&self) -> (Time, usize) {
        (self.time, self.stream.index)
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
