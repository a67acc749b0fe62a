//! Changes counted by a name that requests have in common.

use std::collections::BTreeMap;

use super::{Group, Kind};

/// Different names that are counted; those beyond are counted under [`OTHERS`].
const NAMES: usize = 4_096;
/// The name of all that were too many.
const OTHERS: &str = "(others)";

/// Counts by name.
#[derive(Debug, Default)]
pub(super) struct Groups {
    named: BTreeMap<String, Group>,
}

impl Groups {
    pub(super) fn add(&mut self, name: &str, kind: Kind) {
        let name = if self.named.len() < NAMES || self.named.contains_key(name) { name } else { OTHERS };
        let group = self.named.entry(name.to_owned()).or_default();
        group.changed += 1;
        *match kind {
            Kind::Failed => &mut group.failed,
            Kind::Blocked => &mut group.blocked,
            Kind::Unblocked => &mut group.unblocked,
            Kind::Answer => &mut group.answer,
            Kind::Score => &mut group.score,
            Kind::Rules => &mut group.rules,
        } += 1;
    }

    /// Those with the most changes, the first by name among equals.
    pub(super) fn most(self, most: usize) -> Vec<Group> {
        let mut groups: Vec<Group> = self.named.into_iter().map(|(name, group)| Group { name, ..group }).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.changed));
        groups.truncate(most);
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_by_kind_and_bounded() {
        let mut groups = Groups::default();
        for (name, kind) in [("shop", Kind::Score), ("", Kind::Blocked), ("shop", Kind::Blocked), ("api", Kind::Rules)]
        {
            groups.add(name, kind);
        }
        let shown: Vec<_> =
            groups.most(2).into_iter().map(|group| (group.name, group.changed, group.blocked, group.score)).collect();
        assert_eq!(shown, [("shop".to_owned(), 2, 1, 1), (String::new(), 1, 1, 0)]);
        let mut many = Groups::default();
        (0..NAMES + 10).for_each(|number| many.add(&number.to_string(), Kind::Failed));
        assert_eq!(many.named.len(), NAMES + 1);
        assert_eq!(many.named[OTHERS].failed, 10);
    }
}
