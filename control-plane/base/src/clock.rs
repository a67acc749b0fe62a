//! The only place of the control plane that reads the clock.
//!
//! Everything else takes the time as a parameter, so that windows, expiry and throttles are tested with times of the
//! test's own choosing.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock in milliseconds since 1970-01-01T00:00:00Z; 0 when the host's clock stands before that.
#[allow(
    clippy::disallowed_methods,
    reason = "the one reader of the wall clock; its callers take the time as a parameter"
)]
pub fn now_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// A point on the monotonic clock, for measuring how long something took.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure now.
    #[allow(clippy::disallowed_methods, reason = "the one reader of the monotonic clock")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Seconds since [`Stopwatch::start`].
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// `millis` (since 1970, UTC) as RFC 3339 with milliseconds: `2026-01-02T03:04:05.678Z`.
pub fn rfc3339(millis: u64) -> String {
    let (days, day_millis) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil_date(days);
    let (hour, minute) = (day_millis / 3_600_000, day_millis / 60_000 % 60);
    let (second, milli) = (day_millis / 1000 % 60, day_millis % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The proleptic Gregorian date of a day counted from 1970-01-01, as (year, month, day of the month).
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last day of its year and needs no special case; 719468 is
    // the number of days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The time of RFC 3339 text in UTC, in milliseconds since 1970; `None` for another text, or a time before that.
#[must_use]
pub fn rfc3339_millis(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let time = time.strip_suffix(['Z', 'z']).or_else(|| time.strip_suffix("+00:00"))?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let (second, fraction) = time.next().map(|rest| rest.split_once('.').unwrap_or((rest, "")))?;
    let second = second.parse::<u64>().ok()?;
    let millis = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970-01-01, with years that begin in March so that the leap day is a year's last.
    let shifted = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = (365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year).checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_rfc3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(millis), text);
        }
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for millis in [0, 951_782_399_999, 951_782_400_000, 1_709_164_800_000, 4_107_542_400_123] {
            assert_eq!(rfc3339_millis(&rfc3339(millis)), Some(millis));
        }
        assert_eq!(rfc3339_millis("2026-01-01T00:00:00Z"), rfc3339_millis("2026-01-01T00:00:00.000000+00:00"));
        for bad in ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "0000-01-01T00:00:00Z", "é"] {
            assert_eq!(rfc3339_millis(bad), None, "{bad}");
        }
    }
}
