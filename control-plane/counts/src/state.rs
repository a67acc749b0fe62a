//! All groups and nodes.

use std::collections::HashMap;
use std::sync::Arc;

use snapshot::{CountBatch, CountGroup, CountKind, CountsUp, KeyCount, KeyMembers, MAX_COUNT_MEMBERS};
use tokio::sync::watch;

use crate::group::{Group, Key};
use crate::node::Node;
use crate::part::{ASKED, By, Merged, Part};
use crate::{Asking, MAX_BATCHES, MAX_GROUPS, MAX_KEYS_UP, MAX_NODES, MEMBERS_OF_A_KEY, Room, SWEEP_MILLIS};

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct State {
    room: Room,
    groups: HashMap<u32, Group>,
    numbers: HashMap<CountGroup, u32>,
    nodes: HashMap<u32, Node>,
    names: HashMap<Arc<str>, u32>,
    units: u64,
    /// The number of the last group, and of the last node.
    last: (u32, u32),
    /// When a sweep last made room for a group, in milliseconds since the Unix epoch.
    swept: u64,
}

impl State {
    pub(crate) fn new(room: Room) -> Self {
        let nodes = HashMap::from([(ASKED.node, Node::new())]);
        let (groups, numbers, names) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { room, groups, numbers, nodes, names, units: 0, last: (0, 0), swept: 0 }
    }

    pub(crate) fn linked(&mut self, node: &str, link: u64, now: u64) -> Option<watch::Receiver<()>> {
        let number = self.node(node)?;
        let known = self.nodes.get_mut(&number)?;
        let first = !known.has_links();
        let receiver = known.link(link, now);
        if first {
            self.learn_all(number);
        }
        Some(receiver)
    }

    pub(crate) fn unlinked(&mut self, node: &str, link: u64) {
        let Some((number, known)) =
            self.names.get(node).and_then(|number| Some((*number, self.nodes.get_mut(number)?)))
        else {
            return;
        };
        let served = known.is_served_by(link);
        known.unlink(link);
        if !known.has_links() {
            known.pending.clear();
        } else if served {
            self.learn_all(number);
            self.nodes.get(&number).into_iter().for_each(Node::wake);
        }
    }

    /// Takes what a node has counted.
    pub(crate) fn take(&mut self, node: &str, up: &CountsUp, now: u64) {
        metrics::counter!("palisade_counts_lost_total").increment(up.dropped);
        let mut room = MAX_KEYS_UP;
        for CountBatch { group, counts, members } in up.batches.iter().take(MAX_BATCHES) {
            let Some(group) = group else { continue };
            // A batch has what its group counts, and nothing else: members of a window have no cap.
            let is_set = group.kind() == CountKind::Set;
            let (counts, members) = if is_set { (&[][..], members.as_slice()) } else { (counts.as_slice(), &[][..]) };
            let Some((number, by)) = self.taken_by(Asking { node, incarnation: up.incarnation, group }, now) else {
                continue;
            };
            for count in counts.iter().take(room) {
                self.take_count(number, by, count, now);
            }
            room = room.saturating_sub(counts.len());
            for told in members {
                let size = told.members.len();
                // A worker may name all members and, changed since, some of them again.
                if size > 2 * MAX_COUNT_MEMBERS as usize || room == 0 {
                    break;
                }
                self.take_members(number, by, told, now);
                // Each member is looked for among those there are.
                room = room.saturating_sub(size.div_ceil(MEMBERS_OF_A_KEY).max(1));
            }
        }
        if room == 0 {
            let _dropped: Option<()> = refused("message");
        }
    }

