//! `escapeSeqDecode`: the escapes of ANSI C.

use memchr::memchr;

use super::bytes::{control, hex_byte, octal, start_at};

/// Undoes `\n` and the like, `\xHH` and `\OOO`. A `\` before anything else is dropped; one at the end stays.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let first = memchr(b'\\', input)?;
    let mut output = start_at(input, first);
    let mut at = first;
    while let Some(&byte) = input.get(at) {
        let escaped = input.get(at + 1).copied();
        let Some(escaped) = escaped.filter(|_| byte == b'\\') else {
            output.push(byte);
            at += 1;
            continue;
        };
        let (decoded, length) = if let Some(control) = control(escaped) {
            (control, 2)
        } else if let (b'x' | b'X', Some(code)) = (escaped, hex_byte(input, at + 2)) {
            (code, 4)
        } else if let Some((code, digits)) = octal(input, at + 1, 3) {
            ((code & 0xff) as u8, 1 + digits)
        } else {
            (escaped, 2)
        };
        output.push(decoded);
        at += length;
    }
    Some(output)
}
