//! Readings that begin behind the first tokens of a value, where libinjection sees nothing any more.
//!
//! A window begins at a quote that something follows which goes on with a query (`OR`, `UNION`, `;`, ...). Text and code are
//! full of quotes and of short fingerprints, so a window takes less for an injection than a reading from the beginning:
//! there has to be a logical operator, a `UNION`, another statement, and an end to it.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use memchr::memchr2_iter;

use super::covered::CoveredTokens;
use super::fold::State;
use super::in_dialects_with;
use super::marks::is_escaped;
use super::reading::{Fingerprint, Reader, Reading, Start};
use super::token::{Kind, Token};
use super::tokens::Dialect;

/// After how many tokens a window takes note of the states that it is in. Most end before.
const SHORT: usize = 8;

/// Words after a quote by which a query goes on.
const LEADS: [&[u8]; 16] = [
    b"and",
    b"between",
    b"div",
    b"group",
    b"having",
    b"in",
    b"into",
    b"is",
    b"like",
    b"limit",
    b"not",
    b"or",
    b"order",
    b"procedure",
    b"union",
    b"xor",
];

/// What begins a statement that an injection would add. Others (`IF`, `SET`, `WHILE`, ...) begin those of code, too.
const CHANGES: [&[u8]; 15] = [
    b"alter",
    b"call",
    b"create",
    b"declare",
    b"delete",
    b"drop",
    b"exec",
    b"execute",
    b"grant",
    b"insert",
    b"select",
    b"shutdown",
    b"truncate",
    b"update",
    b"waitfor",
];

/// Looks for an injection from each quote on, and from each `UNION SELECT`.
pub(super) fn find(reader: &mut Reader<'_>, covered: &CoveredTokens) -> Option<Fingerprint> {
    let value = reader.value;
    let mut states = States::new();
    for at in memchr2_iter(b'\'', b'"', value) {
        reader.meter.charge_quote();
        if reader.meter.is_empty() {
            return None;
        }
        if is_escaped(value, at) || !leads(reader, at + 1) {
            continue;
        }
        let start = Start { at, inside: value.get(at).copied(), ..Start::default() };
        if let Some(found) = window(reader, &mut states, covered, start) {
            return Some(found);
        }
    }
    for at in memchr2_iter(b'u', b'U', value) {
        if is_union(value, at) && skip_comments(reader, at + UNION.len(), b"(").is_some_and(selects) {
            let start = Start { at, after_operand: true, ..Start::default() };
            if let Some(found) = window(reader, &mut states, covered, start) {
                return Some(found);
            }
        }
    }
    None
}

fn window(reader: &mut Reader<'_>, states: &mut States, covered: &CoveredTokens, start: Start) -> Option<Fingerprint> {
    reader.mark();
    let found = in_dialects_with(start, |start| {
        let mut reading = reader.read(start, |state| states.was_here(start.dialect, &state));
        reading.is_injection = reading.is_injection && is_certain(&reading) && !covered.contains(&reading);
        reading
    });
    found.map(|reading| reading.fingerprint)
}

const UNION: &[u8] = b"union";

fn starts_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Whether the word `UNION` begins here.
fn is_union(value: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| value.get(before));
    value.get(at..).is_some_and(|rest| starts_with(rest, UNION))
        && before.is_none_or(|before| !before.is_ascii_alphabetic() && *before != b'_')
}

/// Whether what follows `UNION` is a query.
fn selects(rest: &[u8]) -> bool {
    [&b"select"[..], b"all", b"distinct", b"/*!"].iter().any(|word| starts_with(rest, word))
}

/// What follows white space, comments and these bytes; `None` once the meter has run out.
fn skip_comments<'v>(reader: &mut Reader<'v>, mut at: usize, others: &[u8]) -> Option<&'v [u8]> {
    loop {
        let rest = reader.value.get(at..).unwrap_or_default();
        let skips = |byte: &u8| matches!(byte, 0..=b' ' | 0x7f | 0xa0) || others.contains(byte);
        let skipped = rest.iter().position(|byte| !skips(byte)).unwrap_or(rest.len());
        let rest = rest.get(skipped..).unwrap_or_default();
        match rest {
            _ if !reader.meter.charge(skipped + 1) => return None,
            // What MySQL runs.
            [b'/', b'*', b'!', b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z', ..] => return Some(rest),
            [b'/', b'*', ..] => {
                let text_at = at + skipped + 2;
                at = reader.comment_end(text_at).map_or(reader.value.len(), |end| end + 2);
            }
            [b'#', ..] | [b'-', b'-', ..] => {
                at = reader.line_end(at + skipped).map_or(reader.value.len(), |end| end + 1);
            }
            _ => return Some(rest),
        }
    }
}

/// Whether what follows goes on with a query: behind white space, comments and closing parentheses.
fn leads(reader: &mut Reader<'_>, at: usize) -> bool {
    let Some(rest) = skip_comments(reader, at, b")") else { return false };
    match rest {
        [b';', ..] | [b'|', b'|', ..] | [b'&', b'&', ..] | [b'/', b'*', ..] => true,
        _ => {
            let letters = rest.iter().take(16).position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
            let word = rest.get(..letters).unwrap_or_default();
            LEADS.iter().any(|lead| word.eq_ignore_ascii_case(lead))
        }
    }
}

/// The states that windows were in, by hashes with a seed that no client knows.
struct States {
    seed: u64,
    seen: HashSet<u64, BuildHasherDefault<Hashed>>,
}

impl States {
    fn new() -> Self {
        Self { seed: RandomState::new().build_hasher().finish(), seen: HashSet::default() }
    }

    /// Whether a window of this dialect was in this state before; takes note of it.
    fn was_here(&mut self, dialect: Dialect, state: &State<'_>) -> bool {
        if state.read < SHORT {
            return false;
        }
        let flags = u64::from(state.after_comment) << 2 | u64::from(dialect.mysql) << 1 | u64::from(dialect.version_3);
        let mut hash = mix(self.seed, state.at as u64);
        hash = mix(hash, (state.left as u64) << 3 | flags);
        for token in state.folded {
            let text = if token.kind == Kind::String { &[] } else { token.text() };
            let [kind, open, close] = [token.kind.letter(), token.open, token.close].map(u64::from);
            hash = mix(hash, (text.len() as u64) << 24 | kind << 16 | open << 8 | close);
            let (words, rest) = text.as_chunks::<8>();
            hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
            hash = mix(hash, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        !self.seen.insert(hash)
    }
}

fn mix(hash: u64, number: u64) -> u64 {
    let mixed = (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// What is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| mix(hash, u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whether an injection is one for certain, and neither text nor code.
fn is_certain(reading: &Reading) -> bool {
    let letters = reading.fingerprint.letters();
    let has = |letter: u8| letters.contains(&letter);
    let has_pair = |pair: &[u8]| letters.windows(2).any(|letters| letters == pair);
    // `drop`, `DROP TABLE`, and not `dropped`.
    let changes = |token: &Token| {
        let mut words = token.text().split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let first = words.next().unwrap_or_default();
        CHANGES.iter().any(|word| first.eq_ignore_ascii_case(word))
    };
    let ends = has(b'c') || reading.ends;
    letters == b"X"
        || (has(b'U') && has(b'E'))
        // `"); drop(x)` is code.
        || (has(b';') && !has_pair(b"T(") && !has_pair(b"E(") && reading.tokens.as_slice().iter().any(changes))
        || (has(b'&') && (ends || has(b'E') || has(b'B') || has_pair(b"f(")))
        || (has(b'B') && (has(b'c') || (reading.ends && has_pair(b"B1"))))
}
