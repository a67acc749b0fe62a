//! `application/x-www-form-urlencoded`.

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

/// Undoes `+` and percent-encoding; what is no escape stays.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let escape = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                digit(*high).zip(digit(*low)).map(|(high, low)| (high << 4 | low, behind))
            }
            _ => None,
        };
        let (byte, behind) = escape.unwrap_or((if *first == b'+' { b' ' } else { *first }, behind));
        bytes.push(byte);
        rest = behind;
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
