//! Literals by their keys, for the search that the vectors of WebAssembly make.

use super::keys::Keys;
use super::simd128::Search;

/// A set of literals, each known by its place in the list.
#[derive(Debug)]
pub struct Literals {
    keys: Keys,
    search: Search,
}

impl Literals {
    /// Literals of at least [`MIN_LITERAL`](super::MIN_LITERAL) bytes, at most [`MAX_LITERALS`](super::MAX_LITERALS); none of them begins with another.
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
