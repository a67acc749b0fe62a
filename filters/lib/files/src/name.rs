//! What the name of a file says: its extensions as servers, systems and readers see them.

use std::borrow::Cow;

use crate::disposition::{UNREAD, percent};

/// How many bytes of a name are read: the last ones, where its extensions are. No system writes a longer path.
const MAX_NAME: usize = 64 << 10;
/// How many extensions are kept from the first on, and how many from the last on. Names of file systems have 255 bytes at most, and
/// thus fewer extensions than either.
const MAX_EXTENSIONS: usize = 128;
/// The ASCII letters that the characters from U+00C0 and from U+1E00 on are built of (NFKD); `?` for those of none.
const LATIN: [(u32, &[u8]); 2] = [
    (
        0xc0,
        b"AAAAAA?CEEEEIIII?NOOOOO??UUUUY??aaaaaa?ceeeeiiii?nooooo??uuuuy?yAaAaAaCcCcCcCcDd??EeEeEeEeEeGgGgGgGg\
Hh??IiIiIiIiI???JjKk?LlLlLlLl??NnNnNnn??OoOoOo??RrRrRrSsSsSsSsTtTt??UuUuUuUuUuUuWwYyYZzZzZzs",
    ),
    (
        0x1e00,
        b"AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMmMmMmNnNnNnNnOoOoOoOoPpPpRrRrRrRrSsSs\
SsSsSsTtTtTtTtUuUuUuUuUuVvVvWwWwWwWwWwXxXxYyZzZzZzhtwyas????AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEeEeEeEeEe\
IiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUuUuYyYyYyYy??????",
    ),
];

/// A name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Name {
    /// The last segment of the path, as text that can be shown.
    pub shown: String,
    /// Its extensions from the first to the last, in lower case, as far as they are ASCII; none for a name without a dot.
    pub extensions: Vec<String>,
    /// The whole last segment in lower case.
    pub whole: String,
    /// It holds a NUL byte, raw or escaped (`%00`).
    pub null_byte: bool,
    /// A segment of its path is `..`, or it begins at the root or at a drive.
    pub leaves_folder: bool,
    /// It begins at the root, at a drive, or at a share.
    pub absolute: bool,
    /// It holds characters that change the order in which it is shown (Unicode bidirectional overrides, UAX 9).
    pub reordered: bool,
    /// Its character set is not read, so that its extensions are not known.
    pub undecodable: bool,
    /// What it is for others: for systems where a colon is an ordinary character, and for applications that remove characters of names.
    pub others: Vec<Reading>,
}

/// Another reading of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The whole last segment in lower case.
    pub whole: String,
    /// Its extensions from the first to the last, in lower case.
    pub extensions: Vec<String>,
    /// It has only ASCII letters and digits of the name: what applications make of names that they do not want to store as they are.
    pub reduced: bool,
}

impl Reading {
    /// The last extension.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        self.extensions.last().map(String::as_str)
    }
}

impl Name {
    /// Reads a name.
    #[must_use]
    pub fn read(name: &[u8]) -> Self {
        let undecodable = memchr::memmem::find(name, UNREAD).is_some();
        let front = name.get(..MAX_NAME).unwrap_or(name);
        let last = name.get(name.len().saturating_sub(MAX_NAME)..).unwrap_or(name);
        let name = without_long_forms(name);
        let null_byte = name.contains(&0) || memchr::memmem::find(&name, b"%00").is_some();
        let bytes = without_long_forms(last);
        let text = String::from_utf8_lossy(&bytes);
        let reordered = text.chars().any(|letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
        let plain: String = text.chars().flat_map(letters).collect();
        let decoded = twice_decoded(&plain);
        let absolute = match front.len() == last.len() {
            true => is_absolute(&plain) || is_absolute(&decoded),
            false => is_absolute(&folded_text(front)) || is_absolute(&path(front)),
        };
        let up = plain.split(['/', '\\']).any(is_up);
        let leaves_folder = up || decoded.split(['/', '\\']).any(is_up);
        // `a.php/.` and `a.php/` are `a.php` for some systems.
        let is_name = |segment: &&str| !segment.is_empty() && *segment != ".";
        let segment = plain.rsplit(['/', '\\']).map(trimmed).find(is_name).unwrap_or_default();
        let with_colons = plain.rsplit(['/', '\\']).map(without_ends).find(is_name).unwrap_or_default();
        let whole = segment.to_ascii_lowercase();
        let extensions = extensions(&whole, extension);
        let shown = segment.chars().filter(|letter| !letter.is_control()).take(128).collect();
        let others = others(segment, with_colons);
        Self { shown, extensions, whole, null_byte, leaves_folder, absolute, reordered, undecodable, others }
    }

    /// The readings of a name with percent escapes undone, once and twice; none if it has no escapes.
    pub(crate) fn unescaped(name: &[u8]) -> Vec<Self> {
        if !name.contains(&b'%') {
            return Vec::new();
        }
        let once = percent(name);
        let twice = percent(&once);
        let again = (twice != once).then(|| Self::read(&twice));
        std::iter::once(Self::read(&once)).chain(again).collect()
    }

    /// The last extension.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        self.extensions.last().map(String::as_str)
    }
}

