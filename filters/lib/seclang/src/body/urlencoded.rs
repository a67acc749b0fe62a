//! `application/x-www-form-urlencoded`: query strings and form bodies.

use std::borrow::Cow;

use memchr::memchr;

use crate::transform::decode_argument;

/// Limits of [`parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many arguments are reported; the rest is counted as exceeding. Default 1000.
    pub arguments: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { arguments: 1000 }
    }
}

/// What [`parse`] saw besides the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// How many arguments were reported.
    pub arguments: usize,
    /// How many `%` were not followed by two hexadecimal digits (`URLENCODED_ERROR` if not 0).
    pub invalid_encodings: usize,
    /// Whether there were more arguments than the limit.
    pub limit_exceeded: bool,
}

/// Splits `input` at `separator` (`&` unless the rules say otherwise) and reports each name and value, decoded.
///
/// `+` is a space; a parameter without `=` is a parameter with an empty value; an empty piece between two separators
/// is none. A `%` that is not followed by two hexadecimal digits is kept as it is and counted.
pub fn parse(
    input: &[u8],
    separator: u8,
    limits: &Limits,
    mut sink: impl FnMut(Cow<'_, [u8]>, Cow<'_, [u8]>),
) -> Outcome {
    let mut outcome = Outcome::default();
    for piece in input.split(|&byte| byte == separator).filter(|piece| !piece.is_empty()) {
        if outcome.arguments == limits.arguments {
            outcome.limit_exceeded = true;
            break;
        }
        let (name, value) = match memchr(b'=', piece) {
            Some(at) => (piece.get(..at).unwrap_or_default(), piece.get(at + 1..).unwrap_or_default()),
            None => (piece, &b""[..]),
        };
        let (name, invalid_name) = decode_argument(name);
        let (value, invalid_value) = decode_argument(value);
        outcome.arguments += 1;
        outcome.invalid_encodings += invalid_name + invalid_value;
        sink(name, value);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(input: &[u8], separator: u8) -> (Vec<(String, String)>, Outcome) {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let mut found = Vec::new();
        let outcome =
            parse(input, separator, &Limits::default(), |name, value| found.push((text(&name), text(&value))));
        (found, outcome)
    }

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn splits_and_decodes() {
        let cases: &[(&str, Pairs, usize)] = &[
            ("", &[], 0),
            ("a=1&b=2", &[("a", "1"), ("b", "2")], 0),
            ("a", &[("a", "")], 0),
            ("a&b", &[("a", ""), ("b", "")], 0),
            ("a=", &[("a", "")], 0),
            ("=b", &[("", "b")], 0),
            ("=", &[("", "")], 0),
            ("&&a=1&", &[("a", "1")], 0),
            ("a=b=c", &[("a", "b=c")], 0),
            ("a+b=c+d", &[("a b", "c d")], 0),
            ("%61=%00%ff", &[("a", "\\x00\\xff")], 0),
            ("a=%&b=%4&c=%zz", &[("a", "%"), ("b", "%4"), ("c", "%zz")], 3),
            ("a=%u0041", &[("a", "%u0041")], 1),
            ("a=%26&b=%3d", &[("a", "&"), ("b", "=")], 0),
        ];
        for (input, expected, invalid) in cases {
            let (found, outcome) = arguments(input.as_bytes(), b'&');
            let expected: Vec<_> = expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            assert_eq!(found, expected, "{input}");
            assert_eq!(outcome.invalid_encodings, *invalid, "{input}");
            assert_eq!(outcome.arguments, expected.len(), "{input}");
        }
        assert_eq!(arguments(b"a=1;b=2&c", b';').0.len(), 2);
    }

    #[test]
    fn stops_at_the_limit() {
        assert_eq!(Limits::default(), Limits { arguments: 1000 });
        let (found, outcome) = arguments("a&".repeat(1001).as_bytes(), b'&');
        assert_eq!(found.len(), 1000);
        assert!(outcome.limit_exceeded);
        assert!(!arguments("a&".repeat(1000).as_bytes(), b'&').1.limit_exceeded);
    }
}
