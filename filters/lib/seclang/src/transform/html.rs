//! `htmlEntityDecode`.

use memchr::memchr;

use super::bytes::{hex_digit, start_at};

const NAMED: &[(&[u8], u8)] = &[(b"quot", b'"'), (b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"nbsp", 0xa0)];

/// Undoes `&#xHH;`, `&#DD;`, `&quot;`, `&amp;`, `&lt;`, `&gt;` and `&nbsp;`, with or without the semicolon, in any case
/// of letters. Of a number the low byte is used. As in browsers, `&ltscript` is `<script`.
pub(super) fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let first = memchr(b'&', input)?;
    let mut output = start_at(input, first);
    let mut rest = input.get(first..)?;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'&' {
            let end = memchr(b'&', rest).unwrap_or(rest.len());
            output.extend_from_slice(rest.get(..end)?);
            rest = rest.get(end..)?;
            continue;
        }
        match entity(after) {
            Some((decoded, length)) => {
                output.push(decoded);
                rest = after.get(length..).unwrap_or_default();
                rest = rest.strip_prefix(b";").unwrap_or(rest);
            }
            None => {
                output.push(b'&');
                rest = after;
            }
        }
    }
    Some(output)
}

/// The entity after an ampersand: its byte and its length without the semicolon.
fn entity(after: &[u8]) -> Option<(u8, usize)> {
    if let Some(number) = after.strip_prefix(b"#") {
        let (digits, radix, prefix) = match number.first()? {
            b'x' | b'X' => (number.get(1..)?, 16, 2),
            _ => (number, 10, 1),
        };
        let length = digits.iter().take_while(|&&byte| hex_digit(byte).is_some_and(|digit| digit < radix)).count();
        let value = digits.get(..length)?.iter().fold(0i64, |value, &byte| {
            // As strtol does: a number too large is the largest one, whose low byte is 0xff.
            value.saturating_mul(i64::from(radix)).saturating_add(i64::from(hex_digit(byte).unwrap_or(0)))
        });
        return (length > 0).then_some(((value & 0xff) as u8, prefix + length));
    }
    let named =
        NAMED.iter().find(|(name, _)| after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    named.map(|&(name, byte)| (byte, name.len()))
}