    /// The numbers of a group and of the node's part in it; `None` if the group is not valid, or there are too many groups or nodes.
    pub(crate) fn taken_by(&mut self, asking: Asking<'_>, now: u64) -> Option<(u32, By)> {
        if asking.node.is_empty() || !asking.group.is_valid() {
            return refused("invalid");
        }
        let Some(node) = self.node(asking.node) else { return refused("full") };
        let by = By { node, incarnation: asking.incarnation };
        let forgotten = self.nodes.get_mut(&node)?.starts(asking.incarnation);
        if let Some(incarnation) = forgotten {
            self.forget(By { node, incarnation });
        }
        let known = self.nodes.get(&node)?;
        let counts = self.numbers.get(asking.group).is_some_and(|number| known.groups.contains_key(number));
        if !counts && !self.has_room_for_group(node, now) {
            // What has left its window since the last sweep still holds its group.
            self.sweep_for_room(now);
            if !self.has_room_for_group(node, now) {
                return refused("full");
            }
        }
        let Some(number) = self.group(asking.group, now) else { return refused("full") };
        if self.nodes.get_mut(&node)?.speaks_of(number, now) {
            let group = self.groups.get_mut(&number)?;
            group.nodes.insert(node);
            let everywhere = group.keys.iter().filter(|(_, key)| key.everywhere);
            let keys: Vec<u64> = everywhere.map(|(key, _)| *key).collect();
            keys.into_iter().for_each(|key| self.learn(node, number, key, None));
        }
        Some((number, by))
    }

    /// Whether a node has room for one more group; if need be, one of its groups gives way.
    fn has_room_for_group(&mut self, node: u32, now: u64) -> bool {
        let Some(known) = self.nodes.get(&node) else { return false };
        if known.groups.len() < MAX_GROUPS.1 {
            return true;
        }
        let spare = known.spare(now);
        spare.into_iter().for_each(|spare| self.leave(node, spare));
        spare.is_some()
    }

    /// Sweeps to make room for a group. A sweep looks at every part: not once for each group that a node invents.
    fn sweep_for_room(&mut self, now: u64) {
        if now.abs_diff(self.swept) >= SWEEP_MILLIS {
            self.swept = now;
            self.sweep(now);
        }
    }

    /// A node does not count a group any more. Without a node and a key the group is gone: a node that names ever new ones has no more than
    /// its own share of them.
    fn leave(&mut self, node: u32, number: u32) {
        if let Some(known) = self.nodes.get_mut(&node) {
            known.groups.remove(&number);
        }
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.nodes.remove(&node);
        if group.nodes.is_empty() && group.keys.is_empty() {
            self.numbers.remove(&group.described);
            self.groups.remove(&number);
        }
    }

    /// Takes the count of a key.
    pub(crate) fn take_count(&mut self, number: u32, by: By, told: &KeyCount, now: u64) -> Option<()> {
        let group = self.groups.get_mut(&number)?;
        let (first, last) = group.window(now);
        if told.newest > last && !told.counts.is_empty() {
            return refused("clock");
        }
        if told.newest < first || told.counts.is_empty() {
            return Some(());
        }
        let cap = group.described.cap;
        self.merge(number, by, told.key, told.newest, first, |part| part.merge_count(told, cap));
        Some(())
    }

