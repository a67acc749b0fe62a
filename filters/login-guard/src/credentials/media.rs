//! Content types: what a body is, and what backends may take for a parameter.

use exchange::spelling;
use memchr::memmem;

use super::ends_with;

const FORM: &[u8] = b"application/x-www-form-urlencoded";
const MULTIPART: &[u8] = b"multipart/";
const MULTIPART_FORM: &[u8] = b"multipart/form-data";
const PLAIN: &[u8] = b"text/plain";

/// The most occurrences of a parameter that are looked at.
const MAX_OCCURRENCES: usize = 4;

/// What a body is by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Media<'a> {
    /// The media type as the most lenient of backends cut it: at `;`, `,` or white space.
    pub(super) name: &'a [u8],
    pub(super) is_json: bool,
    /// Some backend reads it as parts.
    pub(super) is_multipart: bool,
    /// Some backend reads it as a form.
    pub(super) is_form: bool,
    /// Backends do not agree on what it is, or the guard does not know: one may read another user in it.
    pub(super) is_odd: bool,
}

impl<'a> Media<'a> {
    pub(super) fn of(content_type: &'a [u8]) -> Self {
        let content_type = content_type.trim_ascii();
        let ends = |byte: &u8| matches!(byte, b';' | b',') || byte.is_ascii_whitespace();
        let name = content_type.split(ends).next().unwrap_or_default();
        let behind = content_type.get(name.len()..).unwrap_or_default().trim_ascii_start();
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let is_json = ends_with(without_version(name), b"json");
        let is_known = content_type.is_empty() || is_json || is(FORM) || is(MULTIPART_FORM) || is(PLAIN);
        // A comma is what several headers are joined by, of which backends take the first or the last one.
        let is_one = (behind.is_empty() || behind.starts_with(b";")) && !has_comma(behind);
        let is_odd = !is_known || !is_one;
        let begins = |known: &[u8]| name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
        Self {
            name,
            is_json,
            is_multipart: begins(MULTIPART) || (is_odd && find(content_type, b"boundary", false).next().is_some()),
            is_form: is_odd || begins(FORM) || !(is_json || is(MULTIPART_FORM)),
            is_odd,
        }
    }
}

/// `application/x-amz-json-1.1` without its version.
fn without_version(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| !byte.is_ascii_digit() && *byte != b'.').map_or(0, |last| last + 1);
    match name.get(..end).unwrap_or_default() {
        [start @ .., b'-'] if end < name.len() => start,
        start => start,
    }
}

/// Whether there is a comma that is not in quotes.
fn has_comma(text: &[u8]) -> bool {
    let mut quoted = false;
    text.iter().any(|byte| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    })
}

/// What backends may take for the value of a parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// The values, each once.
    pub(super) values: Vec<Vec<u8>>,
    /// Backends may take different ones: there are several, or one in a form that not all of them know.
    pub(super) is_odd: bool,
    /// There are more than are looked at.
    pub(super) has_more: bool,
}

/// The values that backends may take for a parameter of a header. Some take the first of several and some the last one, some know `name*`
/// and its parts (RFC 2231), and some look for the word alone, wherever it is. `in_words`: also as the end of another word.
pub(super) fn candidates(header: &[u8], name: &[u8], in_words: bool) -> Candidates {
    let mut found = Candidates::default();
    let mut parts = Vec::new();
    let mut occurrences = find(header, name, in_words);
    for (number, (is_extended, value)) in occurrences.by_ref().take(MAX_OCCURRENCES).enumerate() {
        found.is_odd |= number > 0 || is_extended;
        let value = found.take(value, is_extended);
        if is_extended {
            parts.extend_from_slice(&value);
        }
    }
    if !parts.is_empty() {
        found.add(parts);
    }
    found.has_more = occurrences.next().is_some();
    found.is_odd |= found.has_more;
    found
}

impl Candidates {
    /// Takes the values that a text may stand for; the most likely one of them.
    fn take(&mut self, text: &[u8], is_extended: bool) -> Vec<u8> {
        let mut value = match text.first() {
            Some(quote @ (b'"' | b'\'')) => {
                let inner = text.get(1..).unwrap_or_default();
                let (value, plain) = quoted(inner, *quote);
                // Not all take these for quotes, nor undo a backslash.
                if *quote == b'\'' || plain != value {
                    self.is_odd = true;
                    self.add(inner.split(|byte| byte == quote).next().unwrap_or_default().to_vec());
                    self.add(value.to_vec());
                }
                plain
            }
            _ => {
                let value = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let short = value.split(|byte| *byte == b',' || byte.is_ascii_whitespace()).next().unwrap_or_default();
                if short.len() < value.len() || value.contains(&b'"') {
                    self.is_odd = true;
                    self.add(short.to_vec());
                }
                value.to_vec()
            }
        };
        if is_extended {
            self.add(value.clone());
            let plain = value.splitn(3, |byte| *byte == b'\'').nth(2).unwrap_or(&value).to_vec();
            value = spelling::decoded(&plain).next().unwrap_or_else(|| plain.clone());
        }
        // Java decodes encoded words (RFC 2047).
        self.is_odd |= memmem::find(&value, b"=?").is_some();
        self.add(value.clone());
        value
    }

    fn add(&mut self, value: Vec<u8>) {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
    }
}

/// A text up to a quote: as it stands, and without backslashes.
fn quoted(text: &[u8], quote: u8) -> (&[u8], Vec<u8>) {
    let (mut plain, mut escaped) = (Vec::new(), false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\\' if !escaped => {
                escaped = true;
                continue;
            }
            byte if *byte == quote && !escaped => return (text.get(..at).unwrap_or_default(), plain),
            _ => plain.push(*byte),
        }
        escaped = false;
    }
    (text, plain)
}

/// What is behind each `name=`, in any case, and whether it is `name*=`. Parameters in quotes are among them: some backends do not know
/// quotes.
fn find<'a>(header: &'a [u8], name: &[u8], in_words: bool) -> impl Iterator<Item = (bool, &'a [u8])> {
    let lower = header.to_ascii_lowercase();
    let places: Vec<usize> = memmem::find_iter(&lower, name).collect();
    let length = name.len();
    places.into_iter().filter_map(move |at| {
        let before = at.checked_sub(1).and_then(|before| header.get(before));
        if !in_words && before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_*".contains(byte)) {
            return None;
        }
        let behind = header.get(at.saturating_add(length)..).unwrap_or_default();
        let stars = behind.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'*').unwrap_or(behind.len());
        let (stars, behind) = behind.split_at_checked(stars)?;
        let value = behind.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let is_extended = stars.first() == Some(&b'*');
        (stars.is_empty() || is_extended).then_some((is_extended, value))
    })
}
