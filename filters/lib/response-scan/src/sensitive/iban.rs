//! International bank account numbers (ISO 13616), in capital letters, compact or in groups of four.

use super::checksum::iban_remainder;
use super::separators::separator_at;
use super::{byte, is_inside_word, is_word};

/// The length of the numbers of each country, from the registry of SWIFT.
const LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
    (b"YE", 30),
];

/// The end of the number that begins at `start`, if one does.
pub(super) fn at(text: &[u8], start: usize) -> Option<usize> {
    if is_inside_word(text, start) {
        return None;
    }
    let country = text.get(start..)?.first_chunk::<2>()?;
    let (_, length) = LENGTHS.iter().find(|(known, _)| *known == country)?;
    let mut value = [0u8; 34];
    let (mut count, mut place, mut parted) = (0, start, false);
    while count < *length {
        let next = byte(text, place);
        if next.is_ascii_uppercase() || next.is_ascii_digit() {
            *value.get_mut(count)? = next;
            (count, place, parted) = (count + 1, place + 1, false);
        } else {
            let separator = separator_at(text, place).filter(|separator| separator.kind == b' ')?;
            if count % 4 != 0 || parted {
                return None;
            }
            (place, parted) = (place + separator.length, true);
        }
    }
    let value = value.get(..count)?;
    let last = value.get(4..).is_some_and(|account| account.iter().any(|character| *character != b'0'));
    (last && !is_word(byte(text, place)) && iban_remainder(value.iter().copied()) == 1).then_some(place)
}
