//! What stands around an anchor.
//!
//! The words of a check are patterns ([`spelled`]): a quotation mark in them is a single or a double one, as it is or escaped for
//! JSON or HTML, a backslash is one or more.

use super::REACH;
use crate::escapes::{is_inside_word, is_word, quotation_at, quote_at, spelled};

/// How far in front of an anchor a word that ends there may begin, in bytes.
const ENDS: usize = 48;
/// How far in front of an anchor a message of MySQL about a table begins, in bytes.
const TABLE: usize = 200;
/// The longest name with its packages, in bytes.
const NAME: usize = 100;

/// The place of an anchor in a text.
pub(super) struct Place<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) length: usize,
}

/// A condition on the bytes around an anchor. All distances are in bytes.
#[derive(Debug)]
pub(super) enum Check {
    /// The anchor says enough.
    Always,
    /// No word character is in front.
    Start,
    /// No word character follows.
    End,
    /// One of these follows at once.
    Then(&'static [&'static str]),
    /// One of each list follows, one list behind the other.
    Chain(&'static [&'static [&'static str]]),
    /// One of these follows within a distance.
    After(usize, &'static [&'static str]),
    /// One of these stands in front, within a distance, in any case of its letters.
    Before(usize, &'static [&'static str]),
    /// The same, and it is no part of a longer word.
    BeforeWord(usize, &'static [&'static str]),
    /// One of these stands right in front, in any case of its letters.
    Ends(&'static [&'static str]),
    /// One of these begins a word in front, within a distance, and no sign that ends a sentence, a field or a tag is between.
    Near(usize, &'static [&'static str]),
    /// What MySQL writes in front of `t exist`: `Table 'shop.orders' doesn'`.
    MissingTable,
    /// The name in front, with its packages, has one of these.
    Named(&'static [&'static str]),
    /// This many digits follow at once, and no further word character.
    Digits(usize, usize),
    /// Digits follow at once, and then one of these.
    DigitsThen(&'static [&'static str]),
    /// One of these follows at once, and then a digit.
    ThenDigit(&'static [&'static str]),
    /// One of these follows at once, then a name, and then no further word in the line.
    ThenName(&'static [&'static str]),
    /// A blank follows, or an escaped one (`\n` in JSON).
    Blank,
    /// One of these follows in any case of its letters, and then a blank.
    Tag(&'static [&'static str]),
    /// Line and column follow, as stack traces of JavaScript end (`12:34)`).
    Frame,
    /// A path: a slash or a backslash in front, and no word character behind.
    Folder,
    /// The title of a page, which begins here, has one of these in any case of its letters.
    Title(&'static [&'static str]),
    /// The same, as whole words.
    TitleWords(&'static [&'static str]),
    /// The title of a page, which begins here, is a status of IIS with its substatus.
    StatusTitle,
    /// The title has `WSO` as a word and digits behind it.
    WsoTitle,
    /// All of them.
    All(&'static [Check]),
    /// One of them.
    Any(&'static [Check]),
}

impl Check {
    pub(super) fn holds(&self, place: &Place<'_>) -> bool {
        let behind = place.behind(REACH);
        match self {
            Self::Always => true,
            Self::Start => place.starts(),
            Self::End => !behind.first().copied().is_some_and(is_word),
            Self::Then(words) => words.iter().any(|word| then(behind, word).is_some()),
            Self::Chain(lists) => {
                let follow =
                    |at, words: &&[&str]| words.iter().find_map(|word| spelled(behind, at, word.as_bytes(), false));
                lists.iter().try_fold(0, follow).is_some()
            }
            Self::After(distance, words) => {
                let behind = place.behind(*distance);
                words
                    .iter()
                    .any(|word| (0..behind.len()).any(|at| spelled(behind, at, word.as_bytes(), false).is_some()))
            }
            Self::Before(distance, words) => place.each_before(*distance, words, |_, _, _| true),
            Self::BeforeWord(distance, words) => {
                place.each_before(*distance, words, |before, at, _| !is_inside_word(before, at))
            }
            Self::Ends(words) => place.each_before(ENDS, words, |before, _, end| end == before.len()),
            Self::Near(distance, words) => place.each_before(*distance, words, |before, at, end| {
                let between = before.get(end..).unwrap_or_default();
                let capital = before.get(at).is_some_and(u8::is_ascii_uppercase);
                (capital || !before.get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_alphabetic))
                    && !between.iter().any(|byte| b",.{}[]<>|".contains(byte))
            }),
            Self::MissingTable => is_missing_table(place.before(TABLE)),
            Self::Named(words) => {
                let before = place.before(NAME);
                let is_name = |byte: &&u8| is_word(**byte) || b".$\\".contains(byte);
                let length = before.iter().rev().take_while(is_name).count();
                let name = before.get(before.len() - length..).unwrap_or_default();
                words.iter().any(|word| memchr::memmem::find(name, word.as_bytes()).is_some())
            }
            Self::Digits(least, most) => {
                let count = digits(behind);
                (*least..=*most).contains(&count) && !behind.get(count).copied().is_some_and(is_word)
            }
            Self::DigitsThen(words) => {
                let count = digits(behind);
                let rest = behind.get(count..).unwrap_or_default();
                count > 0 && words.iter().any(|word| then(rest, word).is_some())
            }
            Self::ThenDigit(words) => {
                let is_digit = |at| behind.get(at..).unwrap_or_default().first().is_some_and(u8::is_ascii_digit);
                words.iter().any(|word| then(behind, word).is_some_and(is_digit))
            }
            Self::ThenName(words) => words.iter().filter_map(|word| then(behind, word)).any(|at| {
                let rest = behind.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| is_word(**byte) || b".$".contains(byte)).count();
                let end = rest.get(length..).unwrap_or_default();
                let next = end.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
                length > 0 && !next.copied().is_some_and(is_word)
            }),
            Self::Blank => is_blank(behind),
            Self::Tag(words) => words.iter().any(|word| {
                let (start, rest) = behind.split_at_checked(word.len()).unwrap_or_default();
                start.eq_ignore_ascii_case(word.as_bytes()) && is_blank(rest)
            }),
            Self::Frame => {
                let line = digits(behind);
                let rest = behind.get(line..).and_then(|rest| rest.strip_prefix(b":")).unwrap_or_default();
                let column = digits(rest);
                let end = rest.get(column..).unwrap_or_default();
                line > 0 && column > 0 && matches!(end, [b')' | b'\\' | b'\n' | b'\r' | b'<', ..])
            }
            Self::Folder => {
                let front = place.before(1).last().copied();
                matches!(front, Some(b'/' | b'\\')) && !behind.first().copied().is_some_and(is_word)
            }
            Self::Title(words) => words.iter().any(|word| contains(place.title(), word.as_bytes())),
            Self::TitleWords(words) => {
                let title = place.title();
                let ends = |end: usize| !title.get(end).copied().is_some_and(is_word);
                let has = |word: &&str| {
                    (0..title.len()).any(|at| {
                        spelled(title, at, word.as_bytes(), true).is_some_and(ends) && !is_inside_word(title, at)
                    })
                };
                words.iter().any(has)
            }
            Self::StatusTitle => {
                matches!(place.title().trim_ascii_start(), [b'4' | b'5', b'0', digit, b'.', rest @ ..]
                    if digit.is_ascii_digit() && matches!(digits(rest), 1..=2) && rest.get(digits(rest)..).is_some_and(|rest| rest.starts_with(b" - ")))
            }
            Self::WsoTitle => {
                let title = place.title();
                let word = |at: usize| {
                    let number = title.get(at + 3..).unwrap_or_default();
                    let number = number.strip_prefix(b" ").unwrap_or(number);
                    number.first().is_some_and(u8::is_ascii_digit)
                        && !at.checked_sub(1).and_then(|before| title.get(before)).copied().is_some_and(is_word)
                };
                let named = |at: &usize| title.get(*at..at + 3).is_some_and(|three| three.eq_ignore_ascii_case(b"wso"));
                (0..title.len()).filter(named).any(word)
            }
            Self::All(checks) => checks.iter().all(|check| check.holds(place)),
            Self::Any(checks) => checks.iter().any(|check| check.holds(place)),
        }
    }
}

