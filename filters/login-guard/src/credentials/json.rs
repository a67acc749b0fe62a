//! JSON, with fields at any depth.

use serde_json::Value;

use super::{Credentials, Fields};

/// The most names that are looked at.
const MAX_NAMES: usize = 4096;

/// Takes the values of all fields. Names that occur twice in an object count twice: parsers differ in which they take.
pub(super) fn read(body: &[u8], fields: &Fields, found: &mut Credentials) {
    // What is no JSON may be read in another way by the backend.
    if serde_json::from_slice::<Value>(body).is_err() {
        found.odd = true;
        return;
    }
    let (mut rest, mut names) = (body, 0);
    while let Some((token, behind)) = string(rest) {
        rest = behind;
        let Some(value) = behind.trim_ascii_start().strip_prefix(b":") else { continue };
        names += 1;
        if names > MAX_NAMES {
            found.odd = true;
            return;
        }
        let (Ok(name), value) = (serde_json::from_slice::<String>(token), value.trim_ascii_start()) else { continue };
        match value.first() {
            Some(b'"') => {
                let text = string(value).and_then(|(token, _)| serde_json::from_slice::<String>(token).ok());
                fields.take(name.as_bytes(), text.unwrap_or_default().as_bytes(), found);
            }
            Some(b'-' | b'0'..=b'9') => {
                let end = value.iter().position(|byte| b",}] \t\r\n".contains(byte)).unwrap_or(value.len());
                fields.take(name.as_bytes(), value.get(..end).unwrap_or_default(), found);
            }
            // A backend may make a user of a list or an object.
            Some(b'[' | b'{') => found.odd |= fields.names(name.as_bytes()),
            _ => {}
        }
    }
}

/// The first string with its quotes, and what is behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = text.iter().position(|byte| *byte == b'"')?;
    let text = text.get(begin..)?;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return text.split_at_checked(at.saturating_add(1)),
            _ => {}
        }
    }
    None
}
