//! Rules by what updates, removals and jumps name them by. A document may have as many of those as it has rules: each is
//! looked up, and none walks over all rules.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ids::IdRanges;
use super::rules::Draft;
use crate::id_set::IdSet;

/// Rules chosen by an update or a removal.
#[derive(Debug)]
pub(super) enum Selection {
    Ids(IdRanges),
    Tag(Vec<u8>),
    Msg(Vec<u8>),
}

/// The places of rules in the text, ascending.
#[derive(Default)]
pub(super) struct RuleIndex {
    ids: BTreeMap<u64, Vec<usize>>,
    tags: HashMap<Vec<u8>, Vec<usize>>,
    msgs: HashMap<Vec<u8>, Vec<usize>>,
}

/// What all removals together select.
#[derive(Default)]
pub(super) struct Removed<'a> {
    ids: IdSet,
    tags: HashSet<&'a [u8]>,
    msgs: HashSet<&'a [u8]>,
}

impl RuleIndex {
    pub(super) fn of(rules: &[Draft]) -> Self {
        let mut index = Self::default();
        for (at, Draft { actions, .. }) in rules.iter().enumerate() {
            if let Some(id) = actions.id {
                index.ids.entry(id).or_default().push(at);
            }
            for tag in &actions.tags {
                index.tags.entry(tag.clone()).or_default().push(at);
            }
            if let Some(msg) = &actions.msg {
                index.msgs.entry(msg.clone()).or_default().push(at);
            }
        }
        index
    }

    /// The rules that are selected, each once.
    pub(super) fn selected(&self, selection: &Selection) -> Vec<usize> {
        let named = match selection {
            Selection::Ids(ids) => return self.with_ids(ids),
            Selection::Tag(tag) => self.tags.get(tag),
            Selection::Msg(msg) => self.msgs.get(msg),
        };
        let mut rules = named.cloned().unwrap_or_default();
        // A rule may have a tag twice.
        rules.dedup();
        rules
    }

    /// The rules with these ids, each once.
    pub(super) fn with_ids(&self, ids: &IdRanges) -> Vec<usize> {
        let ranges = ids.0.iter().flat_map(|range| self.ids.range(range.first..=range.last));
        let mut rules: Vec<usize> = ranges.flat_map(|(_, rules)| rules.iter().copied()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// The first rule with this id.
    pub(super) fn first(&self, id: u64) -> Option<usize> {
        self.ids.get(&id)?.first().copied()
    }
}

impl<'a> Removed<'a> {
    pub(super) fn by(removals: &'a [Selection]) -> Self {
        let mut removed = Self::default();
        for removal in removals {
            match removal {
                Selection::Ids(ids) => ids.0.iter().for_each(|range| removed.ids.insert(*range)),
                Selection::Tag(tag) => _ = removed.tags.insert(tag),
                Selection::Msg(msg) => _ = removed.msgs.insert(msg),
            }
        }
        removed
    }

    pub(super) fn has(&self, rule: &Draft) -> bool {
        let actions = &rule.actions;
        actions.id.is_some_and(|id| self.ids.contains(id))
            || actions.tags.iter().any(|tag| self.tags.contains(tag.as_slice()))
            || actions.msg.as_ref().is_some_and(|msg| self.msgs.contains(msg.as_slice()))
    }
}
