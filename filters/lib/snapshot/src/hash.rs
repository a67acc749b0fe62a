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

/// The bytes of lower-case hexadecimal digits; `None` for any other text.
#[must_use]
pub fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_read_as_they_are_written_and_nothing_else_is() {
        for bytes in [&b""[..], b"\x00\x0f\xf0\xff", b"text"] {
            assert_eq!(unhex(hex(bytes).as_bytes()).as_deref(), Some(bytes));
        }
        for wrong in ["f", "FF", "+f", "0x", " f", "fg", "\u{fc}"] {
            assert_eq!(unhex(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
