//! The loop: entries in, rows out.

use std::collections::{BTreeMap, VecDeque};

use recording::{BadEntry, Entry, Place};
use report::Row;

use super::control::Counts;
use super::gateway::Gateway;
use super::row::{Naming, Opened, printable};
use proxy_host::traffic::Fault;

/// Where the clock begins if no entry says, in milliseconds since the Unix epoch: any time, as long as it is always the same.
pub const START_MILLIS: u64 = 1_750_000_000_000;
/// How many entries are looked at for a time to begin with.
const LOOKAHEAD: usize = 1000;
/// And the bytes of them, from which on no further one is looked at.
const LOOKAHEAD_BYTES: usize = 64 << 20;
/// The most bytes of what is wrong with an entry.
const MAX_WHY: usize = 2048;

/// The most faults of timers that are kept.
pub(super) const MAX_FAULTS: usize = 100;

/// What a replay did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries that ran.
    pub ran: u64,
    /// Entries that cannot be read.
    pub bad: u64,
    /// The clock at the beginning and at the end, in milliseconds since the Unix epoch.
    pub span: (u64, u64),
    /// Ticks that were left out because nothing happens in them.
    pub skipped_ticks: u64,
    /// What the control plane has heard.
    pub control: Counts,
    /// The filters' metrics by name.
    pub metrics: BTreeMap<String, i64>,
    /// The first faults that were no request's: a timer died.
    pub timer_faults: Vec<Fault>,
    /// The most rows that waited for one that was held.
    pub waited: usize,
}

/// A row that is not given yet.
enum Slot {
    Open(Box<Opened>),
    Done(Box<Row>),
    Bad(BadEntry),
}

/// Runs entries in their order and gives a row for each, in the same order; or what cannot be read.
///
/// The clock begins at the first time that one of the first entries has. An entry runs at its time, or at the clock's where
/// that is later or the recording has none. `start` makes the gateway at a time; `route` is the route of entries without
/// one.
///
/// # Errors
///
/// What `start` says.
pub fn run<'a>(
    entries: &mut dyn Iterator<Item = Result<Entry, BadEntry>>,
    start: impl FnOnce(u64) -> Result<Box<dyn Gateway + 'a>, String>,
    naming: &Naming,
    route: &str,
    emit: &mut dyn FnMut(Result<Row, BadEntry>),
) -> Result<Summary, String> {
    let mut first = VecDeque::new();
    let (mut begins, mut bytes) = (None, 0_usize);
    while begins.is_none() && first.len() < LOOKAHEAD && bytes < LOOKAHEAD_BYTES {
        let Some(entry) = entries.next() else { break };
        bytes = bytes.saturating_add(entry.as_ref().map_or(0, Entry::weight));
        begins = entry.as_ref().ok().and_then(|entry| entry.at_millis);
        first.push_back(entry);
    }
    let begins = begins.unwrap_or(START_MILLIS);
    let mut replay = Replay {
        gateway: start(begins)?,
        naming,
        route,
        slots: VecDeque::new(),
        given: 0,
        latest: begins,
        summary: Summary { span: (begins, begins), ..Summary::default() },
    };
    for entry in first.into_iter().chain(entries) {
        replay.take(entry);
        replay.give(emit);
    }
    replay.gateway.drain();
    replay.take_faults();
    replay.give(emit);
    let Replay { gateway, mut summary, .. } = replay;
    summary.span.1 = gateway.now_millis();
    (summary.skipped_ticks, summary.control, summary.metrics) =
        (gateway.skipped_ticks(), gateway.control(), gateway.metrics());
    Ok(summary)
}

struct Replay<'a, 'g> {
    gateway: Box<dyn Gateway + 'g>,
    naming: &'a Naming,
    route: &'a str,
    /// The rows that were not given yet, in the order of entries: all behind the first that is held.
    slots: VecDeque<Slot>,
    /// How many were given. The ticket of an entry is its place.
    given: u64,
    /// The latest time of any entry so far.
    latest: u64,
    summary: Summary,
}

impl Replay<'_, '_> {
    fn take(&mut self, entry: Result<Entry, BadEntry>) {
        let ticket = self.given + u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(bad) => {
                self.summary.bad += 1;
                return self.slots.push_back(Slot::Bad(printable_bad(&bad)));
            }
        };
        self.summary.ran += 1;
        if let Some(wanted) = entry.at_millis {
            let behind = self.latest.saturating_sub(wanted);
            if behind > 0 {
                entry.notes.push(format!("it ran {behind} ms after its time: entries before it are later"));
            }
            self.latest = self.latest.max(wanted);
            self.gateway.run_until(wanted);
        }
        if let Some(fault) = self.take_faults() {
            let first = fault.message.lines().next().unwrap_or_default();
            entry.notes.push(format!("a filter died in {} before this request: {first}", fault.callback));
        }
        if entry.exchange.request.route.is_empty() {
            entry.exchange.request.route = self.route.to_owned();
        }
        let opened = self.naming.open(&entry, self.gateway.now_millis());
        self.slots.push_back(Slot::Open(Box::new(opened)));
        self.gateway.begin(ticket, &entry.exchange);
    }

    /// Notes the faults of timers; the first of them.
    fn take_faults(&mut self) -> Option<Fault> {
        let faults = self.gateway.take_faults();
        let first = faults.first().cloned();
        let room = MAX_FAULTS - self.summary.timer_faults.len();
        self.summary.timer_faults.extend(faults.into_iter().take(room));
        first
    }

    /// Gives the rows that are ready and have none before them that is not.
    fn give(&mut self, emit: &mut dyn FnMut(Result<Row, BadEntry>)) {
        for finished in self.gateway.take_finished() {
            let at = finished.ticket.checked_sub(self.given).and_then(|at| usize::try_from(at).ok());
            if let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) {
                let placeholder = Slot::Done(Box::default());
                *slot = match std::mem::replace(slot, placeholder) {
                    Slot::Open(opened) => Slot::Done(Box::new(opened.close(&finished))),
                    ready => ready,
                };
            }
        }
        self.summary.waited = self.summary.waited.max(self.slots.len());
        while let Some(slot) = self.slots.pop_front() {
            match slot {
                Slot::Open(opened) => return self.slots.push_front(Slot::Open(opened)),
                Slot::Done(row) => emit(Ok(*row)),
                Slot::Bad(bad) => emit(Err(bad)),
            }
            self.given += 1;
        }
    }
}

/// An entry that cannot be read, for people to see.
fn printable_bad(bad: &BadEntry) -> BadEntry {
    let file = printable(bad.place.file.as_bytes(), MAX_WHY).into();
    let place = Place { file, number: bad.place.number };
    BadEntry { place, why: printable(bad.why.as_bytes(), MAX_WHY) }
}
