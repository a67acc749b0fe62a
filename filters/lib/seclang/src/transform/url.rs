//! `urlDecode`, `urlDecodeUni`, `urlEncode`.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::best_fit::best_fit;
use super::bytes::{hex_byte, hex_unit, start_at};
use super::hex::digits;

/// Undoes `%HH` and turns `+` into a space. A `%` that is not followed by two hexadecimal digits stays.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    percent_decode(input, false).map(|(output, _)| output)
}

/// As [`decode`], and `%uHHHH` becomes the byte that is its best fit.
pub(super) fn decode_unicode(input: &[u8]) -> Option<Vec<u8>> {
    percent_decode(input, true).map(|(output, _)| output)
}

/// Decodes a name or value of a form; counts each `%` that is not followed by two hexadecimal digits.
pub(crate) fn decode_argument(input: &[u8]) -> (Cow<'_, [u8]>, usize) {
    match percent_decode(input, false) {
        Some((output, invalid)) => (Cow::Owned(output), invalid),
        None => (Cow::Borrowed(input), 0),
    }
}

fn percent_decode(input: &[u8], unicode: bool) -> Option<(Vec<u8>, usize)> {
    let mut at = memchr2(b'%', b'+', input)?;
    let mut output = start_at(input, at);
    let mut invalid = 0;
    while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
        // Up to the next `%` only plus signs change.
        let run = memchr(b'%', rest).unwrap_or(rest.len());
        let start = output.len();
        output.extend_from_slice(rest.get(..run).unwrap_or_default());
        let copied = output.get_mut(start..).unwrap_or_default();
        copied.iter_mut().for_each(|byte| *byte = if *byte == b'+' { b' ' } else { *byte });
        at += run;
        // Encoded bytes come in rows.
        while input.get(at) == Some(&b'%') {
            let wide =
                if unicode && matches!(input.get(at + 1), Some(b'u' | b'U')) { hex_unit(input, at + 2) } else { None };
            let (decoded, length) = if let Some(code) = wide {
                (best_fit(code), 6)
            } else if let Some(code) = hex_byte(input, at + 1) {
                (code, 3)
            } else {
                invalid += 1;
                (b'%', 1)
            };
            output.push(decoded);
            at += length;
        }
    }
    Some((output, invalid))
}

/// Encodes a space as `+` and every byte but letters, digits and `*` as `%HH`, in lower case.
pub(super) fn encode(input: &[u8]) -> Option<Vec<u8>> {
    let first = input.iter().position(|byte| !is_plain(*byte))?;
    let mut output = start_at(input, first);
    for &byte in input.get(first..)? {
        if byte == b' ' {
            output.push(b'+');
        } else if is_plain(byte) {
            output.push(byte);
        } else {
            output.push(b'%');
            output.extend_from_slice(&digits(byte));
        }
    }
    Some(output)
}

fn is_plain(byte: u8) -> bool {
    byte == b'*' || byte.is_ascii_alphanumeric()
}
