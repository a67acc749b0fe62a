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
    /// Further ones; `None` where a list of all decisions had one alone, and its deletion is by the key. Otherwise each is deleted by its id,
    /// the last one as well: services repeat deletions.
    more: Option<Vec<(i64, u64)>>,
}

/// All decisions of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    held: HashMap<Key, Held>,
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
    /// A list of all decisions. Usually a service has one on each key, the longest, and a deletion when there is none left; it may name any.
    /// What the service has on one key in two spellings is several, and so is what it does not sum up.
    pub(super) fn of_list(list: Vec<Decision>, now: u64) -> Decisions {
        let mut decisions = Decisions::default();
        decisions.take(list, now, Decisions::insert_listed);
        decisions
    }

    /// How many keys have a decision.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Those that are in force, as (key, id, end). Several on one key come one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, i64, u64)> {
        self.held.iter().flat_map(|(key, held)| {
            let more = held.more.iter().flatten().map(move |(id, until)| (key, *id, *until));
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

    /// Takes a decision of a list of all, which ends then; whether its key had none before. A second one on a key is a further one.
    pub(super) fn insert_listed(&mut self, key: Key, id: i64, until: u64) -> bool {
        self.insert_as(key, id, until, true)
    }

    /// Takes a decision that is new, and ends then; whether its key had none before. A second one on a key is the one that counts from now
    /// on, unless the list of all had several on it.
    pub(super) fn insert(&mut self, key: Key, id: i64, until: u64) -> bool {
        self.insert_as(key, id, until, false)
    }

    fn insert_as(&mut self, key: Key, id: i64, until: u64, listed: bool) -> bool {
        self.next_end = if self.held.is_empty() { until } else { self.next_end.min(until) };
        match self.held.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Held { id, until, more: None });
                true
            }
            Entry::Occupied(mut place) => {
                let held = place.get_mut();
                if held.id == id || held.more.is_none() && !listed {
                    // The same one again, or the one that counts from now on.
                    (held.id, held.until) = (id, until);
                    return false;
                }
                let more = held.more.get_or_insert_default();
                if let Some(known) = more.iter_mut().find(|(known, _)| *known == id) {
                    known.1 = until;
                } else if more.len() < MAX_FURTHER {
                    more.push((id, until));
                } else if let Some(first) = more.iter_mut().min_by_key(|(_, until)| *until)
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
        self.take(new, now, Decisions::insert)
    }

    fn take(&mut self, new: Vec<Decision>, now: u64, insert: fn(&mut Decisions, Key, i64, u64) -> bool) -> bool {
        let mut changed = false;
        for Decision { key, id, left_millis } in new {
            let Ok(left) = u64::try_from(left_millis) else { continue };
            if left > 0 && (self.held.len() < MAX_DECISIONS || self.held.contains_key(&key)) {
                changed |= insert(self, key, id, now.saturating_add(left));
            }
        }
        changed
    }

    /// Takes deletions; whether a key has no decision any more.
    pub(super) fn delete(&mut self, deleted: &[Decision]) -> bool {
        let mut changed = false;
        for Decision { key, id, .. } in deleted {
            let Some(held) = self.held.get_mut(key) else { continue };
            let next = match &mut held.more {
                None => None,
                Some(more) => {
                    more.retain(|(known, _)| known != id);
                    if held.id != *id {
                        continue;
                    }
                    more.pop()
                }
            };
            match next {
                Some((id, until)) => (held.id, held.until) = (id, until),
                None => changed |= self.held.remove(key).is_some(),
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
            if let Some(more) = &mut held.more {
                more.retain(|(_, until)| *until > now);
            }
            if held.until <= now {
                let Some((id, until)) = held.more.as_mut().and_then(Vec::pop) else { return false };
                (held.id, held.until) = (id, until);
            }
            let more = held.more.iter().flatten().map(|(_, until)| *until);
            next_end = more.fold(next_end.min(held.until), u64::min);
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
        self.held.values().any(|held| held.more.is_some())
    }

    /// Whether both have decisions on the same keys.
    pub(super) fn same_keys(&self, other: &Decisions) -> bool {
        self.held.len() == other.held.len() && self.held.keys().all(|key| other.held.contains_key(key))
    }
}
