//! The decisions of one service that are in force.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

use super::super::DecisionScope;

/// The most decisions of one service.
pub(super) const MAX_DECISIONS: usize = 1 << 20;

/// The most further decisions on one key. Of more the ones that end last are held: they are looked through one by one.
const MAX_FURTHER: usize = 64;

/// What a decision is about. The service deletes by it, and by nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) scope: DecisionScope,
    pub(super) subject: Subject,
    pub(super) kind: Kind,
}

/// Whom a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Subject {
    /// All addresses from one to another.
    Range(IpAddr, IpAddr),
    /// A country by its code in small letters, or a network by its number.
    Named(Box<str>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `ban`.
    Ban,
    /// `captcha`, or what the service's operators have thought of.
    Other(Box<str>),
}

/// A decision as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) key: Key,
    pub(super) id: i64,
    /// How long it is in force from now on, in milliseconds; negative if it is over.
    pub(super) left_millis: i64,
}

/// The decisions on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    id: i64,
    /// When it ends, in milliseconds since 1970.
    until: u64,
    /// Further ones, of a service that sends them.
    more: Vec<(i64, u64)>,
}

/// All decisions of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    held: HashMap<Key, Held>,
    /// The service sends several decisions on one key, and deletes them one by one. Usually it sends the longest, and a deletion when there
    /// is none left; it may name any.
    pub(super) one_by_one: bool,
    /// No decision ends before then.
    next_end: u64,
}

/// How many decisions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Counts {
    /// On single addresses.
    pub(in super::super) exact: usize,
    /// On ranges.
    pub(in super::super) ranges: usize,
    /// On countries and networks.
    pub(in super::super) named: usize,
}

impl Decisions {
    /// None, of a service that sends and deletes them in that way.
    pub(super) fn of(one_by_one: bool) -> Decisions {
        Decisions { one_by_one, ..Decisions::default() }
    }

    /// How many keys have a decision.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Those that are in force, as (key, id, end). Several on one key come one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, i64, u64)> {
        self.held.iter().flat_map(|(key, held)| {
            let more = held.more.iter().map(move |(id, until)| (key, *id, *until));
            std::iter::once((key, held.id, held.until)).chain(more)
        })
    }

    /// The keys that have a decision.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.held.keys()
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for key in self.keys() {
            match &key.subject {
                Subject::Range(first, last) if first == last => counts.exact += 1,
                Subject::Range(..) => counts.ranges += 1,
                Subject::Named(_) => counts.named += 1,
            }
        }
        counts
    }

    /// Takes a decision that ends then; whether its key had none before.
    pub(super) fn insert(&mut self, key: Key, id: i64, until: u64) -> bool {
        self.next_end = if self.held.is_empty() { until } else { self.next_end.min(until) };
        match self.held.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Held { id, until, more: Vec::new() });
                true
            }
            Entry::Occupied(mut place) => {
                let held = place.get_mut();
                if held.id == id || !self.one_by_one {
                    // The same one again, or the one that counts from now on.
                    (held.id, held.until) = (id, until);
                } else if let Some(known) = held.more.iter_mut().find(|(known, _)| *known == id) {
                    known.1 = until;
                } else if held.more.len() < MAX_FURTHER {
                    held.more.push((id, until));
                } else if let Some(first) = held.more.iter_mut().min_by_key(|(_, until)| *until)
                    && first.1 < until
                {
                    *first = (id, until);
                }
                false
            }
        }
    }

    /// Takes what is new; whether a key has a decision that had none.
    pub(super) fn add(&mut self, new: Vec<Decision>, now: u64) -> bool {
        let mut changed = false;
        for Decision { key, id, left_millis } in new {
            let Ok(left) = u64::try_from(left_millis) else { continue };
            if left > 0 && (self.held.len() < MAX_DECISIONS || self.held.contains_key(&key)) {
                changed |= self.insert(key, id, now.saturating_add(left));
            }
        }
        changed
    }

    /// Takes deletions; whether a key has no decision any more.
    pub(super) fn delete(&mut self, deleted: &[Decision]) -> bool {
        let mut changed = false;
        for Decision { key, id, .. } in deleted {
            if !self.one_by_one {
                changed |= self.held.remove(key).is_some();
                continue;
            }
            let Some(held) = self.held.get_mut(key) else { continue };
            held.more.retain(|(known, _)| known != id);
            if held.id == *id {
                match held.more.pop() {
                    Some((id, until)) => (held.id, held.until) = (id, until),
                    None => changed |= self.held.remove(key).is_some(),
                }
            }
        }
        changed
    }

    /// Gives up what has ended; whether a key has no decision any more.
    pub(super) fn expire(&mut self, now: u64) -> bool {
        if self.held.is_empty() || now < self.next_end {
            return false;
        }
        let before = self.held.len();
        let mut next_end = u64::MAX;
        self.held.retain(|_, held| {
            held.more.retain(|(_, until)| *until > now);
            if held.until <= now {
                let Some((id, until)) = held.more.pop() else { return false };
                (held.id, held.until) = (id, until);
            }
            next_end =
                held.more.iter().map(|(_, until)| *until).chain([next_end, held.until]).min().unwrap_or(next_end);
            true
        });
        self.next_end = next_end;
        self.held.len() != before
    }

    /// When the next decision may end; `None` where there is none.
    pub(super) fn next_end(&self) -> Option<u64> {
        (!self.held.is_empty()).then_some(self.next_end)
    }

    /// Whether a key has several decisions.
    pub(super) fn has_several(&self) -> bool {
        self.held.values().any(|held| !held.more.is_empty())
    }

    /// Whether both have decisions on the same keys.
    pub(super) fn same_keys(&self, other: &Decisions) -> bool {
        self.held.len() == other.held.len() && self.held.keys().all(|key| other.held.contains_key(key))
    }
}
