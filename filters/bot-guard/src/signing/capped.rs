//! A map of bounded size that forgets what was put first.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most twice `MOST` entries. Once `MOST` have come since the last time, all that came before them are forgotten at once: that
/// takes no list of ages, and a flood pays for it with one entry each.
pub(super) struct Capped<K, V, const MOST: usize> {
    young: Cell<HashMap<K, V>>,
    old: Cell<HashMap<K, V>>,
}

impl<K, V, const MOST: usize> Default for Capped<K, V, MOST> {
    fn default() -> Self {
        Self { young: Cell::default(), old: Cell::default() }
    }
}

impl<K: Eq + Hash, V: Copy, const MOST: usize> Capped<K, V, MOST> {
    /// The value of a key.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        find(&self.young, key).or_else(|| find(&self.old, key))
    }

    /// Gives a key a value.
    pub(super) fn put(&self, key: K, value: V) {
        let mut young = self.young.take();
        if young.len() >= MOST {
            self.old.set(std::mem::take(&mut young));
        }
        young.insert(key, value);
        self.young.set(young);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let (young, old) = (self.young.take(), self.old.take());
        let length = young.len() + old.len();
        self.young.set(young);
        self.old.set(old);
        length
    }
}

/// Moving a map out and back moves three words: nothing can be borrowed twice.
fn find<K: Eq + Hash, V: Copy>(map: &Cell<HashMap<K, V>>, key: &K) -> Option<V> {
    let taken = map.take();
    let value = taken.get(key).copied();
    map.set(taken);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_last_and_no_more_than_twice_its_size() {
        let map = Capped::<u32, u32, 100>::default();
        for number in 0..10_000 {
            map.put(number, number + 1);
            assert!(map.len() <= 200);
            assert_eq!(map.get(&number), Some(number + 1));
            assert_eq!(map.get(&number.saturating_sub(99)), Some(number.saturating_sub(99) + 1), "{number}");
        }
        assert_eq!(map.get(&9_000), None);
        map.put(9_999, 7);
        assert_eq!(map.get(&9_999), Some(7), "the last value counts");
    }
}
