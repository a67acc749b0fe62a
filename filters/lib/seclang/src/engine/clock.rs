//! The time of day and the date of an instant, UTC.

/// A civil date and time, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: u64,
    /// 1 to 12.
    pub(super) month: u64,
    /// 1 to 31.
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
    /// 1 (Monday) to 7.
    pub(super) weekday: u64,
}

impl Civil {
    /// The civil time of milliseconds since 1970. The date follows from counting days in eras of 400 years that begin
    /// on 1 March, where leap days come last.
    pub(super) fn from_millis(millis: u64) -> Self {
        let seconds = millis / 1000;
        let days = seconds / 86_400;
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            // 1 January 1970 was a Thursday.
            weekday: (days + 3) % 7 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_some_dates() {
        let leap = Civil::from_millis(1_709_210_096_789);
        assert_eq!((leap.year, leap.month, leap.day), (2024, 2, 29));
        assert_eq!((leap.hour, leap.minute, leap.second, leap.weekday), (12, 34, 56, 4));
        let epoch = Civil::from_millis(0);
        assert_eq!((epoch.year, epoch.month, epoch.day, epoch.weekday), (1970, 1, 1, 4));
    }
}
