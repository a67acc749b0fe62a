//! `cssDecode`: the escapes of CSS 2, section 4.1.3.

use memchr::memchr;

use super::best_fit::fullwidth;
use super::bytes::{hex_digit, is_space, start_at};

/// Undoes `\` with up to six hexadecimal digits (the last two count, except for fullwidth forms), `\` before a line
/// feed (both go) and `\` before any other byte (the byte stays). White space after digits is a part of the escape.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let first = memchr(b'\\', input)?;
    let mut output = start_at(input, first);
    let mut rest = input.get(first..)?;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            output.push(byte);
            rest = after;
            continue;
        }
        let mut code = 0u32;
        let mut digits = 0;
        for digit in after.iter().take(6).map_while(|&byte| hex_digit(byte)) {
            code = code << 4 | u32::from(digit);
            digits += 1;
        }
        if digits > 0 {
            output.push(narrow(code));
            rest = after.get(digits..).unwrap_or_default();
            if rest.first().is_some_and(|&byte| is_space(byte)) {
                rest = rest.get(1..).unwrap_or_default();
            }
        } else if let Some((&escaped, after)) = after.split_first() {
            if escaped != b'\n' {
                output.push(escaped);
            }
            rest = after;
        } else {
            break;
        }
    }
    Some(output)
}

/// The byte an escaped code point becomes.
fn narrow(code: u32) -> u8 {
    u16::try_from(code).ok().and_then(fullwidth).unwrap_or((code & 0xff) as u8)
}
