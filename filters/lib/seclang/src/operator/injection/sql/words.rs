//! The words and the fingerprints of libinjection, in tables of hashes.

use std::sync::LazyLock;

use libinjectionrs::sqli::sqli_data::SQL_KEYWORDS;
use memchr::memchr_iter;

use super::token::Kind;

/// The entries of the list that are fingerprints of injections; all others are words.
const FINGERPRINT: u8 = b'F';

/// Slots of the two tables. Powers of two, at least twice as many as there are entries (985 and 8,367).
const WORD_SLOTS: usize = 1 << 12;
const FINGERPRINT_SLOTS: usize = 1 << 15;

/// The content of an unused slot. No list is that long, and no fingerprint has this code.
const NO_WORD: u16 = u16::MAX;
const NO_FINGERPRINT: u32 = 0;

/// By the hash of a word, its number in the list.
static WORDS: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let mut slots = vec![NO_WORD; WORD_SLOTS].into_boxed_slice();
    for (keyword, number) in SQL_KEYWORDS.iter().zip(0..NO_WORD) {
        if keyword.token_type != FINGERPRINT {
            let mut at = hash(keyword.word.as_bytes());
            while slots.get(at % WORD_SLOTS).is_some_and(|slot| *slot != NO_WORD) {
                at += 1;
            }
            if let Some(slot) = slots.get_mut(at % WORD_SLOTS) {
                *slot = number;
            }
        }
    }
    slots
});

/// The codes of fingerprints.
static FINGERPRINTS: LazyLock<Box<[u32]>> = LazyLock::new(|| {
    let mut slots = vec![NO_FINGERPRINT; FINGERPRINT_SLOTS].into_boxed_slice();
    for keyword in SQL_KEYWORDS.iter().filter(|keyword| keyword.token_type == FINGERPRINT) {
        // The first character is the version of the list.
        let code = code(keyword.word.as_bytes().get(1..).unwrap_or_default());
        let mut at = slot_of(code);
        while slots.get(at % FINGERPRINT_SLOTS).is_some_and(|slot| *slot != NO_FINGERPRINT) {
            at += 1;
        }
        if let Some(slot) = slots.get_mut(at % FINGERPRINT_SLOTS) {
            *slot = code;
        }
    }
    slots
});

/// Short keys of the texts of a list: most texts that are not on the list have no such key.
struct Sieve([u64; Sieve::BITS / 64]);

impl Sieve {
    const BITS: usize = 4096;

    fn of<'w>(words: impl Iterator<Item = &'w [u8]>) -> Self {
        let mut sieve = Self([0; Self::BITS / 64]);
        for word in words {
            let key = Self::key(word);
            if let Some(bits) = sieve.0.get_mut(key / 64) {
                *bits |= 1 << (key % 64);
            }
        }
        sieve
    }

    /// The length, the first and the last byte, of letters in any case.
    #[inline(always)]
    fn key(word: &[u8]) -> usize {
        let (Some(first), Some(last)) = (word.first(), word.last()) else { return 0 };
        let (first, last) = (usize::from(first & 0x1f), usize::from(last & 0x1f));
        (word.len() << 10 ^ first << 5 ^ last ^ word.len() << 4) % Self::BITS
    }

    /// `false` if the text is not on the list.
    #[inline(always)]
    fn may_have(&self, word: &[u8]) -> bool {
        let key = Self::key(word);
        self.0.get(key / 64).is_some_and(|bits| bits >> (key % 64) & 1 == 1)
    }
}

/// All words and phrases, and what phrases are made of.
struct Sieves {
    all: Sieve,
    /// What is before a blank of a phrase, and after it.
    heads: Sieve,
    tails: Sieve,
}

static SIEVES: LazyLock<Sieves> = LazyLock::new(|| {
    let words = || SQL_KEYWORDS.iter().filter(|keyword| keyword.token_type != FINGERPRINT);
    let texts = || words().map(|keyword| keyword.word.as_bytes());
    let parts = || texts().flat_map(|text| memchr_iter(b' ', text).map(move |blank| text.split_at(blank)));
    Sieves {
        all: Sieve::of(texts()),
        heads: Sieve::of(parts().map(|(head, _)| head)),
        tails: Sieve::of(parts().map(|(_, tail)| tail.get(1..).unwrap_or_default())),
    }
});

