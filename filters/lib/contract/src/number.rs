//! Numbers of JSON (RFC 8259, section 6), compared without rounding.

use std::cmp::Ordering;

/// The most digits of a number that are kept exactly; beyond them it is rounded.
const MAX_DIGITS: u32 = 36;
/// Whole numbers under this magnitude are [`Repr::Small`], however they are written.
const SMALL: i64 = 1_000_000_000_000_000_000;
/// So many digits are always a small number.
const SMALL_DIGITS: usize = 18;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(Repr);

/// A value has one representation only, so that equal ones compare equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repr {
    /// A whole number of at most 18 digits, which nearly all are.
    Small(i64),
    /// Any other one: `mantissa * 10^exponent`, without trailing zeros in the mantissa.
    Wide { mantissa: i128, exponent: i64 },
}

impl Number {
    /// Reads the text of a number, which the scanner has checked.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            _ => (false, text),
        };
        if digits.len() <= SMALL_DIGITS
            && let Some(value) = small(digits)
        {
            let value = if negative { -value } else { value };
            return Some(Self(Repr::Small(value)));
        }
        Self::read_wide(digits, negative)
    }

    fn read_wide(digits: &[u8], negative: bool) -> Option<Self> {
        let (mut mantissa, mut exponent) = (0_i128, 0_i64);
        let (mut kept, mut fraction) = (0, false);
        let mut bytes = digits.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'0'..=b'9' if kept < MAX_DIGITS => {
                    mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    kept += u32::from(mantissa != 0);
                    exponent -= i64::from(fraction);
                }
                b'0'..=b'9' => exponent += i64::from(!fraction),
                b'.' => fraction = true,
                b'e' | b'E' => {
                    let written = std::str::from_utf8(bytes.as_slice()).ok()?;
                    let large = if written.starts_with('-') { -1_000_000 } else { 1_000_000 };
                    let power = written.parse::<i64>().map_or(large, |power| power.clamp(-1_000_000, 1_000_000));
                    exponent = exponent.checked_add(power)?;
                    break;
                }
                _ => return None,
            }
        }
        if negative {
            mantissa = -mantissa;
        }
        Some(Self(Repr::of(mantissa, exponent)))
    }

    /// It has no fraction.
    pub(crate) fn is_integer(self) -> bool {
        match self.0 {
            Repr::Small(_) => true,
            Repr::Wide { exponent, .. } => exponent >= 0,
        }
    }

    /// Same value, however written.
    pub(crate) fn equals(self, other: Self) -> bool {
        self.0 == other.0
    }

    /// A number that equal values have in common.
    pub(crate) fn fingerprint(self) -> u64 {
        match self.0 {
            Repr::Small(value) => value.cast_unsigned(),
            Repr::Wide { mantissa, exponent } => {
                let bytes = mantissa.to_le_bytes();
                let half = |half: Option<&[u8; 8]>| half.copied().map_or(0, u64::from_le_bytes);
                half(bytes.first_chunk()) ^ half(bytes.last_chunk()).rotate_left(32) ^ exponent.cast_unsigned()
            }
        }
    }

    /// Where it is beside another one.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        if let (Repr::Small(one), Repr::Small(two)) = (self.0, other.0) {
            return one.cmp(&two);
        }
        let (one, two) = (self.0.parts(), other.0.parts());
        let signs = one.0.signum().cmp(&two.0.signum());
        if signs != Ordering::Equal || one.0 == 0 {
            return signs;
        }
        let digits = |(mantissa, exponent): (i128, i64)| {
            let digits = mantissa.unsigned_abs().checked_ilog10().map_or(0, i64::from);
            digits.saturating_add(exponent)
        };
        let magnitude = digits(one).cmp(&digits(two));
        let magnitude = if magnitude == Ordering::Equal {
            // The same magnitude: the exponents differ by no more than the digits.
            let lowest = one.1.min(two.1);
            aligned(one, lowest).cmp(&aligned(two, lowest))
        } else {
            magnitude
        };
        if one.0 < 0 { magnitude.reverse() } else { magnitude }
    }

    /// It is a multiple of another one, which is not 0.
    pub(crate) fn is_multiple_of(self, divisor: Self) -> bool {
        if let (Repr::Small(value), Repr::Small(divisor)) = (self.0, divisor.0) {
            return value == 0 || value.checked_rem(divisor) == Some(0);
        }
        let ((mantissa, exponent), (modulus, divisor_exponent)) = (self.0.parts(), divisor.0.parts());
        if mantissa == 0 {
            return true;
        }
        let modulus = modulus.unsigned_abs();
        let shift = exponent.saturating_sub(divisor_exponent);
        if modulus == 0 {
            return false;
        }
        if shift < 0 {
            // value / divisor = mantissa / (modulus * 10^-shift)
            let scale = u32::try_from(-shift).ok().and_then(|shift| 10u128.checked_pow(shift));
            let whole = scale.and_then(|scale| modulus.checked_mul(scale));
            return whole.is_some_and(|whole| mantissa.unsigned_abs().is_multiple_of(whole));
        }
        if modulus > u128::MAX / 10 {
            return false;
        }
        // After 128 doublings and 128 fives nothing of the modulus is left that a power of ten could still take away.
        let mut rest = mantissa.unsigned_abs() % modulus;
        for _ in 0..shift.min(256) {
            rest = rest * 10 % modulus;
        }
        rest == 0
    }

    /// A whole number is in a range.
    pub(crate) fn is_within(self, low: i64, high: i64) -> bool {
        match self.0 {
            Repr::Small(value) => (low..=high).contains(&value),
            Repr::Wide { mantissa, exponent } => {
                let scale = u32::try_from(exponent).ok().and_then(|exponent| 10i128.checked_pow(exponent));
                let value = scale.and_then(|scale| mantissa.checked_mul(scale));
                value.is_some_and(|value| (i128::from(low)..=i128::from(high)).contains(&value))
            }
        }
    }
}

impl Repr {
    /// The one representation of a value.
    fn of(mut mantissa: i128, mut exponent: i64) -> Self {
        if mantissa == 0 {
            return Self::Small(0);
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        let whole = match u32::try_from(exponent) {
            Ok(exponent @ 0..=18) => 10i128.checked_pow(exponent).and_then(|scale| mantissa.checked_mul(scale)),
            _ => None,
        };
        match whole.and_then(|whole| i64::try_from(whole).ok()) {
            Some(value) if (-SMALL < value) && (value < SMALL) => Self::Small(value),
            _ => Self::Wide { mantissa, exponent },
        }
    }

    /// Mantissa and exponent.
    fn parts(self) -> (i128, i64) {
        match self {
            Self::Small(value) => (i128::from(value), 0),
            Self::Wide { mantissa, exponent } => (mantissa, exponent),
        }
    }
}

/// Digits alone, of which there are at most 18.
fn small(digits: &[u8]) -> Option<i64> {
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
    }
    Some(value)
}

/// The mantissa's magnitude at another, lower exponent.
fn aligned((mantissa, own): (i128, i64), exponent: i64) -> u128 {
    let shift = u32::try_from(own.saturating_sub(exponent)).unwrap_or(u32::MAX);
    let scale = 10u128.checked_pow(shift).unwrap_or(u128::MAX);
    mantissa.unsigned_abs().saturating_mul(scale)
}
