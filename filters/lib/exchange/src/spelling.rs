//! The spellings of a path.
//!
//! A client that wants `/.env` may ask for `/%2eenv`, `//.env`, `/x/..;/.env` or `/.env%00.png`, because some backend or
//! gateway reads that as the same. Where it does not matter which backend does (decoys, what robots.txt forbids), every spelling is
//! undone here, while [`PathReadings`](crate::PathReadings) names those that backends agree on.

/// How often escapes are undone: what is escaped more often is left as it is.
const ROUNDS: usize = 3;

/// The text with its escapes undone (`%41`, `%u0041`), then with those undone that were escaped themselves, in three rounds at most.
/// Nothing where it has none.
pub fn decoded(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::successors(decode(text), |earlier| decode(earlier)).take(ROUNDS)
}

/// Undoes `%41` and `%u0041`; `None` where there is no such escape.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut found = false;
    if !text.contains(&b'%') {
        return None;
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            decoded.push(*byte);
        } else if let Some((value, behind)) = hexadecimal::<2>(rest) {
            decoded.push(u8::try_from(value).unwrap_or(b'%'));
            (rest, found) = (behind, true);
        } else if let Some((character, behind)) = wide(rest) {
            decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            (rest, found) = (behind, true);
        } else {
            decoded.push(*byte);
        }
    }
    found.then_some(decoded)
}

/// What is behind the percent sign of `%u2215`, which some servers understand.
fn wide(text: &[u8]) -> Option<(char, &[u8])> {
    let digits = text.strip_prefix(b"u").or_else(|| text.strip_prefix(b"U"))?;
    let (value, behind) = hexadecimal::<4>(digits)?;
    Some((char::from_u32(value)?, behind))
}

/// The number that so many hexadecimal digits stand for, and what is behind them.
fn hexadecimal<const DIGITS: usize>(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, behind) = text.split_first_chunk::<DIGITS>()?;
    let value = digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))?;
    Some((value, behind))
}

/// The path that the laxest backends take one for, its escapes undone already: backslashes are slashes, it ends at a NUL, a `?` or a
/// `#`, segments lose their parameters and the dots and spaces at their end, empty ones are left out, and `.` and `..` are resolved.
/// It begins with a slash. Linear in its length.
#[must_use]
pub fn canonical(path: &[u8]) -> Vec<u8> {
    let shortened = shortened(path);
    let path = without_authority(shortened.as_deref().unwrap_or(path));
    let path = path.split(|byte| b"\0?#".contains(byte)).next().unwrap_or_default();
    let mut resolved: Vec<u8> = Vec::with_capacity(path.len() + 1);
    let mut ends_in_slash = false;
    for segment in path.split(|byte| b"/\\".contains(byte)) {
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        let name = trimmed(name, |byte| byte <= b' ');
        let whole = trimmed(name, |byte| byte <= b' ' || byte == b'.');
        ends_in_slash = whole.is_empty() && name != b"..";
        if name == b".." {
            resolved.truncate(resolved.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        } else if !whole.is_empty() {
            resolved.push(b'/');
            resolved.extend_from_slice(whole);
        }
    }
    if ends_in_slash || resolved.is_empty() {
        resolved.push(b'/');
    }
    resolved
}

/// The path of an absolute URL.
fn without_authority(path: &[u8]) -> &[u8] {
    let Some(scheme) = path.iter().position(|byte| b"/\\".contains(byte)).filter(|place| *place > 0) else {
        return path;
    };
    let Some(rest) = path.get(scheme..).and_then(|rest| rest.strip_prefix(b"//")) else { return path };
    let authority = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    rest.get(authority..).unwrap_or_default()
}

/// The path with ASCII characters that are written as two bytes, which is no UTF-8, as one; `None` where there are none.
fn shortened(path: &[u8]) -> Option<Vec<u8>> {
    if !path.iter().any(|byte| matches!(byte, 0xc0 | 0xc1)) {
        return None;
    }
    let mut shortened = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.split_first()) {
            (0xc0 | 0xc1, Some((low @ 0x80..=0xbf, behind))) => {
                shortened.push((byte & 1) << 6 | (low & 0x3f));
                rest = behind;
            }
            _ => shortened.push(*byte),
        }
    }
    Some(shortened)
}

fn trimmed(text: &[u8], lost: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().rposition(|byte| !lost(*byte)).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_round_by_round() {
        let all = |text: &[u8]| decoded(text).map(|text| text.escape_ascii().to_string()).collect::<Vec<_>>();
        assert_eq!(all(b"/a"), Vec::<String>::new());
        assert_eq!(all(b"/100%"), Vec::<String>::new());
        assert_eq!(all(b"/%zz%2"), Vec::<String>::new());
        assert_eq!(all(b"/%2Eenv%"), ["/.env%"]);
        assert_eq!(all(b"/%25252eenv"), ["/%252eenv", "/%2eenv", "/.env"]);
        assert_eq!(all(b"/%2525252eenv"), ["/%25252eenv", "/%252eenv", "/%2eenv"]);
        assert_eq!(all(b"%u002Eenv%U0041"), [".envA"]);
        assert_eq!(all(b"%ud800%u12%ff"), [r"%ud800%u12\xff"]);
    }

    #[test]
    fn odd_spellings_are_one_path() {
        for path in [
            "/.env",
            "//.env",
            "/./.env",
            "/x/../.env",
            "/x/..;a=1/.env",
            "/../../.env",
            "\\.env",
            "/x\\..\\.env",
            "/.env;v=1",
            "/;x/.env",
            "/.env.",
            "/.env. .",
            "/.env ",
            "/.env\0.png",
            "/.env#x",
            "/.env?x",
            ".env",
            "http://host/.env",
            "http://host//.env",
            "/x/.. /.env",
        ] {
            assert_eq!(canonical(path.as_bytes()), b"/.env", "{path:?}");
        }
        assert_eq!(canonical(b"/x/\xc0\xae\xc0\xae\xc0\xaf\xc0\xaeenv"), b"/.env");
        assert_eq!(canonical(b"/a/"), b"/a/");
        assert_eq!(canonical(b"/a//"), b"/a/");
        assert_eq!(canonical(b"/a/b/.."), b"/a");
        for root in ["", "/", "//", "/..", "/./", "\\", "/;x", "http://host", "/\0a"] {
            assert_eq!(canonical(root.as_bytes()), b"/", "{root:?}");
        }
        for plain in ["/a", "/a/b.css", "/a/b/", "/.well-known/x", "/a..b", "/\u{e9}"] {
            assert_eq!(canonical(plain.as_bytes()), plain.as_bytes());
        }
        assert_eq!(canonical(b"/\xc0"), b"/\xc0");
    }
}
