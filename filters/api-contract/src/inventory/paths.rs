//! The paths outside of the contract of one route: folded, bounded, and those that exist before those that do not.
//!
//! Workers and the control plane keep the same structure, so that a bound holds on both sides of the link.

use std::collections::{BTreeMap, BTreeSet};

use exchange::fold::{ID, SLUG, is_slug};

/// The paths of a route, at most; what is beyond them is counted as other paths.
pub const MAX_PATHS: usize = 200;
/// So many names of the shape of a slug at one place are one.
const MAX_SLUGS: usize = 8;
/// So many names of any shape at one place are one.
const MAX_NAMES: usize = 50;

/// The places of a route whose names are one, at most.
const MAX_FOLDS: usize = 2 * MAX_PATHS;

/// What is counted of a path.
pub trait PathCounts: Default {
    /// Adds the counts of another path, which is the same one from now on.
    fn merge(&mut self, other: Self);
    /// Whether the backend has answered with a 2xx: the path exists.
    fn exists(&self) -> bool;
    /// How much is lost where it gives way.
    fn weight(&self) -> u64;
}

/// A method and a folded path.
pub type PathKey = (String, String);

/// The paths of a route.
#[derive(Debug, Default)]
pub struct PathBook<V> {
    records: BTreeMap<PathKey, V>,
    /// The places, as paths in front of them, whose names are one; true where names of any shape are.
    folds: BTreeMap<String, bool>,
    /// What has no record of its own.
    other: V,
    /// Records that are gone or new since the last call of [`PathBook::take_changed`].
    changed: bool,
}

impl<V: PathCounts> PathBook<V> {
    /// The counts of a path; those of the other paths where there is no room. `exists` says that the backend has just answered with a
    /// 2xx.
    pub fn get(&mut self, method: &str, path: &str, exists: bool, most: usize) -> &mut V {
        let mut key = (method.to_owned(), self.refold(path));
        if !self.records.contains_key(&key) {
            if exists && self.fold_where_many(&key.1) {
                key.1 = self.refold(path);
            }
            if !self.records.contains_key(&key) {
                if self.records.len() >= most.min(MAX_PATHS) && !(exists && self.give_way()) {
                    return &mut self.other;
                }
                self.changed = true;
            }
        }
        self.records.entry(key).or_default()
    }

    /// The counts of the other paths.
    pub fn other(&mut self) -> &mut V {
        &mut self.other
    }

    /// The counts of the other paths, to read.
    #[must_use]
    pub fn rest(&self) -> &V {
        &self.other
    }

    /// All paths, by method and path.
    pub fn iter(&self) -> impl Iterator<Item = (&PathKey, &V)> {
        self.records.iter()
    }