/// FNV-1a, of letters in any case.
fn hash(word: &[u8]) -> usize {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(byte.to_ascii_uppercase())).wrapping_mul(0x0100_0193);
    let hash = word.iter().fold(0x811c_9dc5, step);
    (hash ^ (hash >> 15)) as usize
}

/// Six bits for each character, of letters in any case: the six in which the characters of fingerprints differ.
fn code(fingerprint: &[u8]) -> u32 {
    let six = |byte: u8| match byte {
        b'{' => 0x3e,
        b'}' => 0x3f,
        _ => u32::from(byte.to_ascii_uppercase().wrapping_sub(b' ')) & 0x3f,
    };
    fingerprint.iter().take(5).fold(0, |code, byte| code << 6 | six(*byte))
}

fn slot_of(code: u32) -> usize {
    (code.wrapping_mul(0x9e37_79b1) >> 12) as usize
}

/// What a word (an operator, or a phrase of words with a blank between them) means to SQL, in any case; `None` if it is
/// not on the list.
pub(super) fn meaning(word: &[u8]) -> Option<Kind> {
    if !SIEVES.all.may_have(word) {
        return None;
    }
    let mut at = hash(word);
    loop {
        let number = *WORDS.get(at % WORD_SLOTS)?;
        if number == NO_WORD {
            return None;
        }
        let keyword = SQL_KEYWORDS.get(usize::from(number))?;
        if keyword.word.as_bytes().eq_ignore_ascii_case(word) {
            return Kind::of(keyword.token_type);
        }
        at += 1;
    }
}

/// `false` if no phrase on the list is made of these two with a blank between them.
#[inline(always)]
pub(super) fn may_be_phrase(head: &[u8], tail: &[u8]) -> bool {
    SIEVES.heads.may_have(head) && SIEVES.tails.may_have(tail)
}

/// Whether a fingerprint is on the list of those of injections.
pub(super) fn is_listed(fingerprint: &[u8]) -> bool {
    if fingerprint.is_empty() {
        return false;
    }
    let code = code(fingerprint);
    let mut at = slot_of(code);
    loop {
        match FINGERPRINTS.get(at % FINGERPRINT_SLOTS) {
            Some(slot) if *slot == code => return true,
            Some(slot) if *slot != NO_FINGERPRINT => at += 1,
            _ => return false,
        }
    }
}

/// The first words of all phrases on the list, in capitals.
pub(super) fn first_words() -> impl Iterator<Item = &'static [u8]> {
    SQL_KEYWORDS.iter().filter(|keyword| keyword.token_type != FINGERPRINT).map(|keyword| {
        let word = keyword.word.as_bytes();
        let end = word.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(word.len());
        word.get(..end).unwrap_or(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_list_is_found_and_nothing_else() {
        let (mut words, mut fingerprints) = (0, 0);
        for keyword in SQL_KEYWORDS {
            let text = keyword.word.as_bytes();
            if keyword.token_type == FINGERPRINT {
                assert!(is_listed(&text[1..]) && is_listed(&text[1..].to_ascii_lowercase()), "{}", keyword.word);
                fingerprints += 1;
            } else {
                let kind = meaning(text).map(Kind::letter);
                assert_eq!(kind, Some(keyword.token_type), "{}", keyword.word);
                assert_eq!(meaning(&text.to_ascii_lowercase()).map(Kind::letter), kind, "{}", keyword.word);
                for blank in memchr_iter(b' ', text) {
                    assert!(may_be_phrase(&text[..blank], &text[blank + 1..].to_ascii_lowercase()), "{}", keyword.word);
                }
                words += 1;
            }
        }
        assert_eq!((words, fingerprints), (985, 8367));
        assert!(words * 2 < WORD_SLOTS && fingerprints * 2 < FINGERPRINT_SLOTS);
        for word in ["", "garden", "selec", "selects", "union al", "0&1o", "\0", "SELECT\0"] {
            assert_eq!(meaning(word.as_bytes()), None, "{word}");
        }
        for other in ["", "n", "nn", "1o1", "sos1", "nnnnn"] {
            assert!(!is_listed(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn codes_distinguish_all_kinds() {
        let letters = b"kUBEtfn1vso&cA(){}.,:;?X\\F";
        for one in letters {
            for other in letters {
                let same = one.eq_ignore_ascii_case(other);
                assert_eq!(code(&[*one]) == code(&[*other]), same, "{} {}", *one as char, *other as char);
            }
            assert_ne!(code(&[*one]), NO_FINGERPRINT);
        }
    }
}
