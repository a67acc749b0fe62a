//! What is known of texts: lengths, formats, characters, and words that recur.

use serde_json::{Map, Value, json};

use crate::number::number;
use crate::tally::{Ends, Tally, piles_up};

/// The longest text that a list of values has, in bytes.
const MAX_WORD: usize = 48;
/// The longest text whose format is looked at, in bytes.
const MAX_FORMAT: usize = 2048;

/// Whether a text has a format.
type HasFormat = fn(&str) -> bool;

/// Formats, a bit each.
const FORMATS: [(&str, HasFormat); 7] = [
    ("date", is_date),
    ("date-time", is_date_time),
    ("uuid", is_uuid),
    ("email", is_email),
    ("uri", is_uri),
    ("ipv4", |text| is_dotted(text) && text.parse::<std::net::Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<std::net::Ipv6Addr>().is_ok()),
];

/// Characters, a bit each.
mod class {
    pub(super) const DIGIT: u8 = 1;
    pub(super) const HEX_LOWER: u8 = 2;
    pub(super) const HEX_UPPER: u8 = 4;
    pub(super) const LOWER: u8 = 8;
    pub(super) const UPPER: u8 = 16;
    pub(super) const MARK: u8 = 32;
    pub(super) const OTHER: u8 = 64;
}

/// Texts that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) count: u64,
    /// Of those that are not empty.
    lengths: Option<Ends>,
    pub(crate) empty: u64,
    /// The formats that all have, of those that are not empty.
    formats: Option<u8>,
    /// The characters that any has.
    classes: u8,
    pub(crate) values: Tally<String, 24>,
}

impl Texts {
    pub(crate) fn observe(&mut self, text: &str, times: u64) {
        self.count += times;
        if text.len() <= MAX_WORD && text.chars().all(|character| !character.is_control()) {
            self.values.add(text, times);
        } else {
            self.values.overflow();
        }
        if text.is_empty() {
            self.empty += times;
            return;
        }
        // A length is far below 2^52.
        #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
        let length = Ends::of(text.chars().count() as f64, times);
        match &mut self.lengths {
            Some(lengths) => lengths.merge(length),
            None => self.lengths = Some(length),
        }
        self.classes = text.bytes().fold(self.classes, |known, byte| known | class_of(byte));
        let known = self.formats.unwrap_or(u8::MAX);
        if known != 0 {
            let mut kept = 0;
            for (place, (_, has)) in FORMATS.iter().enumerate() {
                let bit = 1 << place;
                if known & bit != 0 && text.len() <= MAX_FORMAT && has(text) {
                    kept |= bit;
                }
            }
            self.formats = Some(kept);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.empty += other.empty;
        self.classes |= other.classes;
        self.values.merge(other.values);
        self.formats = match (self.formats, other.formats) {
            (Some(own), Some(others)) => Some(own & others),
            (own, others) => own.or(others),
        };
        match (&mut self.lengths, other.lengths) {
            (Some(lengths), Some(others)) => lengths.merge(others),
            (None, others) => self.lengths = others,
            (Some(_), None) => {}
        }
    }

    /// The format that all texts have.
    pub(crate) fn format(&self) -> Option<&'static str> {
        let formats = self.formats.filter(|_| self.empty == 0)?;
        FORMATS.iter().enumerate().find(|(place, _)| formats & (1 << place) != 0).map(|(_, (name, _))| *name)
    }

    /// Adds the keywords of a schema.
    pub(crate) fn describe(&self, schema: &mut Map<String, Value>, evidence: u64, sensitive: bool) {
        // A format says a lot: a few texts that all have it are enough.
        if let Some(format) = self.format().filter(|_| self.count >= evidence.min(5)) {
            schema.insert("format".to_owned(), json!(format));
            return;
        }
        if sensitive || self.count < evidence {
            return;
        }
        if let Some(values) = self.recurring(evidence) {
            let listed: Vec<&String> = values.iter().map(|(value, _)| *value).collect();
            let counts: Vec<u64> = values.iter().map(|(_, count)| *count).collect();
            schema.insert("enum".to_owned(), json!(listed));
            schema.insert("x-enum-evidence".to_owned(), json!(counts));
            return;
        }
        let far = self.count >= evidence.saturating_mul(5);
        let Some(lengths) = self.lengths else { return };
        let complete = |seen| piles_up(seen, self.count);
        if self.empty == 0 {
            let low = if complete(lengths.low_seen) { lengths.low } else { 1.0 };
            schema.insert("minLength".to_owned(), number(low));
        }
        if complete(lengths.high_seen) {
            schema.insert("maxLength".to_owned(), number(lengths.high));
        } else if far {
            // As fixed limits of fields often are, and well beyond what was seen.
            let room = (lengths.high * 8.0).max(64.0);
            schema.insert("maxLength".to_owned(), number(room.log2().ceil().exp2()));
        }
        if far && let Some(class) = self.pattern() {
            let repeated = if self.empty == 0 { "+" } else { "*" };
            schema.insert("pattern".to_owned(), json!(format!("^[{class}]{repeated}$")));
        }
    }

    /// A few words that recur, with their counts, if they are probably all.
    fn recurring(&self, evidence: u64) -> Option<Vec<(&String, u64)>> {
        let values = self.values.known()?;
        let enough = if values.len() == 1 { evidence.saturating_mul(5) } else { evidence.saturating_mul(2) };
        let words = values.keys().all(|value| value.is_empty() || is_public(value));
        let all = || values.iter().map(|(value, count)| (value, *count)).collect();
        (words && self.values.is_complete(enough)).then(all)
    }

