//! Where strings, names and comments of a value end.

use memchr::memchr_iter;

/// The delimiters of strings and of quoted names.
const DELIMITERS: [u8; 3] = [b'\'', b'"', b'`'];

/// What long tokens end at, found once for all readings: windows overlap, and the same long token may be in many.
#[derive(Debug)]
pub(super) struct Marks {
    /// For each delimiter, where strings end: at the last of an odd number of delimiters in a row, without one that a
    /// backslash escapes.
    strings: [Vec<usize>; DELIMITERS.len()],
    lines: Vec<usize>,
    brackets: Vec<usize>,
    comment_starts: Vec<usize>,
    comment_ends: Vec<usize>,
    /// Each `'` with the byte in front of it, as (that byte, its place): in this order.
    before_quotes: Vec<(u8, usize)>,
    double_dollars: Vec<usize>,
}

impl Marks {
    pub(super) fn of(value: &[u8]) -> Self {
        Self {
            strings: DELIMITERS.map(|delimiter| string_ends(value, delimiter)),
            lines: memchr_iter(b'\n', value).collect(),
            brackets: memchr_iter(b']', value).collect(),
            comment_starts: pairs(value, b"/*"),
            comment_ends: pairs(value, b"*/"),
            before_quotes: before_quotes(value),
            double_dollars: pairs(value, b"$$"),
        }
    }

    /// Where a string ends whose text begins at `start`, behind a delimiter of any kind.
    pub(super) fn string_end(&self, value: &[u8], start: usize, delimiter: u8) -> Option<usize> {
        let text = value.get(start..).unwrap_or_default();
        let doubled = text.iter().take_while(|byte| **byte == delimiter).count();
        if doubled % 2 == 1 {
            return Some(start + doubled - 1);
        }
        let of = DELIMITERS.iter().position(|known| *known == delimiter)?;
        first_from(self.strings.get(of)?, start + doubled)
    }

    /// The next line feed.
    pub(super) fn line_end(&self, from: usize) -> Option<usize> {
        first_from(&self.lines, from)
    }

    /// The next `]`.
    pub(super) fn bracket(&self, from: usize) -> Option<usize> {
        first_from(&self.brackets, from)
    }

    /// The next `*/`.
    pub(super) fn comment_end(&self, from: usize) -> Option<usize> {
        first_from(&self.comment_ends, from)
    }

    /// The next `'` behind a byte: the place of that byte.
    pub(super) fn before_quote(&self, byte: u8, from: usize) -> Option<usize> {
        let at = self.before_quotes.partition_point(|mark| *mark < (byte, from));
        self.before_quotes.get(at).filter(|(found, _)| *found == byte).map(|(_, place)| *place)
    }

    /// The next `$$`.
    pub(super) fn double_dollar(&self, from: usize) -> Option<usize> {
        first_from(&self.double_dollars, from)
    }

    /// The next `/*`.
    pub(super) fn comment_start(&self, from: usize) -> Option<usize> {
        first_from(&self.comment_starts, from)
    }
}

fn first_from(marks: &[usize], from: usize) -> Option<usize> {
    marks.get(marks.partition_point(|mark| *mark < from)).copied()
}

/// Whether a backslash escapes what is at this place.
pub(super) fn is_escaped(value: &[u8], at: usize) -> bool {
    let before = value.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

fn string_ends(value: &[u8], delimiter: u8) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut delimiters = memchr_iter(delimiter, value).peekable();
    while let Some(first) = delimiters.next() {
        let mut last = first;
        while delimiters.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        let start = first + usize::from(is_escaped(value, first));
        if (last + 1 - start) % 2 == 1 {
            ends.push(last);
        }
    }
    ends
}

fn before_quotes(value: &[u8]) -> Vec<(u8, usize)> {
    let before = |quote: usize| quote.checked_sub(1).and_then(|place| Some((*value.get(place)?, place)));
    let mut found: Vec<(u8, usize)> = memchr_iter(b'\'', value).filter_map(before).collect();
    found.sort_unstable();
    found
}

/// Where two bytes occur, also those that share one.
fn pairs(value: &[u8], pair: &[u8; 2]) -> Vec<usize> {
    let [first, second] = *pair;
    memchr_iter(first, value).filter(|at| value.get(at + 1) == Some(&second)).collect()
}
