//! What stands around an anchor.

use super::REACH;

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
    /// It is a whole word.
    Word,
    /// No word character follows.
    End,
    /// One of these follows at once.
    Then(&'static [&'static str]),
    /// One of these follows within a distance.
    After(usize, &'static [&'static str]),
    /// One of these stands in front, within a distance, in any case of its letters.
    Before(usize, &'static [&'static str]),
    /// This many digits follow at once, and no further word character.
    Digits(usize, usize),
    /// Digits follow at once, and then one of these.
    DigitsThen(&'static [&'static str]),
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
            Self::Word => {
                !place.before(1).last().copied().is_some_and(is_word) && !behind.first().copied().is_some_and(is_word)
            }
            Self::End => !behind.first().copied().is_some_and(is_word),
            Self::Then(words) => words.iter().any(|word| behind.starts_with(word.as_bytes())),
            Self::After(distance, words) => {
                let behind = place.behind(*distance);
                words.iter().any(|word| memchr::memmem::find(behind, word.as_bytes()).is_some())
            }
            Self::Before(distance, words) => {
                let before = place.before(*distance);
                words.iter().any(|word| contains(before, word.as_bytes()))
            }
            Self::Digits(least, most) => {
                let count = digits(behind);
                (*least..=*most).contains(&count) && !behind.get(count).copied().is_some_and(is_word)
            }
            Self::DigitsThen(words) => {
                let count = digits(behind);
                let rest = behind.get(count..).unwrap_or_default();
                count > 0 && words.iter().any(|word| rest.starts_with(word.as_bytes()))
            }
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

    /// What follows up to the next tag.
    fn title(&self) -> &'a [u8] {
        let behind = self.behind(160);
        behind.get(..memchr::memchr(b'<', behind).unwrap_or(behind.len())).unwrap_or_default()
    }
}

fn is_blank(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'n' | b't' | b'r', ..]) || text.first().is_some_and(u8::is_ascii_whitespace)
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a text has a word in any case of its letters.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}
