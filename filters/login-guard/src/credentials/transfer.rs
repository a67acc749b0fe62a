//! Encodings of what is in a request: base64, quoted-printable.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64 as lenient backends read it: without padding, with bits behind the end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What lenient backends make of base64: they take the URL-safe letters too, and leave out what is no letter of it. Empty where it cannot
/// be read.
pub(super) fn base64(encoded: &[u8]) -> Vec<u8> {
    let letters = encoded.iter().filter_map(|byte| match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' => Some(*byte),
        letter => letter.is_ascii_alphanumeric().then_some(*letter),
    });
    let mut letters: Vec<u8> = letters.collect();
    // One letter alone is no byte.
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    LENIENT.decode(letters).unwrap_or_default()
}

/// What a value in a transfer encoding (RFC 2045, section 6) may stand for beside itself: nothing where it stands for itself alone, and
/// `None` where the encoding is not known.
pub(super) fn values(encoding: &[u8], value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let is = |known: &[u8]| encoding.eq_ignore_ascii_case(known);
    if is(b"7bit") || is(b"8bit") || is(b"binary") {
        return Some(Vec::new());
    }
    if is(b"base64") {
        // Some end at the padding, and some go on behind it.
        let first = value.split(|byte| *byte == b'=').next().unwrap_or_default();
        return Some(vec![base64(first), base64(value)]);
    }
    is(b"quoted-printable").then(|| vec![quoted_printable(value)])
}

/// Undoes `=41` and soft ends of lines; what is no escape stays.
fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = behind;
        match behind {
            [b'\r', b'\n', behind @ ..] | [b'\n', behind @ ..] if *first == b'=' => rest = behind,
            _ if *first == b'=' => match exchange::spelling::escaped(behind) {
                Some((byte, behind)) => {
                    decoded.push(byte);
                    rest = behind;
                }
                None => decoded.push(*first),
            },
            _ => decoded.push(*first),
        }
    }
    decoded
}
