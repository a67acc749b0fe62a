//! A fast check for values that are no injection, as most are.

use std::sync::LazyLock;

use memchr::memchr_iter;

use super::token::Kind;
use super::words;

/// How many bits the marks of the words of SQL have: about 1 in 250 other words has the mark of one.
const WORD_BITS: u32 = 18;

/// Marks of the words that mean something to SQL, by their hash; of those of several words, of the first.
static WORDS: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let mut marks = vec![0u64; 1 << (WORD_BITS - 6)].into_boxed_slice();
    for word in words::first_words() {
        let hash = mark_of(word.iter().copied().fold(HASH_START, hashed));
        if let Some(word) = marks.get_mut((hash >> 6) as usize) {
            *word |= 1 << (hash & 63);
        }
    }
    marks
});

const HASH_START: u32 = 0x811c_9dc5;

/// FNV-1a, of a letter in any case.
fn hashed(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte.to_ascii_uppercase())).wrapping_mul(0x0100_0193)
}

/// The number of the mark of a word with this hash.
fn mark_of(hash: u32) -> u32 {
    hash.wrapping_mul(0x9e37_79b1) >> (32 - WORD_BITS)
}

/// Whether the tokenizer sees nothing but names, numbers, commas and simple operators: there is no fingerprint of an
/// injection without anything else. Words that SQL knows are something else, and so are comments.
pub(super) fn is_prose(value: &[u8]) -> bool {
    let is_known = |hash: u32| {
        let hash = mark_of(hash);
        WORDS.get((hash >> 6) as usize).is_none_or(|word| word >> (hash & 63) & 1 == 1)
    };
    let (mut hash, mut digits, mut letters, mut before) = (HASH_START, false, false, 0);
    for &byte in value {
        match byte {
            b'0'..=b'9' if !letters => digits = true,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' => {
                // A number that goes on with letters is cut somewhere.
                if digits {
                    return false;
                }
                letters = true;
                hash = hashed(hash, byte);
            }
            b' ' | b'.' | b',' | b':' | b'/' | b'-' | b'+' | b'=' => {
                if (letters && is_known(hash)) || (byte == b'-' && before == b'-') {
                    return false;
                }
                (hash, digits, letters) = (HASH_START, false, false);
            }
            _ => return false,
        }
        before = byte;
    }
    !(letters && is_known(hash))
}

/// How long a name may be that is looked at before the tokenizer is.
const NAME_LENGTH: usize = 64;

/// Whether the tokenizer sees a single word in the value, as in names of JSON members (`order.items.price`): it begins
/// with a letter, and no part before a dot is a word of SQL, at which it would be cut. No single word is an injection.
pub(super) fn is_one_word(value: &[u8]) -> bool {
    value.len() <= NAME_LENGTH
        && value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        && memchr_iter(b'.', value).all(|at| {
            let start = value.get(..at).unwrap_or_default();
            words::meaning(start).is_none_or(|kind| kind == Kind::Bareword)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::injection::reference::is_sql_to_libinjection;

    #[test]
    fn prose_is_never_an_injection() {
        let pieces = [
            "select", "garden", "1", "42", "or", "and", "x", "north", "union", " ", " ", " ", ",", ".", "-", "+", "=",
            ":", "/", "k1", "order by", "not", "between", "1e5", "0x1f", "like", "7z", "true", "null", "a_b", "--",
            "group",
        ];
        let (mut seed, mut prose, mut other) = (7u64, 0, 0);
        for _ in 0..100_000 {
            let mut value = String::new();
            for _ in 0..7 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                value.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            if is_prose(value.as_bytes()) {
                prose += 1;
                assert!(!is_sql_to_libinjection(value.as_bytes()), "{value:?}");
            } else {
                other += 1;
            }
        }
        assert!(prose > 500 && other > 500, "{prose} {other}");
        assert!(is_prose(b"https://shop.example/items/list?".split_last().unwrap().1));
        assert!(!is_prose(b"1 or 1=1") && !is_prose(b"union"));
    }

    #[test]
    fn single_words_are_harmless_and_others_are_not_taken_for_one() {
        let words =
            ["select", "json", "k1", "union", "a", "e", "x", "0x1", "1", "version", "sleep", "or", "_b", "char", ""];
        let mut seed = 11u64;
        let mut found = 0;
        for _ in 0..50_000 {
            let mut name = Vec::new();
            for _ in 0..5 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                name.push(words[(seed >> 33) as usize % words.len()]);
            }
            let name = name.join(".");
            if is_one_word(name.as_bytes()) {
                found += 1;
                assert!(!is_sql_to_libinjection(name.as_bytes()), "{name}");
            }
        }
        assert!(found > 5000);
        assert!(is_one_word(b"json.items.k1") && !is_one_word(b"select.a") && !is_one_word(b"a b"));
    }
}
