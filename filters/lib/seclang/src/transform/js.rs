//! `jsDecode`: the escapes of JavaScript.

use memchr::memchr;

use super::best_fit::fullwidth;
use super::bytes::{control, hex_byte, hex_unit, octal, start_at};

/// Undoes `\uHHHH` (the low byte, except for fullwidth forms), `\xHH`, `\OOO`, `\n` and the like. A `\` before anything
/// else is dropped; one at the end stays.
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
        let (decoded, length) = if let (b'u', Some(code)) = (escaped, hex_unit(input, at + 2)) {
            (fullwidth(code).unwrap_or((code & 0xff) as u8), 6)
        } else if let (b'x', Some(code)) = (escaped, hex_byte(input, at + 2)) {
            (code, 4)
        } else if let Some((code, digits)) = octal(input, at + 1, if escaped > b'3' { 2 } else { 3 }) {
            ((code & 0xff) as u8, 1 + digits)
        } else {
            (control(escaped).unwrap_or(escaped), 2)
        };
        output.push(decoded);
        at += length;
    }
    Some(output)
}