    /// The characters of a class that all texts keep to, a little wider than what was seen.
    fn pattern(&self) -> Option<&'static str> {
        use class::{DIGIT, HEX_LOWER, HEX_UPPER, LOWER, MARK, UPPER};
        let within = |classes: u8| self.classes & !classes == 0;
        let found = [
            (DIGIT, "0-9"),
            (DIGIT | HEX_LOWER, "0-9a-f"),
            (DIGIT | HEX_UPPER, "0-9A-F"),
            (HEX_LOWER | LOWER, "a-z"),
            (HEX_UPPER | UPPER, "A-Z"),
            (DIGIT | HEX_LOWER | LOWER, "0-9a-z"),
            (DIGIT | HEX_UPPER | UPPER, "0-9A-Z"),
            (DIGIT | HEX_LOWER | LOWER | HEX_UPPER | UPPER, "0-9A-Za-z"),
            (DIGIT | HEX_LOWER | LOWER | HEX_UPPER | UPPER | MARK, "0-9A-Za-z_.-"),
        ];
        found.into_iter().find(|(classes, _)| within(*classes)).map(|(_, class)| class)
    }
}

fn class_of(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => class::DIGIT,
        b'a'..=b'f' => class::HEX_LOWER,
        b'g'..=b'z' => class::LOWER,
        b'A'..=b'F' => class::HEX_UPPER,
        b'G'..=b'Z' => class::UPPER,
        b'-' | b'_' | b'.' => class::MARK,
        _ => class::OTHER,
    }
}

/// Whether a value may be quoted: a word, no address and no token.
fn is_public(value: &str) -> bool {
    let plain = value.chars().all(|character| character.is_ascii_alphanumeric() || "_-./: +*".contains(character));
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    plain && digits < 6 && !crate::segment::is_token(value.as_bytes())
}

fn part(text: &str, from: usize, to: usize) -> Option<u32> {
    let digits = text.get(from..to)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// RFC 3339, `full-date`.
fn is_date(text: &str) -> bool {
    let (Some(year), Some(month), Some(day)) = (part(text, 0, 4), part(text, 5, 7), part(text, 8, 10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-") && (1..=days).contains(&day)
}

/// RFC 3339, `date-time`, without leap seconds.
fn is_date_time(text: &str) -> bool {
    let clock = |from: usize| -> Option<bool> {
        let colon = text.get(from + 2..from + 3)? == ":";
        Some(colon && part(text, from, from + 2)? < 24 && part(text, from + 3, from + 5)? < 60)
    };
    let Some(date) = text.get(..10) else { return false };
    let divided = matches!(text.get(10..11), Some("T" | "t"));
    let seconds = text.get(16..17) == Some(":") && part(text, 17, 19).is_some_and(|seconds| seconds < 60);
    if !is_date(date) || !divided || clock(11) != Some(true) || !seconds {
        return false;
    }
    let rest = text.get(19..).unwrap_or_default();
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    let offset = zone.strip_prefix(['+', '-']).is_some_and(|_| zone.len() == 6 && clock(text.len() - 5) == Some(true));
    zone == "Z" || zone == "z" || offset
}

fn is_uuid(text: &str) -> bool {
    let hyphen = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    let fits = |(place, byte): (usize, u8)| if hyphen(place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// A dot-atom, and a name with a dot or without one.
fn is_email(text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return false };
    let atom = |atom: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte);
        !atom.is_empty() && atom.bytes().all(fits)
    };
    let label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(fits) && !label.starts_with('-') && !label.ends_with('-')
    };
    user.len() <= 64 && host.len() <= 253 && user.split('.').all(atom) && host.split('.').all(label)
}

/// A scheme with an authority, and the characters of RFC 3986.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let escaped = rest.split('%').skip(1).all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2);
    let plain = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte));
    named && escaped && plain && !rest.is_empty() && rest.matches('#').count() <= 1
}

fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && (part == "0" || !part.starts_with('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_of(texts: &[&str]) -> Option<&'static str> {
        let mut seen = Texts::default();
        texts.iter().for_each(|text| seen.observe(text, 1));
        seen.format()
    }

    #[test]
    fn a_format_is_one_that_all_texts_have() {
        let cases: [(&[&str], Option<&str>); 9] = [
            (&["2024-02-29", "1999-12-31"], Some("date")),
            (&["2023-02-29"], None),
            (&["2024-02-29T10:00:00Z", "2024-02-29T10:00:00.5+02:00"], Some("date-time")),
            (&["2024-02-29T10:00:00Z", "2024-02-29"], None),
            (&["550e8400-e29b-41d4-a716-446655440000"], Some("uuid")),
            (&["a.b+c@shop.example"], Some("email")),
            (&["https://shop.example/a?b=c#d"], Some("uri")),
            (&["192.0.2.1"], Some("ipv4")),
            (&["2001:db8::1", "::"], Some("ipv6")),
        ];
        for (texts, format) in cases {
            assert_eq!(format_of(texts), format, "{texts:?}");
        }
    }

    #[test]
    fn values_that_are_addresses_or_tokens_are_not_quoted() {
        for value in ["bob@shop.example", "3f2c9a70b1aa", "4111111111111111", "aB3xY9kLm2"] {
            assert!(!is_public(value), "{value}");
        }
        assert!(is_public("in_progress") && is_public("application/json"));
    }
}
