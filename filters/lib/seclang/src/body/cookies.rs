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

/// White space of the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn cookies(header: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut found = Vec::new();
        parse(header, |name, value| found.push((text(name), text(value))));
        found
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
