//! Who or what comes up most, in bounded memory: the space-saving sketch of Metwally, Agrawal and El Abbadi.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// What comes up most, the most frequent first, ties by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    /// How many different ones there were; "at least" where `exact` is false.
    pub distinct: u64,
    /// Whether the counts are exact. They are until there are more different ones than there are counters; from then on
    /// they are lower bounds, and rare ones may be missing.
    pub exact: bool,
    /// The most frequent ones.
    pub entries: Vec<Counted>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Its name; a rule's id.
    pub name: String,
    /// More about it: a rule's message, or what its messages begin with and an ellipsis where they differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The requests that it comes up in.
    pub count: u64,
    /// Those of them that were blocked.
    pub blocked: u64,
}

/// Counters for at most `limit` different keys.
#[derive(Debug)]
pub(crate) struct Sketch<K> {
    limit: usize,
    places: HashMap<K, usize>,
    counters: Vec<Counter<K>>,
    /// The counters by what they say, the lowest first; only kept from when they are all taken and one is wanted.
    order: Option<BTreeSet<(u64, usize)>>,
}

#[derive(Debug)]
struct Counter<K> {
    key: K,
    label: String,
    /// Whether the label is only what several begin with.
    varies: bool,
    /// At most this often.
    count: u64,
    /// What of `count` may belong to keys that had this counter before.
    doubt: u64,
    blocked: u64,
}

impl<K: Clone + Ord + Hash + Display> Sketch<K> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), places: HashMap::new(), counters: Vec::new(), order: None }
    }

    /// Counts a request with this key.
    pub(crate) fn add<Q>(&mut self, key: &Q, label: &str, blocked: bool)
    where
        K: Borrow<Q>,
        Q: ?Sized + Hash + Eq + ToOwned<Owned = K>,
    {
        if let Some(&place) = self.places.get(key) {
            self.count(place, blocked);
            self.counters[place].label(label);
        } else if self.counters.len() < self.limit {
            self.places.insert(key.to_owned(), self.counters.len());
            let (key, label) = (key.to_owned(), label.to_owned());
            self.counters.push(Counter { key, label, varies: false, count: 1, doubt: 0, blocked: u64::from(blocked) });
        } else {
            self.take_over(key.to_owned(), label, blocked);
        }
    }

    fn count(&mut self, place: usize, blocked: bool) {
        let counter = &mut self.counters[place];
        if let Some(order) = &mut self.order {
            order.remove(&(counter.count, place));
            order.insert((counter.count + 1, place));
        }
        counter.count += 1;
        counter.blocked += u64::from(blocked);
    }

    /// Gives the lowest counter to a new key: it may have come up as often as that says, before it was noticed.
    fn take_over(&mut self, key: K, label: &str, blocked: bool) {
        let counters = &self.counters;
        let order = self.order.get_or_insert_with(|| {
            counters.iter().enumerate().map(|(place, counter)| (counter.count, place)).collect()
        });
        let Some((count, place)) = order.pop_first() else { return };
        order.insert((count + 1, place));
        let counter = &mut self.counters[place];
        self.places.remove(&counter.key);
        self.places.insert(key.clone(), place);
        *counter = Counter {
            key,
            label: label.to_owned(),
            varies: false,
            count: count + 1,
            doubt: count,
            blocked: u64::from(blocked),
        };
    }

    /// How many keys are held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.counters.len().max(self.places.len()).max(self.order.as_ref().map_or(0, BTreeSet::len))
    }

    /// The `most` most frequent ones.
    pub(crate) fn top(&self, most: usize) -> Top {
        let mut counters: Vec<_> = self.counters.iter().collect();
        counters.sort_by(|a, b| (b.count - b.doubt).cmp(&(a.count - a.doubt)).then_with(|| a.key.cmp(&b.key)));
        let entries = counters.iter().take(most).map(|counter| Counted {
            name: counter.key.to_string(),
            label: if counter.varies { format!("{}\u{2026}", counter.label) } else { counter.label.clone() },
            count: counter.count - counter.doubt,
            blocked: counter.blocked,
        });
        Top { distinct: counters.len() as u64, exact: self.order.is_none(), entries: entries.collect() }
    }
}

impl<K> Counter<K> {
    /// Takes another label. What rules say has values of the request in it, and the first request's would mislead.
    fn label(&mut self, label: &str) {
        if label.is_empty() || self.label == label {
            return;
        }
        if self.label.is_empty() && !self.varies {
            label.clone_into(&mut self.label);
            return;
        }
        let common = self.label.chars().zip(label.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        self.label.truncate(common);
        self.varies = true;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fixture::Dice;

    #[test]
    fn below_the_limit_all_is_exact() {
        let mut dice = Dice(7);
        for limit in [1, 5, 64] {
            let mut sketch = Sketch::<String>::new(limit);
            let mut truth = BTreeMap::<String, (u64, u64)>::new();
            for _ in 0..2_000 {
                let (key, blocked) = (format!("k{}", dice.below(limit as u64)), dice.below(3) == 0);
                sketch.add(key.as_str(), "", blocked);
                let entry = truth.entry(key).or_default();
                entry.0 += 1;
                entry.1 += u64::from(blocked);
            }
            let mut truth: Vec<_> = truth.into_iter().collect();
            truth.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
            let top = sketch.top(usize::MAX);
            assert!(top.exact);
            let found: Vec<_> = top.entries.into_iter().map(|e| (e.name, (e.count, e.blocked))).collect();
            assert_eq!(found, truth);
        }
    }

    #[test]
    fn above_the_limit_counts_are_lower_bounds_and_the_frequent_ones_stay() {
        let mut dice = Dice(11);
        let mut sketch = Sketch::<u64>::new(50);
        let mut truth = BTreeMap::<u64, (u64, u64)>::new();
        for _ in 0..20_000 {
            let key = if dice.below(2) == 0 { dice.below(5) } else { dice.below(5_000) };
            let blocked = dice.below(4) == 0;
            sketch.add(&key, "", blocked);
            let entry = truth.entry(key).or_default();
            entry.0 += 1;
            entry.1 += u64::from(blocked);
        }
        assert_eq!(sketch.held(), 50);
        let top = sketch.top(10);
        assert!(!top.exact);
        for entry in &top.entries {
            let (count, blocked) = truth[&entry.name.parse::<u64>().unwrap()];
            assert!(entry.count <= count && entry.blocked <= blocked && entry.blocked <= entry.count, "{entry:?}");
        }
        let mut first: Vec<_> = top.entries[..5].iter().map(|entry| entry.name.as_str()).collect();
        first.sort_unstable();
        assert_eq!(first, ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn ties_are_broken_by_key_and_labels_say_what_all_of_them_say() {
        let mut sketch = Sketch::<u64>::new(4);
        for (key, label) in
            [(942_100, "Score \u{e9}5"), (10, ""), (9, ""), (942_100, "Score \u{e9}12"), (9, "late"), (10, "")]
        {
            sketch.add(&key, label, false);
        }
        let names: Vec<_> = sketch.top(9).entries.into_iter().map(|e| (e.name, e.label)).collect();
        let expected = [("9", "late"), ("10", ""), ("942100", "Score \u{e9}\u{2026}")];
        assert_eq!(names, expected.map(|(name, label)| (name.to_owned(), label.to_owned())));
    }
}
