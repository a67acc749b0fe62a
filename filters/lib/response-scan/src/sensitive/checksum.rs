//! Checksums of numbers.

/// A checksum that a match must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// None: every match counts.
    #[default]
    None,
    /// The Luhn digit (ISO/IEC 7812-1, annex B) over all digits of the match.
    Luhn,
    /// Remainder 1 modulo 97 (ISO/IEC 7064, MOD 97-10) over letters and digits of the match, the first four moved to the end as in
    /// an IBAN (ISO 13616).
    Mod97,
}

impl Checksum {
    /// Whether a match has it. Bytes that are neither letters nor digits are left out.
    #[must_use]
    pub fn holds(self, value: &[u8]) -> bool {
        match self {
            Self::None => true,
            Self::Luhn => luhn(value.iter().copied().filter(u8::is_ascii_digit)),
            Self::Mod97 => iban_remainder(value.iter().copied().filter(u8::is_ascii_alphanumeric)) == 1,
        }
    }
}

/// Whether the last digit is the Luhn digit of those before it; two digits at least.
pub(super) fn luhn(digits: impl DoubleEndedIterator<Item = u8>) -> bool {
    let (mut sum, mut count) = (0u32, 0u32);
    for digit in digits.rev() {
        let value = u32::from(digit.wrapping_sub(b'0'));
        let doubled = if count % 2 == 1 { value * 2 } else { value };
        sum = sum.wrapping_add(if doubled > 9 { doubled.wrapping_sub(9) } else { doubled });
        count = count.wrapping_add(1);
    }
    count >= 2 && sum.is_multiple_of(10)
}

/// The remainder modulo 97 of an IBAN: letters count from 10 (A) to 35 (Z), the first four characters come last.
pub(super) fn iban_remainder(characters: impl Iterator<Item = u8> + Clone) -> u32 {
    let moved = characters.clone().skip(4).chain(characters.take(4));
    moved.fold(0, |rest, character| match character {
        b'0'..=b'9' => (rest * 10 + u32::from(character - b'0')) % 97,
        letter => (rest * 100 + 10 + u32::from(letter.to_ascii_uppercase().wrapping_sub(b'A')) % 26) % 97,
    })
}
