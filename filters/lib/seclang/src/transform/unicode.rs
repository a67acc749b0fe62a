//! `utf8toUnicode`.

use super::hex::digits;

/// Rewrites each multi-byte sequence of UTF-8 as `%u` and its code point in four to six hexadecimal digits.
///
/// Overlong sequences and surrogates are rewritten too, as a lenient application would read them, and their first byte
/// is kept after them as a trace. As in ModSecurity v3, what a lenient decoder skips is dropped: first bytes of sequences
/// that do not follow, and NUL bytes but for one at the end (`/etc/pas%00swd`). Other bytes that are no sequence stay.
pub(super) fn escape_utf8(input: &[u8]) -> Option<Vec<u8>> {
    let rewritten = |byte: u8| byte == 0 || !byte.is_ascii();
    let any = |chunk: &[u8]| chunk.iter().fold(false, |any, &byte| any | rewritten(byte));
    let first = super::bytes::first(input, any, rewritten)?;
    let mut output = super::bytes::start_at(input, first);
    let mut rest = input.get(first..)?;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == 0 && !after.is_empty() {
            rest = after;
            continue;
        }
        match sequence(rest) {
            Some((code, length)) => {
                escape(code, &mut output);
                let shortest = match code {
                    0..0x80 => 1,
                    0x80..0x800 => 2,
                    0x800..0x1_0000 => 3,
                    _ => 4,
                };
                if length > shortest || matches!(code, 0xd800..0xe000) {
                    output.push(byte);
                }
                rest = rest.get(length..).unwrap_or_default();
            }
            None => {
                if !matches!(byte, 0xc0..=0xf4) {
                    output.push(byte);
                }
                rest = after;
            }
        }
    }
    Some(output)
}

/// The multi-byte sequence at the start of `input`: its code point and length.
fn sequence(input: &[u8]) -> Option<(u32, usize)> {
    let lead = *input.first()?;
    let (length, bits) = match lead {
        0xc0..=0xdf => (2, lead & 0x1f),
        0xe0..=0xef => (3, lead & 0x0f),
        0xf0..=0xf7 => (4, lead & 0x07),
        _ => return None,
    };
    let mut code = u32::from(bits);
    for &byte in input.get(1..length)? {
        if byte & 0xc0 != 0x80 {
            return None;
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    Some((code, length))
}

fn escape(code: u32, output: &mut Vec<u8>) {
    let [_, high, middle, low] = code.to_be_bytes();
    let ([a, b], [c, d], [e, f]) = (digits(high), digits(middle), digits(low));
    match (a, b) {
        (b'0', b'0') => output.extend_from_slice(&[b'%', b'u', c, d, e, f]),
        (b'0', _) => output.extend_from_slice(&[b'%', b'u', b, c, d, e, f]),
        _ => output.extend_from_slice(&[b'%', b'u', a, b, c, d, e, f]),
    }
}
