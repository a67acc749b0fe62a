//! Times of recordings.

use jiff::Timestamp;

/// Milliseconds since the Unix epoch of an RFC 3339 time; `None` where it is none, or before 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let time: Timestamp = text.trim().parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// RFC 3339 in UTC with milliseconds; `None` for what is out of its range (after the year 9999).
pub(crate) fn format(millis: u64) -> Option<String> {
    let time = Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        assert_eq!(parse("2026-01-02T03:04:05.678Z"), Some(1_767_323_045_678));
        assert_eq!(parse("2026-01-02T05:04:05.678123+02:00"), Some(1_767_323_045_678));
        assert_eq!(format(1_767_323_045_678).as_deref(), Some("2026-01-02T03:04:05.678Z"));
        assert_eq!(format(1_767_323_045_000).as_deref(), Some("2026-01-02T03:04:05.000Z"));
        assert_eq!((parse("yesterday"), parse("1960-01-01T00:00:00Z"), format(u64::MAX)), (None, None, None));
    }
}
