//! Files in fields of JSON: text that is found by the path of its field, in one pass and as far as the document goes.

use std::sync::Arc;

use names::folded;

use crate::base64::{data_url, whole_base64};
use crate::disposition;

/// How deep arrays and objects lie in each other that are looked at: no path is so deep. What is deeper is passed over.
const MAX_DEPTH: usize = 128;
/// The most names of one file that are kept.
const MAX_NAMES: usize = 8;
/// The longest path of a field, in keys and `[]`.
const MAX_STEPS: usize = 16;

/// A field of a document that holds a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    path: Vec<Step>,
    /// The key beside it that has the file's name.
    name: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(Vec<u8>),
    /// Each element of an array.
    Each,
}

/// A text in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which of the fields.
    pub field: usize,
    /// Its text, without escapes.
    pub text: Vec<u8>,
    /// What the keys beside it say that the file is called, shared by the texts of an object.
    pub names: Arc<Vec<Vec<u8>>>,
    /// The document goes on behind it.
    pub complete: bool,
}

impl Field {
    /// Reads the path of a field: keys joined by `.`, with `[]` behind a key for each element of an array (`files[].content`). `name`
    /// is the key of the same object that has the file's name; empty for none. The case of keys does not matter: some applications
    /// ignore it.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub fn parse(path: &str, name: &str) -> Result<Self, &'static str> {
        let mut steps = Vec::new();
        for part in path.split('.') {
            let key = part.trim_end_matches("[]");
            if key.contains(['[', ']']) {
                return Err("brackets are empty and stand behind a key");
            }
            // A document may be an array itself.
            if key.is_empty() && !(steps.is_empty() && part.ends_with("[]")) {
                return Err("a key is empty");
            }
            if !key.is_empty() {
                steps.push(Step::Key(folded(key.as_bytes())));
            }
            steps.extend((0..(part.len() - key.len()) / 2).map(|_| Step::Each));
        }
        if steps.len() > MAX_STEPS {
            return Err("the path has more than 16 keys");
        }
        Ok(Self { path: steps, name: Some(folded(name.as_bytes())).filter(|name| !name.is_empty()) })
    }
}

/// Whether a body begins as a document of JSON does that is an object or an array.
#[must_use]
pub fn begins(body: &[u8]) -> bool {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    matches!(text.first(), Some(b'{' | b'['))
}

/// Whether a body begins as such a document does in UTF-16 or UTF-32, which [`find`] does not read.
#[must_use]
pub fn begins_wide(body: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n');
    let start = body.iter().take_while(|byte| is_blank(byte) || matches!(byte, 0xfe | 0xff)).count();
    let (before, text) = body.split_at_checked(start).unwrap_or((body, b""));
    let mut letters = text.iter().filter(|byte| !is_blank(byte));
    let opens = matches!(letters.next(), Some(b'{' | b'['));
    let goes_on =
        matches!(letters.next(), Some(b'"' | b'{' | b'[' | b'}' | b']' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'));
    opens && goes_on && (before.contains(&0) || text.get(1) == Some(&0))
}

/// What the text of a field decodes to, as base64; `None` where decoders differ.
#[must_use]
pub fn content(text: &[u8]) -> Option<Vec<u8>> {
    whole_base64(text)
}

/// An array or an object that is open.
struct Frame {
    step: Step,
    /// A key of an object was read with its colon: the next text is a value.
    valued: bool,
    /// The names in it, by their fields.
    names: Vec<(usize, Vec<Vec<u8>>)>,
    /// The places of the texts that were found in it.
    found: Vec<usize>,
}

impl Frame {
    /// Takes a name of a field's file. More than are kept are one that is not read: it may be the one that counts.
    fn name(&mut self, field: usize, name: Vec<u8>) {
        match self.names.iter_mut().find(|(of, _)| *of == field) {
            Some((_, list)) => disposition::add_within(MAX_NAMES, list, name),
            None => {
                let mut list = Vec::new();
                disposition::add_within(MAX_NAMES, &mut list, name);
                self.names.push((field, list));
            }
        }
    }

    /// Gives the texts in it their names.
    fn close(self, found: &mut [Found]) {
        let names: Vec<_> = self.names.into_iter().map(|(field, list)| (field, Arc::new(list))).collect();
        for at in self.found {
            let Some(one) = found.get_mut(at) else { continue };
            if let Some((_, list)) = names.iter().find(|(field, _)| *field == one.field) {
                one.names = Arc::clone(list);
            }
        }
    }
}

/// The texts in fields of a document that are not empty, at most `most` of them.
#[must_use]
pub fn find(document: &[u8], fields: &[Field], most: usize) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    // How many arrays and objects are open below those that are looked at.
    let mut deeper: usize = 0;
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' if deeper > 0 || frames.len() >= MAX_DEPTH => deeper += 1,
            b'{' | b'[' => {
                let step = if *byte == b'{' { Step::Key(Vec::new()) } else { Step::Each };
                frames.push(Frame { step, valued: *byte == b'[', names: Vec::new(), found: Vec::new() });
            }
            b'}' | b']' if deeper > 0 => deeper -= 1,
            b'}' | b']' => {
                if let Some(frame) = frames.pop() {
                    frame.close(&mut found);
                }
            }
            b',' if deeper == 0 => {
                let object = frames.last_mut().filter(|frame| matches!(frame.step, Step::Key(_)));
                object.into_iter().for_each(|frame| frame.valued = false);
            }
            b'"' => {
                let rest = document.get(at..).unwrap_or_default();
                let (length, complete) = string_length(rest);
                let raw = rest.get(..length).unwrap_or_default();
                at = at.saturating_add(length + 1);
                if deeper > 0 {
                    continue;
                }
                if let Some(frame @ Frame { valued: false, .. }) = frames.last_mut() {
                    frame.step = Step::Key(folded(&unescaped(raw)));
                    if let Some(behind) = colon(document, at) {
                        (frame.valued, at) = (true, behind);
                    }
                    continue;
                }
                for (place, field) in fields.iter().enumerate() {
                    let (holds, names) = (is_at(&frames, &field.path), is_name(&frames, field));
                    let Some(frame) = frames.last_mut().filter(|_| holds || names) else { continue };
                    let text = unescaped(raw);
                    if names {
                        frame.name(place, text.clone());
                    }
                    // A text without content is no file.
                    if holds && found.len() < most && !data_url(&text).1.is_empty() {
                        frame.found.push(found.len());
                        found.push(Found { field: place, text, names: Arc::default(), complete });
                    }
                }
            }
            _ => {}
        }
    }
    frames.into_iter().for_each(|frame| frame.close(&mut found));
    found
}

