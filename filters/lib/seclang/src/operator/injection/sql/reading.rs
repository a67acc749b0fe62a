//! One reading of a value: its fingerprint, and whether that is one of an injection.

use memchr::memmem;

use super::fold::{Fold, MAX_TOKENS, State};
use super::marks::Marks;
use super::meter::Meter;
use super::token::{FoldedTokens, Kind, Token};
use super::tokens::{Dialect, DialectHints, Tokens};
use super::words;

/// The letters of a fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Fingerprint {
    letters: [u8; MAX_TOKENS],
    length: usize,
}

impl Fingerprint {
    fn of(tokens: &[Token]) -> Self {
        let mut fingerprint = Self::default();
        for (letter, token) in fingerprint.letters.iter_mut().zip(tokens) {
            *letter = token.kind.letter();
            fingerprint.length += 1;
        }
        fingerprint
    }

    /// Its letters, at most five.
    pub(in super::super) fn letters(&self) -> &[u8] {
        self.letters.get(..self.length).unwrap_or_default()
    }
}

/// Where a reading begins, and as what.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    /// The first byte that is read.
    pub(super) at: usize,
    /// The delimiter of a string that has begun before.
    pub(super) inside: Option<u8>,
    /// Whether there is an operand before it.
    pub(super) after_operand: bool,
    pub(super) dialect: Dialect,
}

/// The result of a reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) fingerprint: Fingerprint,
    /// The tokens of the fingerprint.
    pub(super) tokens: FoldedTokens,
    pub(super) is_injection: bool,
    pub(super) hints: DialectHints,
    /// Whether it came to the end of the value, and not by a string that nothing closes, unless that is short.
    pub(super) ends: bool,
}

/// How long a string may be at the end of an injection that nothing closes.
const LONGEST_END: usize = 1024;

/// Units of work for each byte to find the ends of long tokens.
const MARKS_COST: usize = 6;

/// Reads one value, as often as is needed.
pub(super) struct Reader<'v> {
    pub(super) value: &'v [u8],
    pub(super) meter: Meter,
    /// Where its long tokens end, once that is known.
    marks: Option<Marks>,
    /// Whether the word is in it that hides from the audit log of SQL Server; looked for once.
    hides_from_audit: Option<bool>,
}

impl<'v> Reader<'v> {
    /// Nothing is read beyond what the meter admits.
    pub(super) fn new(value: &'v [u8], meter: Meter) -> Self {
        Self { value, meter, marks: None, hides_from_audit: None }
    }

    /// Where a comment ends whose text begins here.
    pub(super) fn comment_end(&mut self, from: usize) -> Option<usize> {
        self.mark();
        self.marks.as_ref()?.comment_end(from)
    }

    /// Where a line ends.
    pub(super) fn line_end(&mut self, from: usize) -> Option<usize> {
        self.mark();
        self.marks.as_ref()?.line_end(from)
    }

    /// Finds the ends of long tokens, for values that are read from many positions.
    pub(super) fn mark(&mut self) {
        if self.marks.is_none() {
            self.meter.charge(self.value.len().saturating_mul(MARKS_COST));
            self.marks = Some(Marks::of(self.value));
        }
    }

    /// Reads the value once. `was_here` is asked at each step whether an earlier reading was in the same state; this one
    /// then ends, as an injection to neither of them.
    pub(super) fn read(&mut self, start: Start, was_here: impl FnMut(State<'_>) -> bool) -> Reading {
        self.meter.charge_reading();
        let marks = self.marks.as_ref();
        let mut tokens = Tokens::new(self.value, start.at, start.inside, start.dialect, &mut self.meter, marks);
        let operand = start.after_operand.then(|| Token::new(Kind::Number, b"1"));
        let mut folded = Fold::run(&mut tokens, operand, was_here);
        let (hints, at) = (tokens.hints(), tokens.last_at());
        let ended = tokens.at() >= self.value.len();
        let unclosed = folded.as_slice().last().is_some_and(|token| token.kind == Kind::String && token.close == 0);
        let ends = ended && (!unclosed || self.value.len() - at <= LONGEST_END);
        // PHP: a backtick at the end hides what the query goes on with.
        if let [_, _, .., last] = folded.as_mut_slice()
            && (last.kind, last.open, last.close, last.text().is_empty()) == (Kind::Bareword, b'`', 0, true)
        {
            last.kind = Kind::Comment;
        }
        if folded.as_slice().iter().any(|token| token.kind == Kind::Evil) {
            folded = FoldedTokens::of(Token::new(Kind::Evil, b"X"));
        }
        let fingerprint = Fingerprint::of(folded.as_slice());
        let is_injection =
            words::is_listed(fingerprint.letters()) && !self.is_harmless(&fingerprint, folded.as_slice(), hints);
        Reading { fingerprint, tokens: folded, is_injection, hints, ends }
    }

    /// Whether a value with the fingerprint of an injection is usual text. The tokens of short fingerprints decide.
    fn is_harmless(&mut self, fingerprint: &Fingerprint, tokens: &[Token], hints: DialectHints) -> bool {
        if let [_, .., b'c'] = fingerprint.letters()
            && *self.hides_from_audit.get_or_insert_with(|| memmem::find(self.value, b"sp_password").is_some())
        {
            return false;
        }
        match (fingerprint.letters(), tokens) {
            ([_, b'U'], _) => hints.tokens == 2,
            ([first, second], [one, other]) => {
                let comment = other.first();
                match (*first, *second) {
                    _ if comment == b'#' => true,
                    (b'n', b'c') if comment != b'/' => true,
                    (b'1', b'c') if comment == b'/' || hints.tokens > 2 => false,
                    (b'1', b'c') => !ends_before_comment(self.value, one.text().len()),
                    _ => other.text().len() > 2 && comment == b'-',
                }
            }
            // `...a' + 'b...` is an injection, `'a' + 'b'` is not.
            (b"sos" | b"s&s", [one, _, other]) => one.open != 0 || other.close != 0 || one.close != other.open,
            // `sexy and 17`
            (b"s&n" | b"n&1" | b"1&1" | b"1&v" | b"1&s", _) => hints.tokens == 3,
            ([_, b'k', _], [_, word, _]) => {
                let starts = word.text().get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"INTO"));
                !starts || word.text().len() < 5
            }
            _ => false,
        }
    }
}

/// Whether white space or a comment follows the first bytes of a value: else its number is part of something else, as in
/// `1234-ABCD--`. High bytes count for white space.
fn ends_before_comment(value: &[u8], length: usize) -> bool {
    let rest = value.get(length..).unwrap_or_default();
    matches!(rest, [] | [0..=b' ' | 0x80.., ..] | [b'/', b'*', ..] | [b'-', b'-', ..])
}
