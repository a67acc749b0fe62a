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
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
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
        } else if let Some((value, behind)) = escaped(rest) {
            decoded.push(value);
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

/// The byte that the two hexadecimal digits behind a percent sign stand for, and what is behind them.
#[must_use]
pub fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = text.split_first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let [high, low] = *digits;
    Some((digit(high)? << 4 | digit(low)?, behind))
}

/// What is behind the percent sign of `%u2215`, which some servers understand.
fn wide(text: &[u8]) -> Option<(char, &[u8])> {
    let digits = text.strip_prefix(b"u").or_else(|| text.strip_prefix(b"U"))?;
    let (high, behind) = escaped(digits)?;
    let (low, behind) = escaped(behind)?;
    Some((char::from_u32(u32::from(high) << 8 | u32::from(low))?, behind))
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

/// The text with the ASCII characters in one byte that are written in up to six, which is no UTF-8; `None` where there are none. Linear
/// in its length.
pub(crate) fn shortened(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_ascii() {
        return None;
    }
    let mut found = false;
    let mut shortened = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        match overlong(*byte, behind) {
            Some((value, behind)) => {
                shortened.push(value);
                (rest, found) = (behind, true);
            }
            None => {
                shortened.push(*byte);
                rest = behind;
            }
        }
    }
    found.then_some(shortened)
}

/// The ASCII character that begins with a byte and takes more than it, and what is behind it.
fn overlong(first: u8, behind: &[u8]) -> Option<(u8, &[u8])> {
    let more = match first {
        0xc0 | 0xc1 => 1,
        0xe0 => 2,
        0xf0 => 3,
        0xf8 => 4,
        0xfc => 5,
        _ => return None,
    };
    let (tail, behind) = behind.split_at_checked(more)?;
    if tail.iter().any(|byte| byte & 0xc0 != 0x80) {
        return None;
    }
    let value = tail.iter().fold(u32::from(first & 1), |all, byte| all << 6 | u32::from(byte & 0x3f));
    Some((u8::try_from(value).ok().filter(u8::is_ascii)?, behind))
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
        assert_eq!(
            canonical(b"/x/\xe0\x80\xae\xf0\x80\x80\xae\xf8\x80\x80\x80\xaf\xfc\x80\x80\x80\x80\xaeenv"),
            b"/.env"
        );
        assert_eq!(canonical(b"/a/"), b"/a/");
        assert_eq!(canonical(b"/a//"), b"/a/");
        assert_eq!(canonical(b"/a/b/.."), b"/a");
        for root in ["", "/", "//", "/..", "/./", "\\", "/;x", "http://host", "/\0a"] {
            assert_eq!(canonical(root.as_bytes()), b"/", "{root:?}");
        }
        for plain in ["/a", "/a/b.css", "/a/b/", "/.well-known/x", "/a..b", "/\u{e9}"] {
            assert_eq!(canonical(plain.as_bytes()), plain.as_bytes());
        }
        for other in [&b"/\xc0"[..], b"/\xe0\x80", b"/\xe0\xa4\x95", b"/\xf0\x9f\x98\x80"] {
            assert_eq!(canonical(other), other);
        }
    }
}