    /// The same, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&PathKey, &mut V)> {
        self.records.iter_mut()
    }

    /// How many paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Keeps those that `keep` is true of.
    pub fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        self.records.retain(|_, counts| keep(counts));
    }

    /// Puts a record in as it was stored.
    pub fn restore(&mut self, method: &str, path: &str, counts: V) {
        if self.records.len() < MAX_PATHS {
            self.records.entry((method.to_owned(), path.to_owned())).or_default().merge(counts);
        } else {
            self.other.merge(counts);
        }
    }

    /// The places whose names are one, as paths in front of them, and whether names of any shape are.
    pub fn folds(&self) -> impl Iterator<Item = (&str, bool)> {
        self.folds.iter().map(|(prefix, any)| (prefix.as_str(), *any))
    }

    /// Puts such a place in as it was stored.
    pub fn restore_fold(&mut self, prefix: String, any: bool) {
        if self.folds.len() < MAX_FOLDS {
            self.folds.insert(prefix, any);
        }
    }

    /// A path with the names folded at the places where they are one.
    fn refold(&self, path: &str) -> String {
        if self.folds.is_empty() {
            return path.to_owned();
        }
        let mut folded = String::new();
        for segment in path.split('/').skip(1) {
            let one = match self.folds.get(&folded) {
                Some(any) => segment != ID && (*any || is_slug(segment)),
                None => false,
            };
            folded.push('/');
            folded.push_str(if one { SLUG } else { segment });
        }
        folded
    }

    /// Looks at each place of a path that exists whether there are too many names; whether any was folded for it.
    fn fold_where_many(&mut self, path: &str) -> bool {
        let mut folded = false;
        let mut prefix = String::new();
        for segment in path.split('/').skip(1) {
            let (mut slugs, mut names) = (BTreeSet::new(), BTreeSet::new());
            let known = self.records.iter().filter(|(_, counts)| counts.exists());
            let known = known.filter_map(|((_, known), _)| known.strip_prefix(&prefix)?.strip_prefix('/'));
            for name in known.filter_map(|rest| rest.split('/').next()).chain([segment]) {
                if name == ID || name == SLUG || name.is_empty() {
                    continue;
                }
                names.insert(name);
                if is_slug(name) {
                    slugs.insert(name);
                }
            }
            let any = names.len() > MAX_NAMES;
            if (any || slugs.len() > MAX_SLUGS) && self.folds.len() < MAX_FOLDS {
                self.fold_at(&prefix, any);
                folded = true;
                // The places behind it are other ones now.
                break;
            }
            prefix.push('/');
            prefix.push_str(segment);
        }
        folded
    }

    fn fold_at(&mut self, prefix: &str, any: bool) {
        let known = self.folds.entry(prefix.to_owned()).or_insert(any);
        *known |= any;
        self.changed = true;
        for ((method, path), counts) in std::mem::take(&mut self.records) {
            let path = self.refold(&path);
            self.records.entry((method, path)).or_default().merge(counts);
        }
    }

    /// Makes room for a path that exists: the least of those that do not becomes one of the others. False where all exist.
    fn give_way(&mut self) -> bool {
        let probes = self.records.iter().filter(|(_, counts)| !counts.exists());
        let Some(key) = probes.min_by_key(|(_, counts)| counts.weight()).map(|(key, _)| key.clone()) else {
            return false;
        };
        if let Some(counts) = self.records.remove(&key) {
            self.other.merge(counts);
        }
        true
    }

    /// Whether a record has come or gone since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Hits(u64, bool);

    impl PathCounts for Hits {
        fn merge(&mut self, other: Self) {
            self.0 += other.0;
            self.1 |= other.1;
        }

        fn exists(&self) -> bool {
            self.1
        }

        fn weight(&self) -> u64 {
            self.0
        }
    }

    fn hit(book: &mut PathBook<Hits>, path: &str, exists: bool) {
        let counts = book.get("GET", path, exists, MAX_PATHS);
        counts.0 += 1;
        counts.1 |= exists;
    }

    fn paths(book: &PathBook<Hits>) -> Vec<(&str, u64)> {
        book.iter().map(|((_, path), counts)| (path.as_str(), counts.0)).collect()
    }

    #[test]
    fn many_slugs_at_one_place_are_one_and_other_names_stay() {
        let mut book = PathBook::default();
        hit(&mut book, "/blog/archive", true);
        for number in 0..20_u8 {
            hit(&mut book, &format!("/blog/how-to-{}/comments", char::from(b'a' + number)), true);
        }
        hit(&mut book, "/blog/how-to-a/comments", true);
        hit(&mut book, "/shop/summer-sale-now", true);
        let expected = [("/blog/archive", 1), ("/blog/{slug}/comments", 21), ("/shop/summer-sale-now", 1)];
        assert_eq!(paths(&book), expected);
    }

    #[test]
    fn names_of_any_shape_are_one_where_there_are_very_many() {
        let mut book = PathBook::default();
        let name = |number: u8| format!("/u/{}{}", char::from(b'a' + number % 26), char::from(b'a' + number / 26));
        (0..50_u8).for_each(|number| hit(&mut book, &name(number), true));
        assert_eq!(book.len(), 50);
        (50..120_u8).for_each(|number| hit(&mut book, &name(number), true));
        assert_eq!(paths(&book), [("/u/{slug}", 120)]);
    }

    #[test]
    fn what_does_not_exist_folds_nothing_and_gives_way_to_what_does() {
        let mut book = PathBook::default();
        (0..1000).for_each(|number| hit(&mut book, &format!("/wp-{number}-x-php"), false));
        assert_eq!((book.len(), book.rest().0), (MAX_PATHS, 800));
        hit(&mut book, "/admin", true);
        assert_eq!((book.len(), book.rest().0), (MAX_PATHS, 801));
        assert!(paths(&book).contains(&("/admin", 1)));
        let all: u64 = book.iter().map(|(_, counts)| counts.0).sum();
        assert_eq!(all + book.rest().0, 1001);
    }

    #[test]
    fn a_path_that_was_folded_stays_so_when_it_is_stored_and_read() {
        let mut book = PathBook::default();
        book.restore("GET", "/blog/{slug}", Hits(5, true));
        book.restore_fold("/blog".to_owned(), false);
        hit(&mut book, "/blog/how-to-swim", true);
        assert_eq!(paths(&book), [("/blog/{slug}", 6)]);
    }
}
