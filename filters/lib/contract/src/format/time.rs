//! Dates and times (RFC 3339).

/// `n` digits at the beginning of a text, and what is behind them.
fn digits(text: &[u8], n: usize) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(n)?;
    let value = digits.iter().try_fold(0u32, |value, byte| {
        byte.is_ascii_digit().then(|| value.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')))
    })?;
    Some((value, rest))
}

fn date(text: &[u8]) -> Option<&[u8]> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

/// `full-date`.
pub(super) fn is_date(text: &[u8]) -> bool {
    date(text).is_some_and(<[u8]>::is_empty)
}

/// `date-time`.
pub(super) fn is_date_time(text: &[u8]) -> bool {
    match date(text).and_then(<[u8]>::split_first) {
        Some((b'T' | b't', rest)) => is_time(rest),
        _ => false,
    }
}

/// `full-time`. A leap second is the last one of a day in UTC.
pub(super) fn is_time(text: &[u8]) -> bool {
    time(text).unwrap_or(false)
}

fn time(text: &[u8]) -> Option<bool> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    let (second, mut rest) = digits(rest.strip_prefix(b":")?, 2)?;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return Some(false);
        }
        rest = fraction.get(length..)?;
    }
    let offset = match rest {
        b"Z" | b"z" => 0,
        _ => {
            let (sign, rest) = rest.split_first()?;
            let (hours, rest) = digits(rest, 2)?;
            let (minutes, rest) = digits(rest.strip_prefix(b":")?, 2)?;
            if !rest.is_empty() || hours > 23 || minutes > 59 {
                return Some(false);
            }
            let offset = hours * 60 + minutes;
            match sign {
                b'+' => offset,
                b'-' => 1440 - offset,
                _ => return Some(false),
            }
        }
    };
    let utc = (hour * 60 + minute + 1440).wrapping_sub(offset) % 1440;
    Some(hour <= 23 && minute <= 59 && (second <= 59 || (second == 60 && utc == 1439)))
}

/// `duration` (RFC 3339, appendix A).
pub(super) fn is_duration(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"P") else { return false };
    if let Some(weeks) = rest.strip_suffix(b"W") {
        return !weeks.is_empty() && weeks.iter().all(u8::is_ascii_digit);
    }
    let (days, times) = match rest.iter().position(|byte| *byte == b'T') {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
        None => (rest, None),
    };
    if days.is_empty() && times.is_none() {
        return false;
    }
    units(days, b"YMD") && times.is_none_or(|times| !times.is_empty() && units(times, b"HMS"))
}

/// Numbers with units in that order, none left out between two.
fn units(mut text: &[u8], units: &[u8]) -> bool {
    let mut due: Option<usize> = None;
    while !text.is_empty() {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Some(unit) = text.get(length) else { return false };
        let Some(place) = units.iter().position(|known| known == unit) else { return false };
        if length == 0 || due.is_some_and(|due| due != place) {
            return false;
        }
        due = Some(place + 1);
        text = text.get(length + 1..).unwrap_or_default();
    }
    true
}
