//! Pairs of queries and form bodies.

use seclang::body::urlencoded;

use super::super::Target;

/// The pairs that the target covers get the payload. Returns the pairs and how many were changed; the others stay as they are.
pub(super) fn replace(pairs: &[u8], target: &Target, payload: &[u8]) -> (Vec<u8>, usize) {
    let mut count = 0;
    let changed: Vec<Vec<u8>> = pairs
        .split(|byte| *byte == b'&')
        .map(|pair| {
            if !name(pair).is_some_and(|name| target.covers(&name)) {
                return pair.to_vec();
            }
            count += 1;
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            [name, &encoded(payload)].join(b"=".as_slice())
        })
        .collect();
    (changed.join(b"&".as_slice()), count)
}

/// Adds a pair.
pub(super) fn add(pairs: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if !pairs.is_empty() && !pairs.ends_with(b"&") {
        pairs.push(b'&');
    }
    pairs.extend_from_slice(&[encoded(name), encoded(value)].join(b"=".as_slice()));
}

/// The name of a pair, decoded as the engine does; `None` for nothing between two separators.
fn name(pair: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    urlencoded::parse(pair, b'&', &urlencoded::Limits::default(), |name, _| found = Some(name.into_owned()));
    found
}

/// As it is but for what the target of a request cannot have: blanks, control characters, and the `#` at which it would end.
pub(super) fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' ' | b'#' | 0x7f => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ if byte.is_ascii_control() => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => text.push(byte),
        }
    }
    text
}

/// Percent-encoded but for what never has to be.
pub(super) fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(byte),
            _ => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    text
}
