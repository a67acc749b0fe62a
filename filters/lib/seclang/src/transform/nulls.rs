//! `removeNulls` and `replaceNulls`.

use memchr::memchr;

/// Removes each NUL.
pub(super) fn remove(input: &[u8]) -> Option<Vec<u8>> {
    memchr(0, input)?;
    Some(input.iter().copied().filter(|&byte| byte != 0).collect())
}

/// Replaces each NUL by a space.
pub(super) fn replace(input: &[u8]) -> Option<Vec<u8>> {
    memchr(0, input)?;
    Some(input.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect())
}
