//! JSON, with fields at any depth.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Credentials, Fields, MAX_TAKEN};

/// The most names that are looked at.
const MAX_NAMES: usize = 4096;

/// Takes the values of all fields. Names that occur twice in an object count twice: parsers differ in which they take.
pub(super) fn read(body: &[u8], fields: &Fields, found: &mut Credentials) {
    let body = narrow(body);
    // What is no JSON may be read in another way by the backend, or by a lenient parser in this one.
    found.odd |= serde_json::from_slice::<Value>(&body).is_err();
    let (mut rest, mut names) = (body.as_ref(), 0);
    // Where a field is: the names and brackets in front of it.
    let mut path = Sha256::new();
    while let Some((before, token, behind)) = string(rest) {
        rest = behind;
        path.update(before.iter().copied().filter(|byte| b"{}[]".contains(byte)).collect::<Vec<u8>>());
        let Some(value) = behind.trim_ascii_start().strip_prefix(b":") else { continue };
        names += 1;
        if names > MAX_NAMES {
            (found.odd, found.hides) = (true, true);
            return;
        }
        path.update(token);
        let (Ok(name), value) = (serde_json::from_slice::<String>(token), value.trim_ascii_start()) else { continue };
        let Some(kind) = fields.kind(name.as_bytes()) else { continue };
        if !found.has_room() {
            return;
        }
        let mut take = |value: &[u8]| {
            found.take(kind, (b"json", path.clone().finalize().as_slice()), name.as_bytes(), value);
        };
        match value.first() {
            Some(b'"') => {
                let text = string(value).and_then(|(_, token, _)| serde_json::from_slice::<String>(token).ok());
                take(text.unwrap_or_default().as_bytes());
            }
            Some(b'-' | b'0'..=b'9') => {
                let end = value.iter().position(|byte| b",}] \t\r\n".contains(byte)).unwrap_or(value.len());
                take(value.get(..end).unwrap_or_default());
            }
            // A backend may make a user of a list or an object.
            Some(b'[') => {
                texts(value).take(usize::from(MAX_TAKEN)).for_each(|text| take(text.as_bytes()));
                found.odd = true;
            }
            Some(b'{') => found.odd = true,
            _ => {}
        }
    }
}

/// The text without the NULs that UTF-16 and UTF-32, which parsers recognise, have beside characters of ASCII.
fn narrow(body: &[u8]) -> Cow<'_, [u8]> {
    if !body.contains(&0) {
        return Cow::Borrowed(body);
    }
    Cow::Owned(body.iter().copied().filter(|byte| *byte != 0).collect())
}

/// The texts at the beginning of a list.
fn texts(list: &[u8]) -> impl Iterator<Item = String> {
    let mut rest = list.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let start = rest.trim_ascii_start();
        let (_, token, behind) = string(start.starts_with(b"\"").then_some(start)?)?;
        let behind = behind.trim_ascii_start();
        rest = behind.strip_prefix(b",").unwrap_or(behind);
        Some(serde_json::from_slice::<String>(token).unwrap_or_default())
    })
}

/// What is in front of the first string, the string with its quotes, and what is behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (before, text) = text.split_at_checked(text.iter().position(|byte| *byte == b'"')?)?;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let (token, behind) = text.split_at_checked(at.saturating_add(1))?;
                return Some((before, token, behind));
            }
            _ => {}
        }
    }
    None
}
