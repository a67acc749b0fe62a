//! `@detectSQLi` and `@detectXSS`, by a port of libinjection.

mod repair;

use std::borrow::Cow;
use std::sync::LazyLock;

use libinjectionrs::sqli::sqli_data::{SQL_KEYWORDS, lookup_word};
use libinjectionrs::sqli::{SqliFlags, SqliState, TokenType};

use super::captures::Captures;
use repair::repaired;

/// How many bytes of a value are looked at for cross-site scripting: 64 KiB. A longer value is cut.
pub const INJECTION_INPUT_LIMIT: usize = 64 * 1024;

/// How many bytes of a value are looked at for SQL injection: 8 KiB. The detector decides on the first tokens, so what
/// is beyond could only add to what it folds away.
pub const SQL_INPUT_LIMIT: usize = 8 * 1024;

/// How long a run of word characters may be before its dots are counted, and how many dots it may then keep.
///
/// The tokenizer looks for the end of a word again after each dot or backtick: a long run with many of them takes
/// quadratic time. No keyword is that long.
const LONG_RUN: usize = 256;
const RUN_DOTS: usize = 16;

/// Units of work for each value, and for each byte: that is looked through for what is no word, tokenized for SQL, and read
/// as HTML.
const RUN: u64 = 1_500;
const PROSE_BYTE: u64 = 10;
const SQL_BYTE: u64 = 60;
const SCRIPT_BYTE: u64 = 60;

fn cost(bytes: usize, each: u64) -> u64 {
    RUN.saturating_add(each.saturating_mul(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

/// SQL injection; captures the fingerprint.
pub(super) fn is_sql(value: &[u8], captures: &mut Captures) -> bool {
    if value.is_empty() {
        return false;
    }
    captures.charge(cost(value.len(), PROSE_BYTE));
    if is_one_word(value) || is_prose(value) {
        return false;
    }
    captures.charge(cost(value.len().min(SQL_INPUT_LIMIT), SQL_BYTE));
    let value = repaired(tame(value.get(..SQL_INPUT_LIMIT).unwrap_or(value)));
    let mut state = SqliState::new(&value, SqliFlags::FLAG_NONE);
    if !state.detect() {
        return false;
    }
    if captures.is_wanted() {
        let fingerprint = state.get_fingerprint();
        let bytes = fingerprint.as_bytes();
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        captures.set(0, bytes.get(..end).unwrap_or(bytes));
    }
    true
}

/// How many bits the marks of the words of SQL have: about 1 in 250 other words has the mark of one.
const WORD_BITS: u32 = 18;

/// Marks of the words that mean something to SQL, by their hash; of those of several words, of the first.
static WORDS: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let mut marks = vec![0u64; 1 << (WORD_BITS - 6)].into_boxed_slice();
    for keyword in SQL_KEYWORDS.iter().filter(|keyword| keyword.token_type != FINGERPRINT) {
        let first = keyword.word.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let hash = mark_of(first.fold(HASH_START, hashed));
        if let Some(word) = marks.get_mut((hash >> 6) as usize) {
            *word |= 1 << (hash & 63);
        }
    }
    marks
});

/// The entries among the words that are fingerprints of injections.
const FINGERPRINT: u8 = b'F';

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
fn is_prose(value: &[u8]) -> bool {
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
fn is_one_word(value: &[u8]) -> bool {
    let Some(name) = std::str::from_utf8(value).ok().filter(|name| name.len() <= NAME_LENGTH) else { return false };
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        && name
            .match_indices('.')
            .all(|(at, _)| name.get(..at).is_some_and(|start| lookup_word(start) == TokenType::Bareword))
}

/// Replaces the dots and backticks of long runs of word characters, beyond the first few, by a word character.
fn tame(value: &[u8]) -> Cow<'_, [u8]> {
    let long = |run: &[u8]| run.len() > LONG_RUN && run.iter().filter(|byte| is_dot(**byte)).count() > RUN_DOTS;
    if value.len() <= LONG_RUN || !value.split(|&byte| ends_word(byte)).any(long) {
        return Cow::Borrowed(value);
    }
    let mut tamed = value.to_vec();
    for run in tamed.split_mut(|&byte| ends_word(byte)) {
        if long(run) {
            run.iter_mut().filter(|byte| is_dot(**byte)).skip(RUN_DOTS).for_each(|byte| *byte = b'_');
        }
    }
    Cow::Owned(tamed)
}

fn is_dot(byte: u8) -> bool {
    matches!(byte, b'.' | b'`')
}

/// Whether the tokenizer ends a word at this byte.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0 | 0xa0)
        || (!is_dot(byte) && !matches!(byte, b'_' | b'$') && (byte == b' ' || byte.is_ascii_punctuation()))
}

