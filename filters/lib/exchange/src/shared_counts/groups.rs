//! The groups that a node counts. A group that no worker has used for as long as its window gives way to another one: configurations
//! change, and the control plane keeps so many of a node.

use std::cell::Cell;
use std::rc::Rc;

use node_state::{SharedData, edit};
use snapshot::{CountGroup, Message};

use super::Shared;

/// The key of the list of the node in shared data.
const LIST: &str = "svc.counts.used";
/// The most groups of a node.
const MAX_GROUPS: usize = 32;
/// How long a group without a use stays at least, in milliseconds.
const LEAST_IDLE: u64 = 60_000;
/// The bounds of [`noted_again`], in milliseconds.
const NOTED_AGAIN: (u64, u64) = (1_000, 600_000);

/// A group in the list of the node.
struct Used {
    group: CountGroup,
    /// When a worker has noted a use last, in milliseconds since the Unix epoch.
    at: u64,
}

/// The groups that a worker has met.
#[derive(Default)]
pub(super) struct Groups {
    known: Vec<Known>,
    /// The number of the last one.
    last: u64,
}

struct Known {
    number: u64,
    shared: Rc<Shared>,
    /// When this worker has noted a use last.
    noted: Cell<u64>,
}

/// What the list of the node has made of the groups of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// The worker has groups that it had not.
    pub(super) is_new: bool,
    /// Some have given way.
    pub(super) is_gone: bool,
}

impl Groups {
    /// The number of a group, which no other one of the worker ever has, and whether its use needs no note.
    pub(super) fn met(&mut self, shared: &Rc<Shared>, now: u64) -> Option<(u64, bool)> {
        let same = self.known.iter().position(|known| Rc::ptr_eq(&known.shared, shared));
        let place = same.or_else(|| self.known.iter().position(|known| known.shared.described == shared.described))?;
        let known = self.known.get_mut(place)?;
        if same.is_none() {
            // A new snapshot has made it again: found quickly from now on.
            known.shared = Rc::clone(shared);
        }
        Some((known.number, now.abs_diff(known.noted.get()) < noted_again(&shared.described)))
    }

    /// Takes over the list of the node. A use of `shared` was noted.
    pub(super) fn follow(&mut self, list: &[CountGroup], shared: Option<&Rc<Shared>>, now: u64) -> Followed {
        let before = self.known.len();
        self.known.retain(|known| list.contains(&known.shared.described));
        let mut followed = Followed { is_gone: self.known.len() < before, is_new: false };
        for described in list {
            let of_use = shared.filter(|shared| shared.described == *described);
            match self.known.iter().find(|known| known.shared.described == *described) {
                Some(known) if of_use.is_some() => known.noted.set(now),
                Some(_) => {}
                None => {
                    let noted = Cell::new(if of_use.is_some() { now } else { 0 });
                    let shared = of_use.map_or_else(|| Shared::new(described.clone()), Rc::clone);
                    self.last = self.last.saturating_add(1);
                    self.known.push(Known { number: self.last, shared, noted });
                    followed.is_new = true;
                }
            }
        }
        followed
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<Shared>> {
        self.known.iter().map(|known| &known.shared)
    }

    /// The group of a number; `None` if it has given way.
    pub(super) fn get(&self, number: u64) -> Option<&Rc<Shared>> {
        self.known.iter().find(|known| known.number == number).map(|known| &known.shared)
    }

    /// The number of the group at a place, and the group.
    pub(super) fn at(&self, place: usize) -> Option<(u64, &Rc<Shared>)> {
        self.known.get(place).map(|known| (known.number, &known.shared))
    }
}

impl Used {
    /// Whether it may give way: nothing that was counted is in its window any more, also by a use that was not noted again. A time that is
    /// far ahead was noted before the clock was put back.
    fn is_idle(&self, now: u64) -> bool {
        now.abs_diff(self.at) >= span(&self.group).max(LEAST_IDLE).saturating_add(noted_again(&self.group))
    }
}

/// The groups of the node.
pub(super) fn list(data: &dyn SharedData) -> Vec<CountGroup> {
    let bytes = data.get(LIST).map(|(bytes, _)| bytes).unwrap_or_default();
    read(&bytes).into_iter().map(|used| used.group).collect()
}

/// Notes a use of a group: the groups of the node, without it if there are too many that are in use; `None` if other workers wrote first
/// at each try.
pub(super) fn note(data: &dyn SharedData, described: &CountGroup, now: u64) -> Option<Vec<CountGroup>> {
    edit(data, LIST, |bytes| {
        let mut all = read(bytes);
        let known = all.iter().any(|used| used.group == *described);
        let fits = known || all.len() < MAX_GROUPS || remove_idle(&mut all, now);
        if fits {
            all.retain(|used| used.group != *described);
            all.push(Used { group: described.clone(), at: now });
        }
        let stored = fits.then(|| encode(&all));
        (all.into_iter().map(|used| used.group).collect(), stored)
    })
}

/// Removes the group that was not used for longest; false if all are in use.
fn remove_idle(all: &mut Vec<Used>, now: u64) -> bool {
    let idle = all.iter().enumerate().filter(|(_, used)| used.is_idle(now));
    let Some(place) = idle.min_by_key(|(_, used)| used.at).map(|(place, _)| place) else { return false };
    all.remove(place);
    true
}

/// How long something that was counted stays, in milliseconds.
fn span(group: &CountGroup) -> u64 {
    group.slice_millis.saturating_mul(u64::from(group.slices).saturating_add(1))
}

/// How long a worker does not note a use again, in milliseconds.
fn noted_again(group: &CountGroup) -> u64 {
    (span(group) / 4).clamp(NOTED_AGAIN.0, NOTED_AGAIN.1)
}

/// For each group the time of its last use, little endian, and the message with its length.
fn read(mut bytes: &[u8]) -> Vec<Used> {
    let mut all = Vec::new();
    while let Some((at, mut rest)) = bytes.split_first_chunk::<8>()
        && all.len() < MAX_GROUPS
    {
        let Ok(group) = CountGroup::decode_length_delimited(&mut rest) else { break };
        all.push(Used { group, at: u64::from_le_bytes(*at) });
        bytes = rest;
    }
    all
}

fn encode(all: &[Used]) -> Vec<u8> {
    let one = |used: &Used| [used.at.to_le_bytes().to_vec(), used.group.encode_length_delimited_to_vec()].concat();
    all.iter().flat_map(one).collect()
}
