//! Content hashes: SHA-256, written in hexadecimal.

use sha2::{Digest, Sha256};

/// The SHA-256 of a part's bytes.
pub type PartHash = [u8; 32];

/// SHA-256 of `bytes`.
#[must_use]
pub fn content_hash(bytes: &[u8]) -> PartHash {
    Sha256::digest(bytes).into()
}

/// `bytes` in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        text
    })
}
