//! Requests that the backend accepted and that nobody should learn from.

use crate::decode;

/// The bytes of a value that are looked at.
const LOOKED_AT: usize = 4096;

/// Whether a path or a query has what attacks have: a way out of a folder, a NUL, SQL, a script. Bodies are not looked at, because texts
/// that people write have all of it.
pub(crate) fn is_attack(path: &[u8], query: &[u8]) -> bool {
    let values = query.split(|byte| *byte == b'&').map(|pair| match pair.iter().position(|byte| *byte == b'=') {
        Some(at) => pair.get(at + 1..).unwrap_or_default(),
        None => pair,
    });
    path.split(|byte| *byte == b'/').chain(values).any(is_hostile)
}

fn is_hostile(raw: &[u8]) -> bool {
    let raw = raw.get(..LOOKED_AT).unwrap_or(raw);
    // Words and numbers, which most values are.
    if raw.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        return false;
    }
    let spaced: Vec<u8> = raw.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let value = decode(&spaced);
    let has = |part: &[u8]| value.windows(part.len()).any(|window| window == part);
    let climbs = value == b".." || has(b"../") || has(b"..\\");
    climbs || has(b"\0") || has(b"${") || has(b"<script") || {
        // Only what has a shape of its own: a single quote or a letter is no attack.
        value.len() >= 6
            && (libinjectionrs::detect_sqli(&value).is_injection() || libinjectionrs::detect_xss(&value).is_injection())
    }
}