/// Cross-site scripting; captures the value.
pub(super) fn is_script(value: &[u8], captures: &mut Captures) -> bool {
    if value.is_empty() {
        return false;
    }
    let seen = value.get(..INJECTION_INPUT_LIMIT).unwrap_or(value);
    captures.charge(cost(seen.len(), SCRIPT_BYTE));
    let mut found = libinjectionrs::detect_xss(seen).is_injection();
    if !found && memchr::memchr(0, seen).is_some() {
        // The original takes NUL for white space between attributes, the port does not.
        let spaced: Vec<u8> = seen.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
        found = libinjectionrs::detect_xss(&spaced).is_injection();
    }
    if found {
        captures.set(0, value);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn long_runs_lose_their_dots() {
        let short = "a.b`c ".repeat(1000);
        assert!(matches!(tame(short.as_bytes()), Cow::Borrowed(_)));
        let long = format!("{} ' or 1=1 -- a.b", ".5or".repeat(100));
        let tamed = tame(long.as_bytes());
        assert_eq!(tamed.len(), long.len());
        assert_eq!(tamed.iter().filter(|byte| **byte == b'.').count(), RUN_DOTS + 1);
        assert!(tamed.ends_with(b" ' or 1=1 -- a.b"));
        assert_eq!((INJECTION_INPUT_LIMIT, SQL_INPUT_LIMIT), (65_536, 8_192));
    }

    #[test]
    fn nul_separates_attributes() {
        assert!(is_script(b"<a\0onerror=x", &mut Captures::new()));
        assert!(!is_script(b"a\0b", &mut Captures::new()));
    }

    #[test]
    fn payloads_behind_long_runs_are_found() {
        let value = format!("{}' or 1=1 -- ", "a.".repeat(400));
        assert!(is_sql(value.as_bytes(), &mut Captures::new()));
    }

    #[test]
    fn what_the_port_reads_otherwise_is_found() {
        for value in [
            "1 or 1.e(1)=1",
            "' or 1.e(1)=1.e(1)",
            "1.e(ascii 1.e(substring(1.e(select p from u limit 1 1.e,1 1.e) 1.e,1 1.e,1 1.e)1.e)1.e) = 70",
            "' into outfile '/var/www/x",
        ] {
            assert!(is_sql(value.as_bytes(), &mut Captures::new()), "{value}");
        }
        assert!(!is_sql(b"the 1.e of it, put into a box", &mut Captures::new()));
    }

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
                assert!(!SqliState::new(value.as_bytes(), SqliFlags::FLAG_NONE).detect(), "{value:?}");
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
                assert!(!libinjectionrs::detect_sqli(name.as_bytes()).is_injection(), "{name}");
            }
        }
        assert!(found > 5000);
        assert!(is_one_word(b"json.items.k1") && !is_one_word(b"select.a") && !is_one_word(b"a b"));
    }

    #[test]
    fn what_the_gates_hold_back_is_harmless() {
        let words = "1 0 12 0x 0x1f 0b1 1e 1e5 1d 2f union select or and not null is like mod div xor between exists if \
                     case end from into having group order by limit waitfor delay sleep benchmark char user version \
                     current_user abc x n q e b u N_ _ _utf8 collate binary in any all some true unknown print shutdown \
                     exec execute begin create drop insert update delete set declare cast table";
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        for one in &words {
            for other in words.iter().chain(&[""]) {
                for third in ["", "1", "_", "union"] {
                    let value = format!("{one}{other}{third}");
                    assert!(!is_sql(value.as_bytes(), &mut Captures::new()), "{value}");
                }
            }
        }
        let pieces =
            ["onerror", "style", "/", ">", " ", "'", "\"", "`", "--", "!doctype", "xml", "[if", "%", "\0", "?import"];
        let mut seed = 3u64;
        for _ in 0..200_000 {
            let mut value = String::new();
            for _ in 0..6 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                value += pieces[(seed >> 33) as usize % pieces.len()];
            }
            assert!(!is_script(value.as_bytes(), &mut Captures::new()), "{value}");
        }
    }
}
