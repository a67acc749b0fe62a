//! Many literals at once, by three bytes of each that ordinary texts rarely have.
//!
//! A search names the places that may have such a key, a table says which literals have it, and these are compared as a whole. On
//! x86_64 the search is the packed one of `aho-corasick` (Teddy). It has no form for WebAssembly, where a small one of the same
//! idea is used: for each place, two table lookups in each of three bytes leave a bit for each bucket of keys that may be there.

mod keys;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[path = "literals/packed.rs"]
mod search;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[path = "literals/simd128.rs"]
mod search;

use keys::Keys;
use search::Search;

/// The fewest bytes of a literal.
pub const MIN_LITERAL: usize = 3;
/// The most literals of a set.
pub const MAX_LITERALS: usize = 64;

/// A set of literals, each known by its place in the list.
#[derive(Debug)]
pub struct Literals {
    keys: Keys,
    search: Search,
}

impl Literals {
    /// Literals of at least [`MIN_LITERAL`] bytes, at most [`MAX_LITERALS`]; none of them begins with another.
    #[must_use]
    pub fn new(literals: &[&[u8]]) -> Self {
        let keys = Keys::new(literals);
        Self { search: Search::new(keys.all()), keys }
    }

    /// Calls `visit` with each occurrence: the literal, and where it begins. Literals may overlap. Leaves out what is before the
    /// place that `visit` returns.
    pub fn each(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> usize) {
        self.search.each(text, |place| self.check(text, place, &mut visit));
    }

    /// Visits the literals whose key is at a place; the place to go on at.
    fn check(&self, text: &[u8], place: usize, visit: &mut impl FnMut(usize, usize) -> usize) -> usize {
        let mut next = place + 1;
        let key = text.get(place..).and_then(|rest| rest.first_chunk());
        for entry in key.map_or(&[][..], |key| self.keys.entries(*key)) {
            let Some(start) = place.checked_sub(entry.offset) else { continue };
            if text.get(start..).is_some_and(|rest| rest.starts_with(&entry.literal)) {
                next = next.max(visit(entry.index, start));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_occurrence_is_found_at_every_place() {
        let words: [&[u8]; 5] = [b"abcd", b"bcd", b"ORA-", b"-----BEGIN", b"xyz"];
        let literals = Literals::new(&words);
        for pad in 0..80 {
            for (index, word) in words.iter().enumerate() {
                let text = [vec![b'.'; pad].as_slice(), word, &vec![b'.'; 80 - pad]].concat();
                let mut found = Vec::new();
                literals.each(&text, |literal, at| {
                    found.push((literal, at));
                    0
                });
                let mut expected = vec![(index, pad)];
                if index == 0 {
                    expected.push((1, pad + 1));
                }
                found.sort_unstable();
                assert_eq!(found, expected, "{pad}");
                // At the end of a text, too.
                let mut last = Vec::new();
                literals.each(text.get(..pad + word.len()).unwrap(), |literal, at| {
                    last.push((literal, at));
                    0
                });
                last.sort_unstable();
                assert_eq!(last, expected, "{pad}");
            }
        }
    }

    #[test]
    fn a_visit_may_skip() {
        let literals = Literals::new(&[b"aaa"]);
        let mut places = Vec::new();
        literals.each(&[b'a'; 100], |_, at| {
            places.push(at);
            at + 30
        });
        assert_eq!(places, [0, 30, 60, 90]);
    }

    #[test]
    fn literals_with_the_same_key_are_told_apart() {
        let literals = Literals::new(&[b"Zebra one", b"a Zebra", b"Zeb"]);
        let mut found = Vec::new();
        literals.each(b"see a Zebra one", |literal, at| {
            found.push((literal, at));
            0
        });
        found.sort_unstable();
        assert_eq!(found, [(0, 6), (1, 4), (2, 6)]);
    }
}
