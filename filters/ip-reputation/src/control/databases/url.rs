//! URLs of databases, which may have the month of their fetch in them.

use kit::FieldProblem;
use kit::checks::{required, url};

/// What is wrong with the URL of a database. One that is enabled needs one.
pub(in crate::control) fn check(pointer: &str, text: &str, enabled: bool) -> Option<FieldProblem> {
    let plain = with_month(text, (2000, 1));
    if text.is_empty() {
        return required(pointer, !enabled, "an enabled database is fetched from somewhere");
    }
    if plain.contains(['{', '}']) {
        let problem = FieldProblem::new(pointer, "the URL has a placeholder that is not known");
        return Some(problem.expected("`{yyyy}` and `{MM}` alone"));
    }
    url(pointer, &plain)
}

/// Whether a URL has the month in it.
pub(super) fn has_month(text: &str) -> bool {
    text.contains("{MM}")
}

/// A URL at a month: the year, and the month from 1.
pub(super) fn with_month(text: &str, (year, month): (u32, u32)) -> String {
    text.replace("{yyyy}", &format!("{year:04}")).replace("{MM}", &format!("{month:02}"))
}

/// The month of a time, in milliseconds since 1970, UTC.
pub(super) fn month_of(millis: u64) -> (u32, u32) {
    let text = base::clock::rfc3339(millis);
    let number = |range| text.get(range).and_then(|part: &str| part.parse().ok());
    (number(0..4).unwrap_or(1970), number(5..7).unwrap_or(1))
}

/// The month before.
pub(super) fn month_before((year, month): (u32, u32)) -> (u32, u32) {
    match month {
        0 | 1 => (year.saturating_sub(1), 12),
        month => (year, month - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_the_month_of_the_fetch() {
        let january = month_of(1_767_225_600_000);
        assert_eq!((january, month_of(1_767_225_599_999)), ((2026, 1), (2025, 12)));
        assert_eq!(with_month("https://a/{yyyy}-{MM}.gz", january), "https://a/2026-01.gz");
        assert_eq!((month_before(january), month_before((2026, 12))), ((2025, 12), (2026, 11)));
        assert!(has_month("https://a/{MM}") && !has_month("https://a/MM"));
        assert_eq!(check("/url", "https://a/{yyyy}/{MM}", true), None);
        assert!(check("/url", "https://a/{dd}", true).is_some() && check("/url", "", true).is_some());
        assert_eq!(check("/url", "", false), None);
    }
}
