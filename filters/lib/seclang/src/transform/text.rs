//! `lowercase` and `uppercase`: letters of ASCII only, as in the C locale.

/// Lowers ASCII letters.
pub(super) fn lowercase(input: &[u8]) -> Option<Vec<u8>> {
    input.iter().any(u8::is_ascii_uppercase).then(|| input.to_ascii_lowercase())
}

/// Raises ASCII letters.
pub(super) fn uppercase(input: &[u8]) -> Option<Vec<u8>> {
    input.iter().any(u8::is_ascii_lowercase).then(|| input.to_ascii_uppercase())
}
