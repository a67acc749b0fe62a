//! Files in fields of JSON: text that is found by the path of its field, in one pass and as far as the document goes.

/// How deep arrays and objects may lie in each other; what is deeper is not looked at.
const MAX_DEPTH: usize = 128;
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
    /// What the keys beside it say that the file is called.
    pub names: Vec<Vec<u8>>,
    /// The document goes on behind it.
    pub complete: bool,
}

impl Field {
    /// Reads the path of a field: keys joined by `.`, with `[]` behind a key for each element of an array (`files[].content`). `name`
    /// is the key of the same object that has the file's name; empty for none.
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
                steps.push(Step::Key(key.as_bytes().to_vec()));
            }
            steps.extend((0..(part.len() - key.len()) / 2).map(|_| Step::Each));
        }
        if steps.len() > MAX_STEPS {
            return Err("the path has more than 16 keys");
        }
        Ok(Self { path: steps, name: Some(name.as_bytes().to_vec()).filter(|name| !name.is_empty()) })
    }
}

/// An array or an object that is open.
struct Frame {
    start: usize,
    step: Step,
    /// A key of an object was read with its colon: the next text is a value.
    valued: bool,
}

/// The texts in fields of a document, at most `most` of them.
#[must_use]
pub fn find(document: &[u8], fields: &[Field], most: usize) -> Vec<Found> {
    let mut found: Vec<(usize, Found)> = Vec::new();
    let mut names: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                if frames.len() >= MAX_DEPTH {
                    break;
                }
                let step = if *byte == b'{' { Step::Key(Vec::new()) } else { Step::Each };
                frames.push(Frame { start: at, step, valued: *byte == b'[' });
            }
            b'}' | b']' => {
                frames.pop();
            }
            b',' => {
                let object = frames.last_mut().filter(|frame| matches!(frame.step, Step::Key(_)));
                object.into_iter().for_each(|frame| frame.valued = false);
            }
            b'"' => {
                let rest = document.get(at..).unwrap_or_default();
                let (length, complete) = string_length(rest);
                let raw = rest.get(..length).unwrap_or_default();
                at = at.saturating_add(length + 1);
                if let Some(frame @ Frame { valued: false, .. }) = frames.last_mut() {
                    frame.step = Step::Key(unescaped(raw));
                    if let Some(behind) = colon(document, at) {
                        (frame.valued, at) = (true, behind);
                    }
                    continue;
                }
                let parent = frames.last().map_or(0, |frame| frame.start);
                for (place, field) in fields.iter().enumerate() {
                    if found.len() < most && is_at(&frames, &field.path) {
                        let text = unescaped(raw);
                        found.push((parent, Found { field: place, text, names: Vec::new(), complete }));
                    }
                    if names.len() < most.saturating_mul(4) && is_name(&frames, field) {
                        names.push((place, parent, unescaped(raw)));
                    }
                }
            }
            _ => {}
        }
    }
    let named = |(parent, mut one): (usize, Found)| {
        let own = names.iter().filter(|(field, of, _)| *field == one.field && *of == parent);
        one.names = own.map(|(_, _, name)| name.clone()).collect();
        one
    };
    found.into_iter().map(named).collect()
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
