//! `lowercase` and `uppercase`: letters of ASCII only, as in the C locale.

use super::bytes::{any, first};

/// Lowers ASCII letters.
pub(super) fn lowercase(input: &[u8]) -> Option<Vec<u8>> {
    let upper = |byte: u8| byte.is_ascii_uppercase();
    first(input, |chunk| any(chunk, upper), upper).map(|_| input.to_ascii_lowercase())
}

/// Raises ASCII letters.
pub(super) fn uppercase(input: &[u8]) -> Option<Vec<u8>> {
    let lower = |byte: u8| byte.is_ascii_lowercase();
    first(input, |chunk| any(chunk, lower), lower).map(|_| input.to_ascii_uppercase())
}
