//! Numbers of JSON (RFC 8259, section 6), compared without rounding.

use std::cmp::Ordering;

/// The most digits of a number that are kept exactly; beyond them it is rounded.
const MAX_DIGITS: u32 = 36;

/// `mantissa * 10^exponent`, without trailing zeros in the mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    mantissa: i128,
    exponent: i64,
    /// It is written without a fraction and without an exponent.
    plain: bool,
}

impl Number {
    /// Reads the text of a number, which the scanner has checked.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            _ => (false, text),
        };
        let mut number = Self { mantissa: 0, exponent: 0, plain: true };
        let (mut kept, mut fraction) = (0, false);
        let mut bytes = digits.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'0'..=b'9' if kept < MAX_DIGITS => {
                    number.mantissa = number.mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    kept += u32::from(number.mantissa != 0);
                    number.exponent -= i64::from(fraction);
                }
                b'0'..=b'9' => number.exponent += i64::from(!fraction),
                b'.' => (fraction, number.plain) = (true, false),
                b'e' | b'E' => {
                    number.plain = false;
                    let written = std::str::from_utf8(bytes.as_slice()).ok()?;
                    let large = if written.starts_with('-') { -1_000_000 } else { 1_000_000 };
                    let exponent =
                        written.parse::<i64>().map_or(large, |exponent| exponent.clamp(-1_000_000, 1_000_000));
                    number.exponent = number.exponent.checked_add(exponent)?;
                    break;
                }
                _ => return None,
            }
        }
        if negative {
            number.mantissa = -number.mantissa;
        }
        if number.mantissa == 0 {
            number.exponent = 0;
        }
        while number.mantissa != 0 && number.mantissa % 10 == 0 {
            number.mantissa /= 10;
            number.exponent += 1;
        }
        Some(number)
    }

    /// It has no fraction.
    pub(crate) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// It has no fraction, and is written without one and without an exponent.
    pub(crate) fn is_plain(self) -> bool {
        self.plain
    }

    /// Same value, however written.
    pub(crate) fn equals(self, other: Self) -> bool {
        (self.mantissa, self.exponent) == (other.mantissa, other.exponent)
    }

    /// Where it is beside another one.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs != Ordering::Equal || self.mantissa == 0 {
            return signs;
        }
        let digits = |number: Self| {
            let digits = number.mantissa.unsigned_abs().checked_ilog10().map_or(0, i64::from);
            digits.saturating_add(number.exponent)
        };
        let magnitude = digits(self).cmp(&digits(other));
        let magnitude = if magnitude == Ordering::Equal {
            // The same magnitude: the exponents differ by no more than the digits.
            let lowest = self.exponent.min(other.exponent);
            self.aligned(lowest).cmp(&other.aligned(lowest))
        } else {
            magnitude
        };
        if self.mantissa < 0 { magnitude.reverse() } else { magnitude }
    }

    /// The mantissa's magnitude at another, lower exponent.
    fn aligned(self, exponent: i64) -> u128 {
        let shift = u32::try_from(self.exponent.saturating_sub(exponent)).unwrap_or(u32::MAX);
        let scale = 10u128.checked_pow(shift).unwrap_or(u128::MAX);
        self.mantissa.unsigned_abs().saturating_mul(scale)
    }

    /// It is a multiple of another one, which is not 0.
    pub(crate) fn is_multiple_of(self, divisor: Self) -> bool {
        if self.mantissa == 0 {
            return true;
        }
        let modulus = divisor.mantissa.unsigned_abs();
        let shift = self.exponent.saturating_sub(divisor.exponent);
        if modulus == 0 {
            return false;
        }
        if shift < 0 {
            // self / divisor = mantissa / (modulus * 10^-shift)
            let scale = u32::try_from(-shift).ok().and_then(|shift| 10u128.checked_pow(shift));
            let whole = scale.and_then(|scale| modulus.checked_mul(scale));
            return whole.is_some_and(|whole| self.mantissa.unsigned_abs().is_multiple_of(whole));
        }
        if modulus > u128::MAX / 10 {
            return false;
        }
        // After 128 doublings and 128 fives nothing of the modulus is left that a power of ten could still take away.
        let mut rest = self.mantissa.unsigned_abs() % modulus;
        for _ in 0..shift.min(256) {
            rest = rest * 10 % modulus;
        }
        rest == 0
    }

    /// A whole number is in a range.
    pub(crate) fn is_within(self, low: i64, high: i64) -> bool {
        let scale = u32::try_from(self.exponent).ok().and_then(|exponent| 10i128.checked_pow(exponent));
        let value = scale.and_then(|scale| self.mantissa.checked_mul(scale));
        value.is_some_and(|value| (i128::from(low)..=i128::from(high)).contains(&value))
    }
}
