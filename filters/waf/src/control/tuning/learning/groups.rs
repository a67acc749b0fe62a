//! Who stands behind entries, on their paths and on all paths together.

use std::collections::{BTreeMap, BTreeSet};

use super::super::exclusion::ExclusionKind;
use super::super::shape::{Condition, Shape};
use super::super::target::Target;
use super::super::windows::{Entry, Window, networks};
use crate::samples::messages::ValueShape;
use crate::samples::shape;

/// From how many callers: one alone cannot make a proposal.
pub(super) const MIN_CALLERS: usize = 3;
/// From how many networks, unless all matches of the window come from one: addresses of one are cheap.
const MIN_NETWORKS: usize = 2;
/// From how many paths an exclusion for all paths is tried first.
const MANY_PATHS: usize = 3;
/// The callers whose values are described, of all paths of a group, at most.
const MAX_SHAPES: usize = 64;

/// How many networks it takes, where a window has seen callers of so many.
pub(super) fn networks_needed(seen: usize) -> usize {
    seen.min(MIN_NETWORKS)
}

/// Whether what these callers send is not the doing of a few.
pub(super) fn are_enough(callers: &BTreeSet<u64>, networks_needed: usize) -> bool {
    callers.len() >= MIN_CALLERS && networks(callers.iter()) >= networks_needed
}

/// The entries of a rule at an input, on all paths.
#[derive(Default)]
struct Group {
    paths: usize,
    callers: BTreeSet<u64>,
    /// What the values look like, on all paths.
    shapes: Vec<ValueShape>,
}

/// All of them. The case of names does not count in rules.
pub(super) struct Groups {
    of: BTreeMap<(u64, String), Group>,
    networks_needed: usize,
}

impl Groups {
    pub(super) fn of(window: &Window, entries: &[&Entry]) -> Self {
        let mut of: BTreeMap<_, Group> = BTreeMap::new();
        for entry in entries {
            let group = of.entry(group_key(entry)).or_default();
            group.paths += 1;
            group.callers.extend(&entry.callers);
            entry.shapes.iter().for_each(|one| shape::add(&mut group.shapes, *one, MAX_SHAPES));
        }
        Self { of, networks_needed: networks_needed(window.networks()) }
    }

    /// Why nothing is proposed for an entry; `None` if something may be.
    pub(super) fn refused(&self, entry: &Entry) -> Option<String> {
        if self.is_sent_on_path(entry) || self.is_on_many_paths(entry) {
            return None;
        }
        Some(format!(
            "not proposed: {} callers of {} networks have sent it, those with other signs left out; what fewer than {MIN_CALLERS} of {} networks \
             send may be an attack",
            entry.callers.len(),
            entry.networks(),
            self.networks_needed
        ))
    }

    /// Whether enough callers have sent it on its path.
    pub(super) fn is_sent_on_path(&self, entry: &Entry) -> bool {
        self.are_enough(&entry.callers.iter().copied().collect())
    }

    /// Whether the rule matches at the input on many paths, and enough callers have sent that.
    fn is_on_many_paths(&self, entry: &Entry) -> bool {
        let group = self.of.get(&group_key(entry));
        group.is_some_and(|group| group.paths >= MANY_PATHS && self.are_enough(&group.callers))
    }

    fn are_enough(&self, callers: &BTreeSet<u64>) -> bool {
        are_enough(callers, self.networks_needed)
    }

    /// Under what an exclusion on the path of an entry, and one for all paths, might hold. `phase` is that of the rule.
    pub(super) fn conditions(&self, entry: &Entry, target: &Target, phase: u32) -> [Option<Condition>; 2] {
        let group = self.of.get(&group_key(entry));
        let of = |shapes: &[ValueShape]| {
            let shape = Shape::of(shapes, target, |callers| self.are_enough(callers))?;
            Some(Condition { shape, phase })
        };
        [of(&entry.shapes), group.and_then(|group| of(&group.shapes))]
    }

    /// The exclusions to try, the first that is safe is taken: the narrowest first, unless the same is wanted on many paths; those that hold
    /// for some values alone come last, because what is sent tomorrow may look otherwise.
    pub(super) fn kinds(&self, entry: &Entry, [on_path, on_all]: [Option<Condition>; 2]) -> Vec<ExclusionKind> {
        let (is_on_all, is_on_path) = (self.is_on_many_paths(entry), self.is_sent_on_path(entry));
        let kinds = [
            (ExclusionKind::UpdateTarget, is_on_all),
            (ExclusionKind::ScopedTarget, is_on_path),
            (ExclusionKind::Shape, is_on_all && on_all.is_some()),
            (ExclusionKind::ScopedShape, is_on_path && on_path.is_some()),
        ];
        kinds.into_iter().filter_map(|(kind, is_tried)| is_tried.then_some(kind)).collect()
    }
}

pub(super) fn group_key(entry: &Entry) -> (u64, String) {
    (entry.rule_id, entry.target.to_ascii_lowercase())
}
