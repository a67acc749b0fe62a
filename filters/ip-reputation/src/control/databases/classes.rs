//! Which class a network is of.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use std::collections::HashMap;

use super::super::AsnCategory;
use super::networks::{Network, Networks};

/// The classes of a database: the first that matches applies.
pub(super) struct Classifier {
    /// The first class that has a number.
    numbers: HashMap<u32, usize>,
    /// Parts of names of owners, in lower case.
    parts: AhoCorasick,
    /// The class of each part.
    classes: Vec<usize>,
}

impl Classifier {
    /// What finds these classes.
    ///
    /// # Errors
    /// There are too many parts of names; for people.
    pub(super) fn new(categories: &[AsnCategory]) -> Result<Classifier, String> {
        let (mut numbers, mut parts, mut classes) = (HashMap::new(), Vec::new(), Vec::new());
        for (class, category) in categories.iter().enumerate() {
            for number in &category.asns {
                numbers.entry(*number).or_insert(class);
            }
            parts.extend(category.org_contains.iter().map(|part| part.to_lowercase()));
            classes.resize(parts.len(), class);
        }
        let parts = AhoCorasickBuilder::new().build(&parts);
        let parts = parts.map_err(|_| "the classes of networks have too many parts of names".to_owned())?;
        Ok(Classifier { numbers, parts, classes })
    }

    /// The place of the class of a network; `None` if it is of none. It agrees with [`AsnCategory::has`].
    fn class_of(&self, network: &Network) -> Option<usize> {
        let by_number = self.numbers.get(&network.number).copied();
        let owner = network.owner.to_lowercase();
        let found = self.parts.find_overlapping_iter(&owner);
        let by_name = found.filter_map(|found| self.classes.get(found.pattern().as_usize()).copied());
        by_name.chain(by_number).min()
    }

    /// The classes of all networks of a database, in their order.
    pub(super) fn classes_of(&self, networks: &Networks) -> Vec<Option<usize>> {
        networks.all().iter().map(|network| self.class_of(network)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::AsnDatabase;
    use super::*;

    fn class(classifier: &Classifier, categories: &[AsnCategory], number: u32, owner: &str) -> Option<String> {
        let class = classifier.class_of(&Network::new(number, None, owner))?;
        categories.get(class).map(|category| category.name.clone())
    }

    #[test]
    fn the_first_class_that_matches_applies() {
        let categories = AsnDatabase::default().categories;
        let classifier = Classifier::new(&categories).unwrap();
        let class = |number, owner: &str| class(&classifier, &categories, number, owner);
        assert_eq!(class(64496, "CLOUDFLARENET").as_deref(), Some("cdn"), "hosting has `cloud` too, and comes later");
        assert_eq!(class(13335, "").as_deref(), Some("cdn"));
        assert_eq!(class(64496, "Some Cloud VPN Ltd").as_deref(), Some("vpn"));
        assert_eq!(class(9009, "Amazon").as_deref(), Some("vpn"));
        assert_eq!(class(16509, "A").as_deref(), Some("hosting"));
        assert_eq!(class(64496, "HETZNER-AS, DE").as_deref(), Some("hosting"));
        assert_eq!((class(64496, "Example Telecom"), class(64496, "")), (None, None));
        let none = Classifier::new(&[]).unwrap();
        assert_eq!(none.class_of(&Network::new(13335, None, "CLOUDFLARENET")), None);
    }

    #[test]
    fn classes_agree_with_a_naive_search() {
        let category = |name: &str, parts: &[&str], asns: &[u32]| AsnCategory {
            name: name.to_owned(),
            weight: 1.0,
            action: crate::control::AsnAction::Monitor,
            tag: String::new(),
            org_contains: parts.iter().map(|part| (*part).to_owned()).collect(),
            asns: asns.to_vec(),
        };
        let categories = [
            category("a", &["ab", "É"], &[3]),
            category("b", &["a", "bc"], &[1, 3]),
            category("c", &["ABC", "c"], &[2]),
        ];
        let classifier = Classifier::new(&categories).unwrap();
        for number in 0..4 {
            for owner in ["", "abc", "ABC", "xbc", "c", "é", "É", "zz", "b a", "cab"] {
                let lower = owner.to_lowercase();
                let naive = categories.iter().find(|category| category.has(number, &lower));
                let naive = naive.map(|category| category.name.clone());
                assert_eq!(class(&classifier, &categories, number, owner), naive, "{number} {owner}");
            }
        }
    }
}