impl<'a> Place<'a> {
    fn behind(&self, distance: usize) -> &'a [u8] {
        let from = self.at.saturating_add(self.length);
        self.text.get(from..self.text.len().min(from.saturating_add(distance))).unwrap_or_default()
    }

    fn before(&self, distance: usize) -> &'a [u8] {
        self.text.get(self.at.saturating_sub(distance)..self.at).unwrap_or_default()
    }

    fn starts(&self) -> bool {
        !is_inside_word(self.text, self.at)
    }

    /// Whether one of these stands in front, within a distance, at a place that fits: it gets the text in front, and where the word
    /// begins and ends in it.
    fn each_before(&self, distance: usize, words: &[&str], fits: impl Fn(&[u8], usize, usize) -> bool) -> bool {
        let before = self.before(distance);
        let found = |word: &[u8]| {
            (0..before.len()).any(|at| spelled(before, at, word, true).is_some_and(|end| fits(before, at, end)))
        };
        words.iter().any(|word| found(word.as_bytes()))
    }

    /// What follows up to the next tag.
    fn title(&self) -> &'a [u8] {
        let behind = self.behind(160);
        behind.get(..memchr::memchr(b'<', behind).unwrap_or(behind.len())).unwrap_or_default()
    }
}

/// Whether a text ends with a table of MySQL that is missing. MySQL writes its name between apostrophes, as `database.table`. A name
/// of digits alone, or one in other quotation marks and without a database, may be a table to sit at.
fn is_missing_table(text: &[u8]) -> bool {
    let ends = |at: &usize| spelled(text, *at, b"' doesn'", false) == Some(text.len());
    let Some(close) = (text.len().saturating_sub(ENDS)..text.len()).find(ends) else { return false };
    let name = |at: usize| {
        let start = spelled(text, at, b"Table '", false).filter(|start| *start < close)?;
        let inner = (start..close).any(|at| quote_at(text, at).is_some());
        let open = spelled(text, at, b"Table ", false)?;
        (!inner && !is_inside_word(text, at)).then_some((open, start))
    };
    let Some((open, start)) = (0..close).find_map(name) else { return false };
    let name = text.get(start..close).unwrap_or_default();
    let apostrophe = |at| quotation_at(text, at).is_some_and(|quote| quote.code == u32::from(b'\''));
    let lettered = name.iter().any(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 128);
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte) || b"$-#@".contains(byte) || *byte >= 128);
    let dotted =
        name.windows(3).any(|part| part.get(1) == Some(&b'.') && is_name(part.first()) && is_name(part.last()));
    lettered && (dotted || (apostrophe(open) && apostrophe(close)))
}

fn is_blank(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'n' | b't' | b'r', ..]) || text.first().is_some_and(u8::is_ascii_whitespace)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The end of a word that a text begins with.
fn then(text: &[u8], word: &str) -> Option<usize> {
    spelled(text, 0, word.as_bytes(), false)
}

/// Whether a text has a word in any case of its letters.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}
