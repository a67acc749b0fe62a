//! JSON bodies, whose values the engine names by their path: `json.items.array_0.name`, or `json.items.0.name`.

use serde_json::Value;

use super::super::Target;

/// The name before all others.
const ROOT: &[u8] = b"json";
/// How an empty name of a member is written.
const EMPTY: &[u8] = b"empty-key";

/// The values that the target covers become the payload as a string. Returns the document and how many were changed. `None` if the body
/// is not JSON, or the payload not a string of it.
pub(super) fn replace(body: &[u8], target: &Target, payload: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut document: Value = serde_json::from_slice(body).ok()?;
    let payload = std::str::from_utf8(payload).ok()?;
    let count = match target.member.as_deref() {
        None => replace_all(&mut document, payload),
        Some(member) => match strip_prefix(member, ROOT) {
            Some(path) => replace_at(&mut document, path, payload),
            None => 0,
        },
    };
    Some((serde_json::to_vec(&document).ok()?, count))
}

/// The document that is this string.
pub(super) fn string(payload: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(std::str::from_utf8(payload).ok()?).ok()
}

/// Every value that is no object and no array gets the payload.
fn replace_all(value: &mut Value, payload: &str) -> usize {
    match value {
        Value::Object(members) => members.values_mut().map(|value| replace_all(value, payload)).sum(),
        Value::Array(elements) => elements.iter_mut().map(|value| replace_all(value, payload)).sum(),
        scalar => {
            *scalar = Value::String(payload.to_owned());
            1
        }
    }
}

/// What the rest of a path leads to gets the payload. Names may have dots, so that a path can lead to several values.
fn replace_at(value: &mut Value, path: &[u8], payload: &str) -> usize {
    let ends = path.is_empty();
    match value {
        Value::Object(members) if !members.is_empty() => {
            let Some(path) = path.strip_prefix(b".") else { return 0 };
            let names = members.iter_mut().filter_map(|(name, value)| {
                let name = if name.is_empty() { EMPTY } else { name.as_bytes() };
                Some(replace_at(value, strip_prefix(path, name)?, payload))
            });
            names.sum()
        }
        Value::Array(elements) if !elements.is_empty() => {
            let Some(path) = path.strip_prefix(b".") else { return 0 };
            let path = strip_prefix(path, b"array_").unwrap_or(path);
            let indexes = elements.iter_mut().enumerate().filter_map(|(index, value)| {
                Some(replace_at(value, strip_prefix(path, index.to_string().as_bytes())?, payload))
            });
            indexes.sum()
        }
        last if ends => {
            *last = Value::String(payload.to_owned());
            1
        }
        _ => 0,
    }
}

/// In any case of letters.
fn strip_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}
