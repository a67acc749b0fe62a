//! Prefilters: what a value must contain for an operator to match it.
//!
//! A prefilter is a necessary condition: one scan of a value tests it for many operators. A value that does not match
//! may pass; a value that matches always passes. Prefilters of patterns are extracted by the compiler, which has the
//! parsed pattern; all others are derived from the argument.

mod extract;

use super::rx::ByteSet;
use super::{OperatorArgument, OperatorKind, encoding, macros, phrases, rx};

/// How many bytes of a literal a prefilter keeps.
const LITERAL_LENGTH: usize = 24;

/// The most phrases of one operator that become a prefilter; longer lists are searched by their own automaton only.
const MAX_PHRASES: usize = 8192;

/// A necessary condition for a match: all parts must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Prefilter {
    /// The least number of bytes of the value.
    pub(crate) min_length: u32,
    /// One of these occurs, in any ASCII case; in lower case here. Empty: no condition.
    pub(crate) literals: Vec<Vec<u8>>,
    /// At least one byte of each set occurs.
    pub(crate) sets: Vec<ByteSet>,
}

impl Prefilter {
    /// Whether every value passes.
    pub(crate) fn passes_all(&self) -> bool {
        self.min_length == 0 && self.literals.is_empty() && self.sets.is_empty()
    }

    /// The prefilter of a checked pattern, to be stored with it.
    pub(crate) fn of_pattern(kind: OperatorKind, argument: &OperatorArgument) -> Option<Self> {
        let pattern = matches!(kind, OperatorKind::Rx | OperatorKind::RxGlobal).then(|| rx::linear(argument))??;
        extract::prefilter(pattern).filter(|prefilter| !prefilter.passes_all())
    }

    /// The prefilter of an operator that is not a pattern.
    pub(crate) fn of_argument(kind: OperatorKind, text: &[u8], phrases: &[Vec<u8>]) -> Option<Self> {
        use OperatorKind as Kind;
        let any = |literals: &mut dyn Iterator<Item = &[u8]>| {
            let literals: Vec<Vec<u8>> = literals.map(literal).collect();
            let usable = !literals.is_empty() && literals.iter().all(|literal| !literal.is_empty());
            usable.then(|| Self { min_length: 1, literals, sets: Vec::new() })
        };
        match kind {
            Kind::Pm if phrases.is_empty() => any(&mut phrases::split(text).iter().map(Vec::as_slice)),
            Kind::Pm | Kind::PmFromFile if phrases.len() <= MAX_PHRASES => any(&mut phrases.iter().map(Vec::as_slice)),
            Kind::Contains | Kind::StrMatch | Kind::BeginsWith | Kind::EndsWith | Kind::StrEq
                if !macros::present(text) =>
            {
                any(&mut std::iter::once(text))
            }
            Kind::ValidateByteRange => {
                let refused = encoding::byte_ranges(text).ok()?.complement();
                Some(Self { min_length: 1, literals: Vec::new(), sets: vec![refused] })
            }
            Kind::ValidateUtf8Encoding => {
                let mut high = ByteSet::default();
                high.insert_range(0x80, 0xff);
                Some(Self { min_length: 1, literals: Vec::new(), sets: vec![high] })
            }
            Kind::ValidateUrlEncoding => any(&mut std::iter::once(&b"%"[..])),
            // A value of letters, digits and underscores is at most a number and a word: no fingerprint of an injection
            // consists of these two.
            Kind::DetectSqli => {
                let mut word = ByteSet::of_bytes(b"_");
                word.insert_range(b'0', b'9');
                word.insert_range(b'a', b'z');
                word.insert_range(b'A', b'Z');
                Some(Self { min_length: 1, literals: Vec::new(), sets: vec![word.complement()] })
            }
            // Every finding is a tag, a comment, a document type (all after `<`) or the value of an attribute (after
            // `=`).
            Kind::DetectXss => Some(Self { min_length: 1, literals: Vec::new(), sets: vec![ByteSet::of_bytes(b"<=")] }),
            _ => None,
        }
    }
}

/// A literal as prefilters hold it.
fn literal(text: &[u8]) -> Vec<u8> {
    text.get(..LITERAL_LENGTH).unwrap_or(text).to_ascii_lowercase()
}

/// The estimated share of a byte in usual traffic. It only decides which of several conditions is more selective.
pub(crate) fn frequency(byte: u8) -> f64 {
    match byte {
        b'e' | b'a' | b't' | b'i' | b'o' | b'n' | b's' | b'r' => 0.06,
        b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'h' => 0.03,
        b'a'..=b'z' | b'0'..=b'9' => 0.015,
        b'A'..=b'Z' => 0.008,
        b' ' | b'/' | b'.' | b'-' => 0.02,
        b'_' | b'=' | b',' | b':' | b';' => 0.01,
        b'"' | b'(' | b')' | b'+' | b'&' | b'?' | b'*' | b'%' => 0.004,
        _ => 0.001,
    }
}

/// The estimated share of all bytes of a set, see [`frequency`].
fn share(set: &ByteSet) -> f64 {
    set.iter().map(frequency).sum()
}