    /// Takes members of a set.
    pub(crate) fn take_members(&mut self, number: u32, by: By, told: &KeyMembers, now: u64) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        let ((first, last), cap) = (group.window(now), group.described.cap as usize);
        if told.slices.iter().any(|slice| (first..=last).contains(slice)) {
            self.merge(number, by, told.key, first, first, |part| part.merge_members(told, (first, last), cap));
        }
    }

    pub(crate) fn note_count(&mut self, group: &CountGroup, told: &KeyCount, now: u64) {
        if let Some(number) = self.group(group, now) {
            self.take_count(number, ASKED, told, now);
        }
    }

    pub(crate) fn note_members(&mut self, group: &CountGroup, told: &KeyMembers, now: u64) {
        if let Some(number) = self.group(group, now) {
            self.take_members(number, ASKED, told, now);
        }
    }

    /// The counts of all but one.
    pub(crate) fn others(&self, number: u32, by: By, key: u64) -> Option<KeyCount> {
        self.groups.get(&number)?.keys.get(&key)?.others(key, by)
    }

    /// How much of a budget nodes have taken without asking.
    pub(crate) fn unasked(&self, number: u32, key: u64, now: u64) -> u64 {
        let Some(group) = self.groups.get(&number) else { return 0 };
        group.keys.get(&key).map_or(0, |known| known.total(group.window(now).0, false))
    }

    /// The members of a set, of all nodes.
    pub(crate) fn all_members(&self, number: u32, key: u64, now: u64) -> Vec<u64> {
        let Some(group) = self.groups.get(&number) else { return Vec::new() };
        let known = group.keys.get(&key).map(|known| known.members_but(None, group.window(now).0));
        known.into_iter().flatten().collect()
    }

    /// What a node is to learn next, at most so many keys.
    pub(crate) fn news(&mut self, name: &str, link: u64, most: usize) -> Option<Vec<CountBatch>> {
        let number = *self.names.get(name)?;
        let node = self.nodes.get_mut(&number)?;
        if !node.is_served_by(link) || node.pending.is_empty() {
            return None;
        }
        let by = By { node: number, incarnation: node.incarnations.last().copied().unwrap_or_default() };
        let mut batches: HashMap<u32, CountBatch> = HashMap::new();
        for (number, key, member) in std::iter::from_fn(|| node.pending.pop_first()).take(most) {
            let Some(group) = self.groups.get(&number) else { continue };
            let Some(known) = group.keys.get(&key) else { continue };
            let fresh = || CountBatch { group: Some(group.described.clone()), ..CountBatch::default() };
            let batch = batches.entry(number).or_insert_with(fresh);
            if group.described.kind() != CountKind::Set {
                batch.counts.extend(known.others(key, by));
                continue;
            }
            let Some(slice) = known.slice_of(member, by) else { continue };
            match batch.members.last_mut() {
                Some(last) if last.key == key => {
                    last.members.push(member);
                    last.slices.push(slice);
                }
                _ => batch.members.push(KeyMembers { key, members: vec![member], slices: vec![slice] }),
            }
        }
        Some(batches.into_values().filter(|batch| !batch.counts.is_empty() || !batch.members.is_empty()).collect())
    }

    pub(crate) fn sweep(&mut self, now: u64) {
        let mut gone = Vec::new();
        for (number, group) in &self.groups {
            for (key, known) in &group.keys {
                let over = known.parts.iter().filter(|part| part.end() <= now);
                gone.extend(over.map(|part| (*number, *key, part.by)));
            }
        }
        gone.into_iter().for_each(|(number, key, by)| self.remove(number, key, by));
        let left =
            |(node, known): (&u32, &Node)| known.left(now).into_iter().map(|group| (*node, group)).collect::<Vec<_>>();
        let left: Vec<(u32, u32)> = self.nodes.iter().flat_map(left).collect();
        left.into_iter().for_each(|(node, group)| self.leave(node, group));
        let idle = |node: &Node| !node.has_links() && node.parts.is_empty();
        self.nodes.retain(|number, node| *number == ASKED.node || !idle(node));
        let nodes = &self.nodes;
        self.names.retain(|_, number| nodes.contains_key(number));
        for group in self.groups.values_mut() {
            group.nodes.retain(|number| nodes.contains_key(number));
        }
        self.groups.retain(|_, group| !group.keys.is_empty() || !group.nodes.is_empty());
        let groups = &self.groups;
        self.numbers.retain(|_, number| groups.contains_key(number));
        for kind in [CountKind::Window, CountKind::Budget, CountKind::Set] {
            let of_kind = self.groups.values().filter(|group| group.described.kind() == kind);
            let keys: usize = of_kind.map(|group| group.keys.len()).sum();
            metrics::gauge!("palisade_counts_keys", "kind" => word(kind)).set(u32::try_from(keys).unwrap_or(u32::MAX));
        }
    }

    fn node(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.names.get(name) {
            return Some(*number);
        }
        if self.nodes.len() > MAX_NODES {
            return None;
        }
        self.last.1 += 1;
        self.nodes.insert(self.last.1, Node::new());
        self.names.insert(name.into(), self.last.1);
        Some(self.last.1)
    }

    fn group(&mut self, described: &CountGroup, now: u64) -> Option<u32> {
        if let Some(number) = self.numbers.get(described) {
            return Some(*number);
        }
        if self.groups.len() >= MAX_GROUPS.0 {
            self.sweep_for_room(now);
        }
        if self.groups.len() >= MAX_GROUPS.0 {
            return None;
        }
        self.last.0 += 1;
        self.groups.insert(self.last.0, Group::new(described.clone()));
        self.numbers.insert(described.clone(), self.last.0);
        Some(self.last.0)
    }

    /// Changes a part, and notes which nodes are to learn of it.
    fn merge(
        &mut self,
        number: u32,
        by: By,
        key: u64,
        newest: u64,
        first: u64,
        change: impl FnOnce(&mut Part) -> Merged,
    ) {
        let (Some(group), Some(owner)) = (self.groups.get_mut(&number), self.nodes.get_mut(&by.node)) else { return };
        let described = &group.described;
        let known = group.keys.entry(key).or_default();
        let place = known.parts.iter().position(|part| part.by == by);
        let fresh = place.is_none();
        let place = place.unwrap_or_else(|| {
            known.parts.push(Part::new(by, described, newest));
            known.parts.len() - 1
        });
        let Some(part) = known.parts.get_mut(place) else { return };
        let merged = change(part);
        owner.parts.remove(&(part.rank, number, key, by));
        (owner.units, self.units) = (owner.units - part.units, self.units - part.units);
        part.weigh(described);
        owner.parts.insert((part.rank, number, key, by));
        (owner.units, self.units) = (owner.units + part.units, self.units + part.units);
        if fresh && let Some(known) = owner.groups.get_mut(&number) {
            known.parts += 1;
        }

        let total = match described.kind() {
            CountKind::Set if described.everywhere_from > 0 => known.members_but(None, first).len() as u64,
            CountKind::Set => 0,
            _ => known.total(first, true),
        };
        let from = u64::from(described.everywhere_from);
        let crossed = !known.everywhere && from > 0 && total >= from;
        known.everywhere |= crossed;
        let sharers = known.parts.iter().map(|part| part.by.node);
        let all = group.nodes.iter().copied().filter(|_| known.everywhere);
        let nodes: Vec<u32> = sharers.chain(all).filter(|node| *node != by.node).collect();
        if merged.changed {
            let members = (!crossed && described.kind() == CountKind::Set).then_some(merged.members.as_slice());
            nodes.iter().for_each(|node| self.learn(*node, number, key, members));
        }
        if fresh || merged.behind || crossed {
            self.learn(by.node, number, key, None);
        }
        self.make_room(by.node);
    }

    /// Notes that a node is to learn a key; of a set these members, or all.
    fn learn(&mut self, node: u32, number: u32, key: u64, members: Option<&[u64]>) {
        let (Some(group), Some(learner)) = (self.groups.get(&number), self.nodes.get_mut(&node)) else { return };
        let Some(known) = group.keys.get(&key) else { return };
        let by = By { node, incarnation: learner.incarnations.last().copied().unwrap_or_default() };
        let taken = match (group.described.kind(), members) {
            (CountKind::Set, Some(members)) => members.iter().all(|member| learner.is_to_learn((number, key, *member))),
            (CountKind::Set, None) => {
                known.members_but(Some(by), 0).into_iter().all(|member| learner.is_to_learn((number, key, member)))
            }
            _ => !known.parts.iter().any(|part| part.by != by) || learner.is_to_learn((number, key, 0)),
        };
        if !taken {
            let _dropped: Option<()> = refused("pending");
        }
    }

    /// A node is to learn everything that others have counted of its keys.
    fn learn_all(&mut self, node: u32) {
        let Some(learner) = self.nodes.get(&node) else { return };
        let own = learner.parts.iter().map(|(_, number, key, _)| (*number, *key));
        let everywhere = learner.groups.keys().filter_map(|number| Some((*number, self.groups.get(number)?)));
        let everywhere = everywhere.flat_map(|(number, group)| {
            let keys = group.keys.iter().filter(|(_, key)| key.everywhere);
            keys.map(move |(key, _)| (number, *key))
        });
        let keys: Vec<(u32, u64)> = own.chain(everywhere).collect();
        keys.into_iter().for_each(|(number, key)| self.learn(node, number, key, None));
    }

    /// Removes parts until what is left is within the room: those of this node, then those of the node that has most.
    fn make_room(&mut self, node: u32) {
        let units = |state: &Self, node: u32| state.nodes.get(&node).map_or(0, |node| node.units);
        while units(self, node) > self.room.of_node {
            self.evict(node);
        }
        while self.units > self.room.all {
            let Some((largest, _)) = self.nodes.iter().max_by_key(|(_, node)| node.units) else { return };
            self.evict(*largest);
        }
    }

    fn evict(&mut self, node: u32) {
        let lightest = self.nodes.get(&node).and_then(|node| node.parts.first().copied());
        let Some((_, number, key, by)) = lightest else { return };
        if let Some(group) = self.groups.get(&number) {
            metrics::counter!("palisade_counts_evicted_total", "kind" => word(group.described.kind())).increment(1);
        }
        self.remove(number, key, by);
    }

    /// Removes a part.
    fn remove(&mut self, number: u32, key: u64, by: By) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        let Some(known) = group.keys.get_mut(&key) else { return };
        let removed = known.parts.extract_if(.., |part| part.by == by);
        for part in removed.collect::<Vec<_>>() {
            if let Some(owner) = self.nodes.get_mut(&by.node) {
                owner.parts.remove(&(part.rank, number, key, by));
                owner.units -= part.units;
                if let Some(known) = owner.groups.get_mut(&number) {
                    known.parts = known.parts.saturating_sub(1);
                }
            }
            self.units -= part.units;
        }
        if group.keys.get(&key).is_some_and(|known: &Key| known.parts.is_empty()) {
            group.keys.remove(&key);
        }
    }

    /// Forgets all parts of an earlier start of a gateway.
    fn forget(&mut self, by: By) {
        let parts = self.nodes.get(&by.node).into_iter().flat_map(|node| &node.parts);
        let parts: Vec<(u32, u64)> = parts.filter(|part| part.3 == by).map(|part| (part.1, part.2)).collect();
        parts.into_iter().for_each(|(number, key)| self.remove(number, key, by));
    }

    #[cfg(test)]
    pub(crate) fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    #[cfg(test)]
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Those that have counted something.
    #[cfg(test)]
    pub(crate) fn nodes(&self) -> usize {
        self.names.len()
    }

    #[cfg(test)]
    pub(crate) fn units_of(&self, node: &str) -> u64 {
        self.names.get(node).and_then(|number| self.nodes.get(number)).map_or(0, |node| node.units)
    }

    /// What all parts take, and how many keys there are.
    #[cfg(test)]
    pub(crate) fn units(&self) -> (u64, usize) {
        let keys = self.groups.values().map(|group| group.keys.len()).sum();
        let parts: u64 = self.nodes.values().map(|node| node.units).sum();
        assert_eq!(parts, self.units);
        (self.units, keys)
    }
}

fn refused<T>(reason: &'static str) -> Option<T> {
    metrics::counter!("palisade_counts_refused_total", "reason" => reason).increment(1);
    None
}

/// The kind as a label.
fn word(kind: CountKind) -> &'static str {
    match kind {
        CountKind::Window => "window",
        CountKind::Budget => "budget",
        CountKind::Set => "set",
    }
}
