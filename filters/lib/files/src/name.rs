//! What the name of a file says: its extensions as servers, systems and readers see them.

use crate::disposition::percent;

/// The longest name that is read, in bytes.
const MAX_NAME: usize = 4096;
/// The most extensions of a name.
const MAX_EXTENSIONS: usize = 16;

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
}

impl Name {
    /// Reads a name.
    #[must_use]
    pub fn read(name: &[u8]) -> Self {
        let name = name.get(..MAX_NAME).unwrap_or(name);
        let null_byte = name.contains(&0) || memchr::memmem::find(name, b"%00").is_some();
        let text = String::from_utf8_lossy(name);
        let reordered = text.chars().any(|letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
        let plain: String = text.chars().filter_map(folded).collect();
        let absolute = is_absolute(&plain);
        let up = plain.split(['/', '\\']).any(is_up);
        let leaves_folder = up || twice_decoded(&plain).split(['/', '\\']).any(is_up);
        // `a.php/.` and `a.php/` are `a.php` for some systems.
        let segments =
            || plain.rsplit(['/', '\\']).map(trimmed).filter(|segment| !segment.is_empty() && *segment != ".");
        let whole = segments().next().unwrap_or_default().to_ascii_lowercase();
        let mut extensions: Vec<String> =
            whole.split('.').skip(1).map(extension).filter(|word| !word.is_empty()).collect();
        extensions.drain(..extensions.len().saturating_sub(MAX_EXTENSIONS));
        let shown =
            segments().next().unwrap_or_default().chars().filter(|letter| !letter.is_control()).take(128).collect();
        Self { shown, extensions, whole, null_byte, leaves_folder, absolute, reordered }
    }

    /// The last extension.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        self.extensions.last().map(String::as_str)
    }
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

/// Without what Windows removes at the end: dots, white space, and streams (`::$DATA`, `:stream`).
fn trimmed(segment: &str) -> &str {
    // The drive of `C:a.php` is no name with a stream.
    let drive = matches!(segment.as_bytes(), [letter, b':', _, ..] if letter.is_ascii_alphabetic());
    let segment = if drive { segment.get(2..).unwrap_or_default() } else { segment };
    let plain = segment.split(':').next().unwrap_or_default();
    plain
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

/// With percent escapes undone twice, for paths that were escaped once more.
fn twice_decoded(text: &str) -> String {
    match text.contains('%') {
        true => String::from_utf8_lossy(&percent(&percent(text.as_bytes()))).into_owned(),
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
