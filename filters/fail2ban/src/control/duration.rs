//! Durations as people write them.

/// A duration in milliseconds: whole numbers, each with the unit `s`, `m`, `h` or `d`, such as `10m` and `1h30m`. `None` for other
/// texts, and for more than a million of a unit.
pub(super) fn millis(text: &str) -> Option<u64> {
    let (mut total, mut number) = (0_u64, None::<u64>);
    for byte in text.bytes() {
        if byte.is_ascii_digit() {
            let digits = number.unwrap_or(0) * 10 + u64::from(byte - b'0');
            number = Some(digits).filter(|digits| *digits <= 1_000_000);
            number?;
            continue;
        }
        let unit = match byte {
            b's' => 1_000,
            b'm' => 60_000,
            b'h' => 3_600_000,
            b'd' => 86_400_000,
            _ => return None,
        };
        total = total.saturating_add(number.take()? * unit);
    }
    (number.is_none() && !text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, expected) in
            [("10m", 600_000), ("1h", 3_600_000), ("1h30m", 5_400_000), ("90s", 90_000), ("2d", 172_800_000)]
        {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for wrong in ["", "10", "m", "10x", "1h30", "-1m", "1.5h", " 1h", "10ms", "1000001s", "99999999999999999999s"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
