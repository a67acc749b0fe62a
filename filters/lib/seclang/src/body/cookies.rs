//! The `Cookie` request header (version 0 cookies).

use std::borrow::Cow;

/// Reports each name and value of one `Cookie` header, as they stand: nothing is decoded.
///
/// White space before a name and at the end of the header is dropped. A cookie without `=` has an empty value; one
/// without a name has an empty name (some applications read such a value).
pub fn parse(header: &[u8], mut sink: impl FnMut(&[u8], &[u8])) {
    let end = header.len() - header.iter().rev().take_while(|byte| is_space(**byte)).count();
    let header = header.get(..end).unwrap_or(header);
    for cookie in header.split(|&byte| byte == b';') {
        let start = cookie.iter().take_while(|byte| is_space(**byte)).count();
        let cookie = cookie.get(start..).unwrap_or_default();
        let (name, value) = match memchr::memchr(b'=', cookie) {
            Some(at) => (cookie.get(..at).unwrap_or_default(), cookie.get(at + 1..).unwrap_or_default()),
            None => (cookie, &b""[..]),
        };
        if !(name.is_empty() && value.is_empty()) {
            sink(name, value);
        }
    }
}

/// Reports the further readings of each cookie whose value begins with a double quote, as far as they differ from each other and are
/// more than a word (which no rule reads in another way without its quotes):
///
/// - up to the closing quote, even behind a `;`, with escaped bytes (`\"`, `\047`) undone (RFC 2965, Python), where that is not one
///   of the others;
/// - up to the next `;`, without the first and the last byte, whatever the last one is (Node.js);
/// - the same with escaped bytes undone, quotes in the middle included (Python).
pub fn parse_quoted(header: &[u8], mut sink: impl FnMut(&[u8], &[u8])) {
    let mut rest = header;
    while !rest.is_empty() {
        let start = rest.iter().take_while(|byte| is_space(**byte)).count();
        let cookie = rest.get(start..).unwrap_or_default();
        // Whichever comes first: a search for the one alone would go on to the end for every cookie that has none.
        let Some(first) = memchr::memchr2(b';', b'=', cookie) else { break };
        let end = memchr::memchr(b';', cookie.get(first..).unwrap_or_default()).map(|end| first + end);
        rest = end.and_then(|end| cookie.get(end + 1..)).unwrap_or_default();
        let Some(equals) = Some(first).filter(|first| end != Some(*first)) else { continue };
        let (name, value) = (cookie.get(..equals).unwrap_or_default(), cookie.get(equals + 1..).unwrap_or_default());
        let blank = value.iter().take_while(|byte| is_space(**byte)).count();
        let Some(quoted) = value.get(blank..).and_then(|value| value.strip_prefix(b"\"")) else { continue };
        let length = name.len() - name.iter().rev().take_while(|byte| is_space(**byte)).count();
        let name = name.get(..length).unwrap_or_default();
        // Without the last byte: a cookie that is a quote alone has no other reading.
        let own = quoted.get(..memchr::memchr(b';', quoted).unwrap_or(quoted.len())).unwrap_or_default();
        let own =
            own.get(..own.len() - own.iter().rev().take_while(|byte| is_space(**byte)).count()).unwrap_or_default();
        let stripped = own.split_last().map(|(_, stripped)| stripped).unwrap_or_default();
        let unescaped = unescaped(stripped);
        let closed = closing_quote(quoted).and_then(|end| quoted.get(..end)).map(self::unescaped);
        let readings = [Some(stripped), Some(&*unescaped), closed.as_deref()];
        for (at, reading) in readings.iter().enumerate() {
            let known = readings.get(..at).is_some_and(|earlier| earlier.contains(reading));
            if let Some(reading) = reading.filter(|reading| !known && !reading.iter().all(|byte| is_word(*byte))) {
                sink(name, reading);
            }
        }
    }
}

/// Where the text ends within quotes; `None` if nothing closes it.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })
}

/// The text with its escaped bytes undone: `\047` is the byte of this octal number, any other escaped byte is itself.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut value = text.get(..first).unwrap_or_default().to_vec();
    let mut rest = text.get(first..).unwrap_or_default();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        let octal = after.first_chunk::<3>().and_then(|[high, middle, low]| {
            let digits = matches!((high, middle, low), (b'0'..=b'3', b'0'..=b'7', b'0'..=b'7'));
            digits.then(|| (high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'))
        });
        let length = if octal.is_some() { 3 } else { 1 };
        value.extend(octal.or(after.first().copied()));
        rest = after.get(length..).unwrap_or_default();
    }
    Cow::Owned(value)
}

/// A byte of a number, a name or an id.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// White space of the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(header: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut found = Vec::new();
        parse(header, |name, value| found.push((text(name), text(value))));
        found
    }

    #[test]
    fn quoted_values_are_unescaped_where_that_changes_them() {
        let cases: &[(&[u8], Pairs)] = &[
            (b"a=\"b-1\"; c=d; e=\"\"", &[]),
            (b"a=\"1 or 1=1-- -\" ; b=2", &[("a", "1 or 1=1-- -")]),
            (br#"a="1\047 or 1=1"; b=2"#, &[("a", r"1\047 or 1=1"), ("a", "1' or 1=1")]),
            (br#"a=1; b = "x\"y\\z""#, &[("b", r#"x\"y\\z"#), ("b", r#"x"y\z"#)]),
            (br#"a="x; b=y"; c="\;""#, &[("a", "x; b=y"), ("c", ";")]),
            (br#"a="x\x\400\08""#, &[("a", r"x\x\400\08")]),
            // Never closed: the last byte goes, whatever it is.
            (br#"a="1 or 1=1-- -x"#, &[("a", "1 or 1=1-- -")]),
            (br#"a="x\""#, &[("a", r"x\")]),
            // Quotes in the middle.
            (br#"a=""\061\047""#, &[("a", r#""\061\047"#), ("a", "\"1'")]),
            (br#"a="a"\061""#, &[("a", r#"a"\061"#), ("a", "a\"1")]),
            (br#"a=""#, &[]),
        ];
        for (header, expected) in cases {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let mut found = Vec::new();
            parse_quoted(header, |name, value| found.push((text(name), text(value))));
            let expected: Vec<_> = expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(header));
        }
    }

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn splits_a_header() {
        let cases: &[(&[u8], Pairs)] = &[
            (b"", &[]),
            (b"a=1", &[("a", "1")]),
            (b"a=1; b=2", &[("a", "1"), ("b", "2")]),
            (b"a=1;b=2;  c=3 \t", &[("a", "1"), ("b", "2"), ("c", "3")]),
            (b"a=b=c", &[("a", "b=c")]),
            (b"flag; a", &[("flag", ""), ("a", "")]),
            (b"=value; a=1; =", &[("", "value"), ("a", "1")]),
            (b"   =value", &[("", "value")]),
            (b"a=%41+b; a=2", &[("a", "%41+b"), ("a", "2")]),
            (b"a=\"x; y\"", &[("a", "\"x"), ("y\"", "")]),
            (b";;;", &[]),
        ];
        for (header, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            assert_eq!(cookies(header), expected, "{:?}", String::from_utf8_lossy(header));
        }
    }
}
