//! The `Cookie` request header (version 0 cookies).

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

/// Reports each cookie whose value is in double quotes and means something else within them (RFC 2965, and Python): an
/// escaped byte (`\"`, `\047`), or a `;` that does not end it. The value is reported unescaped and without the quotes.
pub fn parse_quoted(header: &[u8], mut sink: impl FnMut(&[u8], &[u8])) {
    let mut rest = header;
    while !rest.is_empty() {
        let start = rest.iter().take_while(|byte| is_space(**byte)).count();
        let cookie = rest.get(start..).unwrap_or_default();
        let end = memchr::memchr(b';', cookie);
        rest = end.and_then(|end| cookie.get(end + 1..)).unwrap_or_default();
        let Some(equals) = memchr::memchr(b'=', cookie).filter(|at| end.is_none_or(|end| *at < end)) else { continue };
        let (name, value) = (cookie.get(..equals).unwrap_or_default(), cookie.get(equals + 1..).unwrap_or_default());
        let blank = value.iter().take_while(|byte| is_space(**byte)).count();
        let Some(quoted) = value.get(blank..).and_then(|value| value.strip_prefix(b"\"")) else { continue };
        if let Some((value, changed)) = unquoted(quoted)
            && changed
        {
            let length = name.len() - name.iter().rev().take_while(|byte| is_space(**byte)).count();
            sink(name.get(..length).unwrap_or_default(), &value);
        }
    }
}

/// The text up to the closing quote, and whether it is another one than stands there, or has a `;`. `None` if nothing closes it.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (mut value, mut changed) = (Vec::new(), false);
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => return Some((value, changed)),
            b'\\' => {
                changed = true;
                let octal = after.first_chunk::<3>().and_then(|[high, middle, low]| {
                    let digits = matches!((high, middle, low), (b'0'..=b'3', b'0'..=b'7', b'0'..=b'7'));
                    digits.then(|| (high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'))
                });
                let length = if octal.is_some() { 3 } else { 1 };
                value.extend(octal.or(after.first().copied()));
                rest = after.get(length..).unwrap_or_default();
            }
            byte => {
                changed |= byte == b';';
                value.push(byte);
            }
        }
    }
    None
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
            (b"a=\"b\"; c=d; e=\"\"", &[]),
            (br#"a="1\047 or 1=1"; b=2"#, &[("a", "1' or 1=1")]),
            (br#"a=1; b = "x\"y\\z""#, &[("b", r#"x"y\z"#)]),
            (br#"a="x; b=y"; c="\;""#, &[("a", "x; b=y"), ("c", ";")]),
            (br#"a="x\"; b="\74script>""#, &[("a", "x\"; b="), ("b", "74script>")]),
            (br#"a="\x\400\08""#, &[("a", "x40008")]),
            (br#"a="x\""#, &[]),
            (br#"a="x"#, &[]),
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
