//! `@eq`, `@ge`, `@gt`, `@le`, `@lt`.

/// The integer a text begins with, as atoi reads it: white space, a sign, digits; 0 without digits.
///
/// A number out of range is the nearest one in range: read as 0, as ModSecurity v3 has it, a huge value would pass every
/// upper limit.
pub(crate) fn integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let value = value.saturating_mul(10);
        if negative { value.saturating_sub(digit) } else { value.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_atoi() {
        let cases: &[(&[u8], i64)] = &[
            (b"", 0),
            (b"0", 0),
            (b"12", 12),
            (b"  12", 12),
            (b"-12", -12),
            (b"+12", 12),
            (b"12abc", 12),
            (b"abc", 0),
            (b"-", 0),
            (b"1.9", 1),
            (b"99999999999999999999", i64::MAX),
            (b"-99999999999999999999", i64::MIN),
            (b"4294967296", 4_294_967_296),
        ];
        for &(text, expected) in cases {
            assert_eq!(integer(text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
