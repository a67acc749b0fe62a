//! `sqlHexDecode`: `0x` literals of SQL.

use memchr::memmem;

use super::bytes::{hex_byte, start_at};

/// Decodes `0x` followed by pairs of hexadecimal digits to the bytes they stand for.
pub(super) fn hex_decode(input: &[u8]) -> Option<Vec<u8>> {
    let mut at = [memmem::find(input, b"0x"), memmem::find(input, b"0X")].into_iter().flatten().min()?;
    let mut output = start_at(input, at);
    while let Some(&byte) = input.get(at) {
        if byte == b'0' && matches!(input.get(at + 1), Some(b'x' | b'X')) && hex_byte(input, at + 2).is_some() {
            at += 2;
            while let Some(decoded) = hex_byte(input, at) {
                output.push(decoded);
                at += 2;
            }
        } else {
            output.push(byte);
            at += 1;
        }
    }
    Some(output)
}
