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
}
