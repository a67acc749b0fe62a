//! `application/x-www-form-urlencoded`.

use exchange::spelling;

use super::{Credentials, Fields, Place};

/// The most fields that are read.
const MAX_FIELDS: usize = 256;

pub(super) fn read(place: Place<'_>, body: &[u8], fields: &Fields, found: &mut Credentials) {
    let mut pairs = body.split(|byte| *byte == b'&').flat_map(pieces);
    for pair in pairs.by_ref().take(MAX_FIELDS) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        fields.take(place, &decoded(name), &decoded(value), found);
    }
    if pairs.next().is_some() {
        (found.odd, found.hides) = (true, true);
    }
}

/// A pair, and where it has further ones behind `;`, which separates pairs for some backends, those as well.
fn pieces(pair: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separates = pair.split(|byte| *byte == b';').skip(1).any(|piece| piece.contains(&b'='));
    std::iter::once(pair).chain(pair.split(move |byte| separates && *byte == b';').filter(move |_| separates))
}

/// Undoes `+`, percent-encoding and the `%u0041` of .NET; what is no escape stays.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                if let Some((byte, behind)) = spelling::escaped(behind) {
                    bytes.push(byte);
                    rest = behind;
                } else if let Some((character, behind)) = wide(behind) {
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = behind;
                } else {
                    bytes.push(*first);
                }
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

/// The character that `%u0041`, or two of them for one beyond U+FFFF, stand for, and what is behind it; without the first percent sign.
fn wide(text: &[u8]) -> Option<(char, &[u8])> {
    let (first, behind) = unit(text)?;
    let second = behind.strip_prefix(b"%").and_then(unit);
    if let (0xd800..0xdc00, Some((second @ 0xdc00..0xe000, behind))) = (first, second) {
        return char::from_u32(0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff)).zip(Some(behind));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), behind))
}

fn unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.strip_prefix(b"u").or_else(|| text.strip_prefix(b"U"))?;
    let (high, behind) = spelling::escaped(digits)?;
    let (low, behind) = spelling::escaped(behind)?;
    Some((u32::from(high) << 8 | u32::from(low), behind))
}
