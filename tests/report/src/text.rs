//! Texts from recordings, numbers and times, made fit to be read.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The text with everything escaped that a terminal or a browser would act on, or that would show text as something that
/// it is not: control characters (so also ANSI sequences and line ends), direction marks and overrides, characters
/// without width. Escaping twice changes nothing more.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(misleads) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if !misleads(c) => out.push(c),
            c if u32::from(c) < 0x100 => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The columns that the text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text's beginning in at most `columns`; `mark` stands for what was cut off.
pub fn cut<'a>(text: &'a str, columns: usize, mark: &str) -> Cow<'a, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(width(mark));
    let mut taken = 0;
    let mut out = String::new();
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        out.push(c);
    }
    out.push_str(mark);
    Cow::Owned(out)
}

/// The text's beginning in at most `bytes`, with an ellipsis where some was cut off.
pub(crate) fn head(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}\u{2026}", &text[..text.floor_char_boundary(bytes)]))
}

/// A number with its thousands apart: `1,234,567`.
pub fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and its noun: `1 request`, `1,234 requests`.
pub fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", commas(number), if number == 1 { one } else { more })
}

/// A part of a whole in percent; what is not nothing does not become 0.0 %, nor what is not all 100.0 %.
pub fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        _ if part >= whole => "100 %".to_owned(),
        small if small < 0.1 => "<0.1 %".to_owned(),
        large if large > 99.9 => ">99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A score or a weight, without digits that say nothing: `5`, `7.25`.
pub fn score(score: f64) -> String {
    let rounded = (score * 100.0).round() / 100.0;
    // A negative zero is a zero.
    format!("{}", rounded + 0.0)
}

/// Milliseconds since the Unix epoch as RFC 3339 in UTC; the number itself where no calendar reaches.
pub fn instant(millis: u64) -> String {
    match i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()) {
        Some(at) if millis.is_multiple_of(1000) => at.to_string(),
        Some(at) => format!("{at:.3}"),
        None => format!("{millis} ms after 1970"),
    }
}

/// A span in the unit that suits it: `850 ms`, `12.5 s`, `4.0 min`, `3.2 h`, `5.1 d`.
pub fn span(millis: u64) -> String {
    let seconds = millis as f64 / 1000.0;
    match seconds {
        _ if millis < 1000 => format!("{millis} ms"),
        s if s < 120.0 => format!("{} s", score((s * 10.0).round() / 10.0)),
        s if s < 7_200.0 => format!("{} min", score((s / 6.0).round() / 10.0)),
        s if s < 172_800.0 => format!("{} h", score((s / 360.0).round() / 10.0)),
        s => format!("{} d", score((s / 8_640.0).round() / 10.0)),
    }
}

/// Microseconds in the unit that suits them: `850 us`, `1.25 ms`, `2.1 s`.
pub fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{} ms", score(micros as f64 / 1000.0)),
        _ => span(micros / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        assert_eq!(escaped("/a?b=\u{e9}\u{4e2d}\\"), "/a?b=\u{e9}\u{4e2d}\\");
        assert!(matches!(escaped("/plain"), Cow::Borrowed(_)));
        assert_eq!(escaped("\x1b[31mred\x1b[0m\x07"), "\\x1b[31mred\\x1b[0m\\x07");
        assert_eq!(escaped("a\r\n\tb\0\x7f\u{9b}2J"), "a\\r\\n\\tb\\x00\\x7f\\x9b2J");
        assert_eq!(escaped("/\u{202e}gpj.exe\u{2066}\u{200b}"), "/\\u{202e}gpj.exe\\u{2066}\\u{200b}");
        assert_eq!(escaped("\u{2028}\u{feff}\u{e0041}\u{61c}"), "\\u{2028}\\u{feff}\\u{e0041}\\u{61c}");
        let once = escaped("\x1b\u{202e}").into_owned();
        assert_eq!(escaped(&once), once);
    }

    #[test]
    fn no_control_or_direction_character_gets_through() {
        for c in (0..=0x0011_0000).filter_map(char::from_u32).filter(|c| c.is_control()) {
            let text = c.to_string();
            assert!(escaped(&text).chars().all(|c| c.is_ascii_graphic()), "{:x}", u32::from(c));
        }
        for c in "\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars() {
            assert!(escaped(&c.to_string()).is_ascii());
        }
    }

    #[test]
    fn texts_are_cut_by_columns_and_by_bytes() {
        assert_eq!(cut("abcdef", 6, "..."), "abcdef");
        assert_eq!(cut("abcdefg", 6, "..."), "abc...");
        assert_eq!(cut("\u{4e2d}\u{4e2d}\u{4e2d}", 5, "\u{2026}"), "\u{4e2d}\u{4e2d}\u{2026}");
        assert_eq!(head("\u{e9}\u{e9}", 3), "\u{e9}\u{2026}");
        assert_eq!(head("ab", 2), "ab");
    }

    #[test]
    fn numbers_and_times_are_short() {
        let numbers: Vec<_> = [0, 999, 1_000, 12_345, 1_234_567].into_iter().map(commas).collect();
        assert_eq!(numbers, ["0", "999", "1,000", "12,345", "1,234,567"]);
        let shares: Vec<_> = [0, 1, 500, 99_999, 100_000].into_iter().map(|part| share(part, 100_000)).collect();
        assert_eq!(shares, ["0 %", "<0.1 %", "0.5 %", ">99.9 %", "100 %"]);
        let scores: Vec<_> = [0.0, -0.0, 5.0, 7.254, 0.1].into_iter().map(score).collect();
        assert_eq!(scores, ["0", "0", "5", "7.25", "0.1"]);
        assert_eq!(instant(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(instant(1_700_000_000_120), "2023-11-14T22:13:20.120Z");
        assert_eq!(instant(1_700_000_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(instant(u64::MAX), "18446744073709551615 ms after 1970");
        let spans: Vec<_> = [850, 12_500, 240_000, 11_520_000, 440_640_000].into_iter().map(span).collect();
        assert_eq!(spans, ["850 ms", "12.5 s", "4 min", "3.2 h", "5.1 d"]);
        assert_eq!([micros(850), micros(1_250), micros(2_100_000)], ["850 us", "1.25 ms", "2.1 s"]);
    }
}
