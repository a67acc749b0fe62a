//! Many literals at once.
//!
//! On x86_64 the packed searcher of `aho-corasick` (Teddy) compares 16 or 32 bytes at a time with their beginnings. It has no form for
//! WebAssembly. There a small search of the same idea names the places that may have one of their keys, which are the three bytes of
//! each that ordinary texts have least: two table lookups in each of three bytes leave a bit for each bucket of keys that may be
//! there. A table says which literals have the key, and these are compared as a whole.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod keyed;
#[cfg(any(test, all(target_arch = "wasm32", target_feature = "simd128")))]
mod keys;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod packed;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub use keyed::Literals;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub use packed::Literals;

/// The fewest bytes of a literal.
pub const MIN_LITERAL: usize = 3;
/// The most literals of a set.
pub const MAX_LITERALS: usize = 64;

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
    fn each_literal_is_found_by_its_key() {
        let literals: [&[u8]; 4] = [b"Zebra one", b"a Zebra", b"ORA-", b"-----BEGIN "];
        let keys = keys::Keys::new(&literals);
        for (index, literal) in literals.iter().enumerate() {
            let by_key = literal.windows(3).enumerate().any(|(offset, window)| {
                let entries = keys.entries(*window.first_chunk().unwrap());
                entries.iter().any(|entry| (entry.index, entry.offset) == (index, offset) && entry.literal == **literal)
            });
            assert!(by_key, "{index}");
        }
        assert!(keys.all().len() <= literals.len() && keys.entries(*b"xyz").is_empty());
        assert!(keys::frequency(b'e') > keys::frequency(b'Z'));
    }
}