fn is_at(frames: &[Frame], path: &[Step]) -> bool {
    frames.len() == path.len() && frames.iter().zip(path).all(|(frame, step)| frame.step == *step)
}

/// Whether a text is the name of a field's file: the same path with another last key.
fn is_name(frames: &[Frame], field: &Field) -> bool {
    let (Some(name), Some((_, parents)), Some((last, open))) =
        (&field.name, field.path.split_last(), frames.split_last())
    else {
        return false;
    };
    is_at(open, parents) && last.step == Step::Key(name.clone())
}

/// How long a string is, and whether it ends.
fn string_length(text: &[u8]) -> (usize, bool) {
    let mut from = 0;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return (text.len(), false),
            Some(at) if rest.get(at) == Some(&b'"') => return (from + at, true),
            Some(at) => from = from.saturating_add(at + 2),
        }
    }
}

/// The place behind a colon, where one follows.
fn colon(document: &[u8], at: usize) -> Option<usize> {
    let rest = document.get(at..)?;
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    (rest.get(blanks) == Some(&b':')).then_some(at + blanks + 1)
}

/// Without the escapes of JSON (RFC 8259, section 7).
fn unescaped(raw: &[u8]) -> Vec<u8> {
    if memchr::memchr(b'\\', raw).is_none() {
        return raw.to_vec();
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let Some((escape, behind)) = rest.split_first() else { break };
        rest = behind;
        match escape {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'u' => {
                let (unit, after) = unit(rest);
                rest = after;
                let low = rest.strip_prefix(b"\\u").map(self::unit);
                let letter = match low {
                    Some((low, after)) if (0xd800..0xdc00).contains(&unit) && (0xdc00..0xe000).contains(&low) => {
                        rest = after;
                        char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
                    }
                    _ => char::from_u32(unit),
                };
                let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => text.push(*other),
        }
    }
    text
}

/// The number of four hexadecimal digits, and what follows them.
fn unit(text: &[u8]) -> (u32, &[u8]) {
    let digits = text.get(..4).unwrap_or(text);
    let value = digits.iter().fold(0, |value, digit| value << 4 | char::from(*digit).to_digit(16).unwrap_or(0));
    (value, text.get(digits.len()..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_keys_does_not_matter() {
        let fields = [Field::parse("Files[].task", "fileName").unwrap()];
        for document in [
            r#"{"FILES": [{"Task": "AA==", "FILENAME": "a"}]}"#,
            r#"{"file\u017f": [{"ta\u017f\u212a": "AA==", "filename": "a"}]}"#,
        ] {
            let found = find(document.as_bytes(), &fields, 10);
            assert_eq!((found.len(), found[0].names.as_slice()), (1, &[b"a".to_vec()][..]), "{document}");
        }
        assert!(find(br#"{"file": [{"task": "AA=="}]}"#, &fields, 10).is_empty());
    }

    #[test]
    fn documents_are_known_by_their_beginning() {
        for body in [b" \r\n{\"a\":1}".as_slice(), b"[]", b"\xef\xbb\xbf{}"] {
            assert!(begins(body) && !begins_wide(body), "{}", body.escape_ascii());
        }
        for body in [
            b"{\0\"\0".as_slice(),
            b"\0{\0}",
            b"\xff\xfe[\0{\0",
            b"\xfe\xff\0 \0[\x001",
            b"\0\0\0{\0\0\0\"",
            b"{\0\0\0\n\0\0\0\"\0",
        ] {
            assert!(begins_wide(body), "{}", body.escape_ascii());
        }
        for body in [b"".as_slice(), b"text", b"\xff\xfea\0,\0", b"\0\0\0\x20ftypisom", b"{\0\x01\x02", b"\0\0"] {
            assert!(!begins_wide(body), "{}", body.escape_ascii());
        }
    }
}
