//! Gates: what a value must hold for an operator to match it at all.
//!
//! A gate is a necessary condition that many operators can be tested for in one scan of a value. It may let a value
//! pass that does not match; it never holds one back that does. Gates of patterns are made where rules are written,
//! as they need the parsed pattern; all others are read off the argument.

mod extract;

use super::rx::ByteSet;
use super::{OperatorArgument, OperatorKind, encoding, macros, phrases, rx};

/// How many bytes of a literal a gate keeps.
const LITERAL_LENGTH: usize = 24;

/// How many phrases of one operator become a gate; longer lists are searched for by their own automaton alone.
const GATE_PHRASES: usize = 8192;

/// A necessary condition for a match. All of its parts must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gate {
    /// The value has at least so many bytes.
    pub(crate) min_length: u32,
    /// One of these occurs, in any ASCII case; given in lower case. No condition if there are none.
    pub(crate) literals: Vec<Vec<u8>>,
    /// Of each set a byte occurs.
    pub(crate) sets: Vec<ByteSet>,
}

impl Gate {
    /// Whether every value passes.
    pub(crate) fn is_open(&self) -> bool {
        self.min_length == 0 && self.literals.is_empty() && self.sets.is_empty()
    }

    /// The gate of a pattern that was checked; to be stored with it.
    pub(crate) fn of_pattern(kind: OperatorKind, argument: &OperatorArgument) -> Option<Self> {
        let pattern = matches!(kind, OperatorKind::Rx | OperatorKind::RxGlobal).then(|| rx::linear(argument))??;
        extract::gate(pattern).filter(|gate| !gate.is_open())
    }

    /// The gate that can be read off the argument of an operator other than a pattern.
    pub(crate) fn of_argument(kind: OperatorKind, text: &[u8], phrases: &[Vec<u8>]) -> Option<Self> {
        use OperatorKind as Kind;
        let any = |literals: &mut dyn Iterator<Item = &[u8]>| {
            let literals: Vec<Vec<u8>> = literals.map(literal).collect();
            let usable = !literals.is_empty() && literals.iter().all(|literal| !literal.is_empty());
            usable.then(|| Self { min_length: 1, literals, sets: Vec::new() })
        };
        match kind {
            Kind::Pm if phrases.is_empty() => any(&mut phrases::split(text).iter().map(Vec::as_slice)),
            Kind::Pm | Kind::PmFromFile if phrases.len() <= GATE_PHRASES => any(&mut phrases.iter().map(Vec::as_slice)),
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
            // Letters, digits and underscores are at most a number and a word: no fingerprint of these two is one of
            // an injection.
            Kind::DetectSqli => {
                let mut word = ByteSet::of_bytes(b"_");
                word.insert_range(b'0', b'9');
                word.insert_range(b'a', b'z');
                word.insert_range(b'A', b'Z');
                Some(Self { min_length: 1, literals: Vec::new(), sets: vec![word.complement()] })
            }
            // What is dangerous is a tag, a comment, a document type (all after `<`) or the value of an attribute
            // (after `=`).
            Kind::DetectXss => Some(Self { min_length: 1, literals: Vec::new(), sets: vec![ByteSet::of_bytes(b"<=")] }),
            _ => None,
        }
    }
}

/// A literal in the form of gates.
fn literal(text: &[u8]) -> Vec<u8> {
    text.get(..LITERAL_LENGTH).unwrap_or(text).to_ascii_lowercase()
}

/// How often a byte occurs in what browsers and programs usually send, as a share of all bytes; a rough guess that
/// only decides which of several conditions is the sharper one.
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

/// How often one of the bytes occurs, see [`frequency`].
fn share(set: &ByteSet) -> f64 {
    set.iter().map(frequency).sum()
}
