//! A contract learned from traffic: an OpenAPI 3.1 document of the requests that a backend accepted.
//!
//! [`Learner::observe`] takes one exchange after the other; what it keeps is bounded ([`Options::max_nodes`]) and does not grow with
//! the number of exchanges. [`Learner::finish`] writes the document. Each claim in it (required, a range, a list of values, a closed
//! object) has at least [`Options::min_evidence`] observations behind it, and says how many.
//!
//! Values stay out of the document, except for the ends of ranges and lists of words that recur (`enum`). Names that hold secrets or
//! personal data (`names.rs`) get a type only.

mod attack;
mod document;
mod fold;
mod inventory;
mod media;
mod names;
mod number;
mod operation;
mod parameter;
mod path;
mod schema;
mod segment;
mod shape;
mod tally;
mod text;

use serde_json::Value;

pub use inventory::{FromInventory, add_inventory};
use operation::Operation;
use path::Node;

/// How to learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The title of the document.
    pub title: String,
    /// The observations behind each claim, at least. Default 20.
    pub min_evidence: u64,
    /// The statuses that teach. Default 200 to 399.
    pub accept: Vec<Statuses>,
    /// The parts (paths, parameters, properties, shapes of values) that are kept at once, about 500 bytes each. What is seen beyond them
    /// is counted and not described. Default 200,000.
    pub max_nodes: usize,
}

/// Statuses from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The path with its query, as on the wire.
    pub path: &'a [u8],
    /// Headers of the request, names in lower case; pseudo headers are passed over.
    pub headers: &'a [(Vec<u8>, Vec<u8>)],
    /// The body of the request.
    pub body: &'a [u8],
    /// The status of the answer; `None` where it is not known.
    pub status: Option<u16>,
    /// Headers of the answer.
    pub response_headers: &'a [(Vec<u8>, Vec<u8>)],
    /// The body of the answer.
    pub response_body: &'a [u8],
}

/// What was observed and not learned from, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All exchanges.
    pub observed: u64,
    /// Those that were learned from.
    pub learned: u64,
    /// The backend did not accept them.
    pub refused: u64,
    /// Their answer is not known.
    pub unanswered: u64,
    /// They look like an attack.
    pub attacks: u64,
    /// A method that OpenAPI does not have, a path that is none or has too many segments, a preflight of CORS; or there is no room
    /// ([`Learned::full`]).
    pub foreign: u64,
}

/// A learned document.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// OpenAPI 3.1.
    pub document: Value,
    /// Paths of the document.
    pub paths: usize,
    /// Operations of the document.
    pub operations: usize,
    /// Operations with too few requests, which the document leaves out.
    pub left_out: usize,
    /// What was observed.
    pub counts: Counts,
    /// Whether [`Options::max_nodes`] was reached, so that parts are not described.
    pub full: bool,
}

/// Learns from exchanges.
#[derive(Debug)]
pub struct Learner {
    options: Options,
    root: Node,
    room: Room,
    counts: Counts,
}

/// The parts that may still be kept.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    full: bool,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Learned API".to_owned(),
            min_evidence: 20,
            accept: vec![Statuses { first: 200, last: 399 }],
            max_nodes: 200_000,
        }
    }
}

// === impl Statuses ===

impl std::str::FromStr for Statuses {
    type Err = String;

    /// Reads `2xx` or `201`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{}` is no status: expected a class such as 2xx, or a number such as 201", text.escape_debug());
        if let Some(class) = text.strip_suffix("xx") {
            let class: u16 = class.parse().map_err(|_| wrong())?;
            return if (1..=5).contains(&class) {
                Ok(Self { first: class * 100, last: class * 100 + 99 })
            } else {
                Err(wrong())
            };
        }
        let status = text.parse().ok().filter(|status| (100..=599).contains(status)).ok_or_else(wrong)?;
        Ok(Self { first: status, last: status })
    }
}

// === impl Room ===

impl Room {
    /// Takes the place of one part; `false` where there is none.
    pub(crate) fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.full = true;
                false
            }
        }
    }

    /// Gives places back.
    pub(crate) fn give(&mut self, count: usize) {
        self.left = self.left.saturating_add(count);
    }
}

// === impl Learner ===

impl Learner {
    /// Begins.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let room = Room { left: options.max_nodes, full: false };
        Self { options, root: Node::default(), room, counts: Counts::default() }
    }

    /// Takes an exchange.
    pub fn observe(&mut self, seen: &Observation<'_>) {
        self.counts.observed += 1;
        let (path, query) = split_query(seen.path);
        let header = |name: &[u8]| seen.headers.iter().any(|(own, _)| own == name);
        let preflight = seen.method == b"OPTIONS" && header(b"access-control-request-method");
        let Some(method) = operation::method(seen.method).filter(|_| path.starts_with(b"/") && !preflight) else {
            self.counts.foreign += 1;
            return;
        };
        let Some(status) = seen.status else {
            self.counts.unanswered += 1;
            return;
        };
        if !self.options.accept.iter().any(|range| (range.first..=range.last).contains(&status)) {
            self.counts.refused += 1;
            // What is known already may be refused as well: the document lists the statuses.
            if let Some(operation) = self.root.known(path).and_then(|node| node.operations.get_mut(method)) {
                operation.refuse(status);
            }
            return;
        }
        if attack::is_attack(path, query) {
            self.counts.attacks += 1;
            return;
        }
        let Some(node) = self.root.place(path, &mut self.room) else {
            self.counts.foreign += 1;
            return;
        };
        if !node.operations.contains_key(method) && !self.room.take() {
            self.counts.foreign += 1;
            return;
        }
        self.counts.learned += 1;
        let operation = node.operations.entry(method).or_insert_with(Operation::default);
        operation.observe(seen, query, status, &mut self.room);
    }

    /// What was observed so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Folds the paths and writes the document.
    #[must_use]
    pub fn finish(mut self) -> Learned {
        fold::fold(&mut self.root, self.options.min_evidence, &mut self.room);
        document::write(&self.root, &self.options, self.counts, self.room.full)
    }
}

/// A path and its query, without a fragment.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    let target = target.split(|byte| *byte == b'#').next().unwrap_or_default();
    match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (target.get(..at).unwrap_or_default(), target.get(at + 1..).unwrap_or_default()),
        None => (target, b""),
    }
}

/// Undoes percent-encoding; what is no escape stays.
pub(crate) fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digit = |place: usize| text.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