/// A path as systems and lenient programs read it, of which every character counts.
pub(crate) fn path(path: &[u8]) -> String {
    twice_decoded(&folded_text(path))
}

/// A path as file systems compare it that ignore case, and that take a letter with an accent for the letter and the accent.
pub(crate) fn compared(path: &[u8]) -> String {
    let letters = folded_text(path);
    let letters = letters.chars().filter(|letter| !matches!(letter, '\u{300}'..='\u{36f}'));
    // A letter that has no form in ASCII is itself.
    let base = |letter: char| Some(base_letter(letter)).filter(|base| *base != '?').unwrap_or(letter);
    letters.map(base).flat_map(char::to_lowercase).collect()
}

fn folded_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&without_long_forms(bytes)).chars().flat_map(letters).collect()
}

/// With the characters of ASCII in one byte that are written in more (RFC 3629, section 3): lenient decoders read `c0 ae` as a dot.
fn without_long_forms(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.iter().any(|byte| matches!(byte, 0xc0 | 0xc1 | 0xe0 | 0xf0)) {
        return Cow::Borrowed(name);
    }
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((byte, behind)) = rest.split_first() {
        let (length, byte) = match rest {
            [high @ (0xc0 | 0xc1), low @ 0x80..=0xbf, ..] => (2, (high & 1) << 6 | low & 0x3f),
            [0xe0, high @ (0x80 | 0x81), low @ 0x80..=0xbf, ..] => (3, (high & 1) << 6 | low & 0x3f),
            [0xf0, 0x80, high @ (0x80 | 0x81), low @ 0x80..=0xbf, ..] => (4, (high & 1) << 6 | low & 0x3f),
            _ => (1, *byte),
        };
        plain.push(byte);
        rest = behind.get(length - 1..).unwrap_or_default();
    }
    Cow::Owned(plain)
}

/// The characters that file systems and programs make of one (NFKC): leaders are two or three dots.
fn letters(letter: char) -> impl Iterator<Item = char> {
    let (letter, times) = match letter {
        '\u{2025}' | '\u{fe30}' => (Some('.'), 2),
        '\u{2026}' | '\u{fe19}' => (Some('.'), 3),
        letter => (folded(letter), 1),
    };
    letter.into_iter().flat_map(move |letter| std::iter::repeat_n(letter, times))
}

/// A character as file systems compare it: other dots and slashes, full-width letters; `None` for what is not shown.
fn folded(letter: char) -> Option<char> {
    match letter {
        // Zero width, soft hyphen, joiners, marks of direction, the byte order mark, variation selectors.
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' => None,
        // What is cut off behind a NUL byte is another reading: both are part of the name here, so that `a.php%00.jpg` shows both.
        '\0' => None,
        // Digits with a full stop end with it.
        '\u{2488}'..='\u{249b}' => Some('.'),
        '\u{2024}' | '\u{3002}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}' => Some('.'),
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff0f}' => Some('/'),
        '\u{2216}' | '\u{29f5}' | '\u{fe68}' | '\u{ff3c}' => Some('\\'),
        // Full-width forms are 0xfee0 above their ASCII characters.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0),
        // The long s and the Kelvin sign are `s` and `k` without case.
        '\u{17f}' => Some('s'),
        '\u{212a}' => Some('k'),
        _ => Some(letter),
    }
}

