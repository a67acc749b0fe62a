//! Durations as Go writes them.

/// A duration in milliseconds, rounded towards zero: a sign, and numbers with fractions, each with its unit. `None` for other texts and
/// for more than 64 bits have.
pub(super) fn millis(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut nanos = 0_i128;
    while !rest.is_empty() || nanos == 0 {
        let (whole, behind) = digits(rest);
        let (fraction, behind) = behind.strip_prefix('.').map_or(("", behind), digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, behind) = unit(behind)?;
        nanos = nanos.checked_add(of_digits(whole)?.checked_mul(unit)?)?;
        // What is below a nanosecond of an hour has no use.
        let fraction = fraction.get(..fraction.len().min(15))?;
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        nanos = nanos.checked_add(of_digits(fraction)?.checked_mul(unit)?.checked_div(scale)?)?;
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    let millis = i64::try_from(nanos / 1_000_000).ok()?;
    Some(if negative { -millis } else { millis })
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn of_digits(digits: &str) -> Option<i128> {
    match digits {
        "" => Some(0),
        digits if digits.len() <= 20 => digits.parse().ok(),
        _ => None,
    }
}

/// The nanoseconds of the unit that a text begins with, and what is behind it.
fn unit(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(text.len());
    let (unit, behind) = text.split_at(end);
    let nanos = match unit {
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    Some((nanos, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, expected) in [
            ("3h59m58.596498308s", 14_398_596),
            ("-10.722831ms", -10),
            ("-3.034649877s", -3_034),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("5.s", 5_000),
            ("+1m", 60_000),
            ("0", 0),
            ("0s", 0),
            ("1h0m0s", 3_600_000),
            ("900\u{b5}s", 0),
            ("1500us", 1),
            ("999999ns", 0),
            ("2562047h47m16.854775807s", 9_223_372_036_854),
            ("0.000000000000000000000000001h", 0),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "-",
            "4",
            "h",
            "1d",
            "1h 2m",
            "1hm",
            "--1s",
            "1e3s",
            ".s",
            "1.2.3s",
            "\u{661}s",
            "99999999999999999999999h",
            " 1s",
            "1s ",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
