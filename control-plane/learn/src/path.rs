//! Paths as a tree: words of the API, and at each place one parameter for what is no word.

use std::collections::BTreeMap;

use crate::operation::Operation;
use crate::parameter::Parameter;
use crate::segment::is_value;
use crate::{Room, decode};

/// The segments of a path, at most; longer ones are not learned.
const MAX_SEGMENTS: usize = 32;
/// The words of one place that are kept at once; beyond them they are values.
const MAX_WORDS: usize = 512;

/// A place in the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) words: BTreeMap<String, Node>,
    pub(crate) parameter: Option<Box<Slot>>,
    pub(crate) operations: BTreeMap<&'static str, Operation>,
}

/// A parameter of a path, and what is behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) values: Parameter,
    pub(crate) node: Node,
}

impl Node {
    /// The node of a path; it is made if there is room.
    pub(crate) fn place(&mut self, path: &[u8], room: &mut Room) -> Option<&mut Node> {
        if path.split(|byte| *byte == b'/').count() > MAX_SEGMENTS + 1 {
            return None;
        }
        let mut node = self;
        for raw in path.split(|byte| *byte == b'/').skip(1) {
            let segment = decode(raw);
            let word = std::str::from_utf8(&segment).ok().filter(|_| !is_value(&segment));
            let Some(word) = word else {
                node = node.value(&segment, room)?;
                continue;
            };
            if !node.words.contains_key(word) {
                if node.words.len() >= MAX_WORDS {
                    node.shrink(room);
                }
                if node.is_open() {
                    node = node.value(&segment, room)?;
                    continue;
                }
                if !room.take() {
                    return None;
                }
            }
            node = node.words.entry(word.to_owned()).or_default();
        }
        Some(node)
    }

    /// The node of a path, if it is known.
    pub(crate) fn known(&mut self, path: &[u8]) -> Option<&mut Node> {
        let mut node = self;
        for raw in path.split(|byte| *byte == b'/').skip(1) {
            let segment = decode(raw);
            let word =
                std::str::from_utf8(&segment).ok().filter(|word| node.words.contains_key(*word)).map(str::to_owned);
            node = match word {
                Some(word) => node.words.get_mut(&word)?,
                None => &mut node.parameter.as_mut()?.node,
            };
        }
        Some(node)
    }

    fn value(&mut self, segment: &[u8], room: &mut Room) -> Option<&mut Node> {
        if self.parameter.is_none() && !room.take() {
            return None;
        }
        let slot = self.parameter.get_or_insert_default();
        slot.values.carriers += 1;
        slot.values.observe(segment, 1);
        Some(&mut slot.node)
    }

    /// Whether words were folded here for their number.
    fn is_open(&self) -> bool {
        self.words.len() >= MAX_WORDS
    }

    /// Folds the rarer half of the words into the parameter.
    fn shrink(&mut self, room: &mut Room) {
        let mut counts: Vec<u64> = self.words.values().map(Node::requests).collect();
        counts.sort_unstable();
        let bar = counts.get(counts.len() / 2).copied().unwrap_or_default();
        let rare: Vec<String> = self
            .words
            .iter()
            .filter(|(word, node)| !word.is_empty() && node.requests() <= bar)
            .map(|(word, _)| word.clone())
            .collect();
        for word in rare {
            self.fold_word(&word, room);
        }
    }

    /// Makes a value of a word.
    pub(crate) fn fold_word(&mut self, word: &str, room: &mut Room) {
        let Some(node) = self.words.remove(word) else { return };
        room.give(1);
        let slot = self.parameter.get_or_insert_default();
        let requests = node.requests();
        slot.values.carriers += requests;
        slot.values.observe(word.as_bytes(), requests.max(1));
        slot.node.merge(node, room);
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut Room) {
        for (word, node) in other.words {
            if self.words.contains_key(&word) {
                room.give(1);
            }
            self.words.entry(word).or_default().merge(node, room);
        }
        if let Some(slot) = other.parameter {
            if self.parameter.is_some() {
                room.give(1);
            }
            let own = self.parameter.get_or_insert_default();
            own.values.merge(slot.values);
            own.node.merge(slot.node, room);
        }
        for (method, operation) in other.operations {
            if self.operations.contains_key(method) {
                room.give(1);
            }
            self.operations.entry(method).or_default().merge(operation, room);
        }
    }

    /// The requests of this place and all behind it.
    pub(crate) fn requests(&self) -> u64 {
        let own: u64 = self.operations.values().map(|operation| operation.requests).sum();
        let words: u64 = self.words.values().map(Node::requests).sum();
        own + words + self.parameter.as_ref().map_or(0, |slot| slot.node.requests())
    }
}
