//! Many literals at once, by the bytes that they begin with.
//!
//! On x86_64 the packed searcher of `aho-corasick` (Teddy) reads 16 or 32 bytes at a time. It has no form for WebAssembly, where a
//! small searcher of the same idea is used: for each place, two table lookups in each of the first three bytes leave a bit for
//! each bucket of literals that may begin there.

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub use native::Literals;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub use wasm::Literals;

/// The fewest bytes of a literal.
pub const MIN_LITERAL: usize = 3;
/// The most literals of a set.
pub const MAX_LITERALS: usize = 64;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod native {
    use aho_corasick::packed::{Config, MatchKind, Searcher};
    use aho_corasick::{AhoCorasick, Span};

    /// A set of literals, each known by its place in the list.
    #[derive(Debug)]
    pub struct Literals(Kind);

    #[derive(Debug)]
    enum Kind {
        Packed(Searcher),
        /// On processors without the instructions.
        Automaton(Option<AhoCorasick>),
    }

    impl Literals {
        /// Literals of at least [`MIN_LITERAL`](super::MIN_LITERAL) bytes, at most [`MAX_LITERALS`](super::MAX_LITERALS); none of
        /// them begins with another.
        #[must_use]
        pub fn new(literals: &[&[u8]]) -> Self {
            let packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(literals).build();
            Self(packed.map_or_else(|| Kind::Automaton(AhoCorasick::new(literals).ok()), Kind::Packed))
        }

        /// Calls `visit` with each occurrence: the literal, and where it begins. Literals may overlap. Goes on at the place that
        /// `visit` returns, or behind the beginning where that is later.
        pub fn each(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> usize) {
            let mut at = 0;
            while at < text.len() {
                let span = Span { start: at, end: text.len() };
                let found = match &self.0 {
                    Kind::Packed(searcher) => searcher.find_in(text, span),
                    Kind::Automaton(automaton) => automaton
                        .as_ref()
                        .and_then(|automaton| automaton.find(aho_corasick::Input::new(text).span(span))),
                };
                let Some(found) = found else { return };
                at = visit(found.pattern().as_usize(), found.start()).max(found.start() + 1);
            }
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use std::arch::wasm32::{
        i64x2, u8x16, u8x16_bitmask, u8x16_ne, u8x16_shr, u8x16_splat, u8x16_swizzle, v128, v128_and, v128_any_true,
    };

    const BUCKETS: usize = 8;

    /// A set of literals, each known by its place in the list.
    #[derive(Debug)]
    pub struct Literals {
        /// For each of the first three bytes: the buckets by its low and by its high half.
        tables: [(v128, v128); 3],
        /// The literals of each bucket, with their places in the list.
        buckets: [Vec<(usize, Vec<u8>)>; BUCKETS],
    }

    impl Literals {
        /// Literals of at least [`MIN_LITERAL`](super::MIN_LITERAL) bytes, at most [`MAX_LITERALS`](super::MAX_LITERALS); none of
        /// them begins with another.
        #[must_use]
        pub fn new(literals: &[&[u8]]) -> Self {
            let mut sorted: Vec<(usize, &[u8])> = literals.iter().copied().enumerate().collect();
            sorted.sort_by(|a, b| a.1.cmp(b.1));
            let mut buckets: [Vec<(usize, Vec<u8>)>; BUCKETS] = Default::default();
            let mut halves = [([0u8; 16], [0u8; 16]); 3];
            // Neighbors in the order share first bytes, so that a bucket passes few other texts.
            let each = sorted.len().div_ceil(BUCKETS).max(1);
            for (place, (index, literal)) in sorted.into_iter().enumerate() {
                let bucket = place / each;
                for (byte, (low, high)) in literal.iter().zip(&mut halves) {
                    let bit = 1u8 << (bucket % BUCKETS);
                    low.iter_mut().skip(usize::from(byte & 15)).take(1).for_each(|half| *half |= bit);
                    high.iter_mut().skip(usize::from(byte >> 4)).take(1).for_each(|half| *half |= bit);
                }
                buckets.iter_mut().skip(bucket % BUCKETS).take(1).for_each(|list| list.push((index, literal.to_vec())));
            }
            Self { tables: halves.map(|(low, high)| (table(low), table(high))), buckets }
        }

        /// Calls `visit` with each occurrence: the literal, and where it begins. Literals may overlap. Goes on at the place that
        /// `visit` returns, or behind the beginning where that is later.
        pub fn each(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> usize) {
            let mut from = 0;
            let mut at = 0;
            while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<18>()) {
                let mut places = self.candidates(bytes);
                while places != 0 {
                    let place = at + places.trailing_zeros() as usize;
                    places &= places - 1;
                    if place >= from {
                        from = self.check(text, place, &mut visit).unwrap_or(from);
                    }
                }
                at = if from > at + 16 { from } else { at + 16 };
            }
            for place in at..text.len() {
                if place >= from {
                    from = self.check(text, place, &mut visit).unwrap_or(from);
                }
            }
        }

        fn candidates(&self, bytes: &[u8; 18]) -> u16 {
            let [first, second, third] = [0, 1, 2].map(|skip| {
                let half = |from: usize| {
                    let chunk = bytes.get(from..).and_then(|rest| rest.first_chunk::<8>()).copied().unwrap_or_default();
                    i64::from_le_bytes(chunk)
                };
                i64x2(half(skip), half(skip + 8))
            });
            let of = |vector: v128, (low, high): (v128, v128)| {
                let low = u8x16_swizzle(low, v128_and(vector, u8x16_splat(15)));
                v128_and(low, u8x16_swizzle(high, u8x16_shr(vector, 4)))
            };
            let [a, b, c] = self.tables;
            let all = v128_and(v128_and(of(first, a), of(second, b)), of(third, c));
            if v128_any_true(all) { u8x16_bitmask(u8x16_ne(all, u8x16_splat(0))) } else { 0 }
        }

        fn check(&self, text: &[u8], place: usize, visit: &mut impl FnMut(usize, usize) -> usize) -> Option<usize> {
            let rest = text.get(place..)?;
            let mut all = self.buckets.iter().flatten();
            let (index, _) = all.find(|(_, literal)| rest.starts_with(literal))?;
            Some(visit(*index, place).max(place + 1))
        }
    }

    fn table(bytes: [u8; 16]) -> v128 {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        u8x16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
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
                assert_eq!(found, expected, "{pad}");
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
}