/// The extensions of a name, each as `read` reads it; none of them empty.
fn extensions(whole: &str, read: impl Fn(&str) -> String) -> Vec<String> {
    let mut list: Vec<String> = whole.split('.').skip(1).map(read).filter(|word| !word.is_empty()).collect();
    let behind = list.len().saturating_sub(MAX_EXTENSIONS);
    if behind > MAX_EXTENSIONS {
        list.drain(MAX_EXTENSIONS..behind);
    }
    list
}

/// The other readings of a segment: with what follows a colon, and with ASCII letters and digits only.
fn others(segment: &str, with_colons: &str) -> Vec<Reading> {
    let mut list = Vec::new();
    if with_colons.contains(':') {
        let whole = with_colons.to_ascii_lowercase();
        list.push(Reading { extensions: extensions(&whole, extension), whole, reduced: false });
    }
    let plain = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    for segment in std::iter::once(segment).chain(Some(with_colons).filter(|other| *other != segment)) {
        if plain(segment) {
            continue;
        }
        list.push(reduced(segment, std::convert::identity));
        if !segment.is_ascii() {
            list.push(reduced(segment, base_letter));
        }
    }
    list.dedup();
    list
}

/// A segment with ASCII letters and digits only, as `map` makes them.
fn reduced(segment: &str, map: impl Fn(char) -> char) -> Reading {
    let kept = segment.chars().map(map).filter(|letter| letter.is_ascii_alphanumeric() || *letter == '.');
    let whole: String = kept.map(|letter| letter.to_ascii_lowercase()).collect();
    Reading { extensions: extensions(&whole, str::to_owned), whole, reduced: true }
}

/// The ASCII letter or digit that a character is built of: letters with accents, in circles, and of mathematics.
fn base_letter(letter: char) -> char {
    let code = u32::from(letter);
    let offset = |from: u32, period: u32, digit: bool| {
        let at = u8::try_from((code - from) % period).unwrap_or_default();
        char::from(match at {
            at if digit => b'0' + at,
            0..26 => b'A' + at,
            _ => b'a' + (at - 26),
        })
    };
    match code {
        0xc0..=0x17f | 0x1e00..=0x1eff => {
            let letters = LATIN.iter().rfind(|(from, _)| code >= *from);
            let found = letters.and_then(|(from, letters)| letters.get(usize::try_from(code - from).ok()?));
            found.map_or('?', |byte| char::from(*byte))
        }
        0x24b6..=0x24e9 => offset(0x24b6, 52, false),
        0x1_d400..=0x1_d6a3 => offset(0x1_d400, 52, false),
        0x1_d7ce..=0x1_d7ff => offset(0x1_d7ce, 10, true),
        _ => letter,
    }
}

/// Without what Windows removes at the end: dots, white space, and streams (`::$DATA`, `:stream`).
fn trimmed(segment: &str) -> &str {
    let segment = without_drive(segment);
    without_ends(segment.split(':').next().unwrap_or_default())
}

/// The drive of `C:a.php` is no name with a stream.
fn without_drive(segment: &str) -> &str {
    let drive = matches!(segment.as_bytes(), [letter, b':', _, ..] if letter.is_ascii_alphabetic());
    if drive { segment.get(2..).unwrap_or_default() } else { segment }
}

/// Without a drive in front, and without dots and white space at the end.
fn without_ends(segment: &str) -> &str {
    without_drive(segment)
        .trim_matches(|letter: char| letter.is_whitespace() || letter.is_control())
        .trim_end_matches(|letter: char| letter == '.' || letter.is_whitespace() || letter.is_control())
}

/// An extension without what servers cut off: `;` and what follows (IIS), white space, control characters, `%` escapes of them.
fn extension(word: &str) -> String {
    let word = word.split(';').next().unwrap_or_default();
    let word = word.split('%').next().unwrap_or_default();
    word.chars().filter(|letter| !letter.is_whitespace() && !letter.is_control()).collect()
}

fn is_up(segment: &str) -> bool {
    let segment = segment.trim_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    segment == ".." || segment.starts_with("..;") || segment.starts_with("..:")
}

/// With percent escapes undone twice, for paths that were escaped once more, and what they stand for folded as well.
fn twice_decoded(text: &str) -> String {
    match text.contains('%') {
        true => folded_text(&percent(&percent(text.as_bytes()))),
        false => text.to_owned(),
    }
}

fn is_absolute(text: &str) -> bool {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some('/' | '\\'), _) => true,
        (Some(drive), Some(':')) => drive.is_ascii_alphabetic(),
        _ => false,
    }
}
