//! `@validateByteRange`, `@validateUrlEncoding`, `@validateUtf8Encoding`.

use super::OperatorError;
use super::rx::ByteSet;

/// The bytes an argument allows: decimal numbers and ranges, separated by commas.
pub(super) fn byte_ranges(argument: &[u8]) -> Result<ByteSet, OperatorError> {
    let mut set = ByteSet::default();
    let mut offset = 0;
    for piece in argument.split(|&byte| byte == b',') {
        let fail = |message: &str| {
            Err(OperatorError {
                message: message.into(),
                help: Some("Write byte values from 0 to 255 and ranges of them, for example 9,10,13,32-126.".into()),
                offset: Some(offset),
            })
        };
        let mut bounds = piece.splitn(2, |&byte| byte == b'-').map(byte_value);
        match (bounds.next().flatten(), bounds.next()) {
            (Some(byte), None) => set.insert(byte),
            (Some(first), Some(Some(last))) if first <= last => set.insert_range(first, last),
            (Some(_), Some(Some(_))) => return fail("the end of this range is before its start"),
            _ => return fail("this is not a byte value"),
        }
        offset += piece.len() + 1;
    }
    Ok(set)
}

fn byte_value(text: &[u8]) -> Option<u8> {
    let text = text.trim_ascii();
    std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Whether any byte is outside of the set.
pub(super) fn outside(set: &ByteSet, value: &[u8]) -> bool {
    value.iter().any(|&byte| !set.contains(byte))
}

/// Whether any `%` is not followed by two hexadecimal digits.
pub(super) fn invalid_percent_encoding(value: &[u8]) -> bool {
    memchr::memchr_iter(b'%', value).any(|at| {
        let digits = value.get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Whether the value is not UTF-8 (RFC 3629): incomplete or overlong sequences, surrogates, code points too large.
pub(super) fn invalid_utf8(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_byte_ranges() {
        let set = byte_ranges(b"9, 10,13,32-126").expect("valid");
        assert!(!outside(&set, b"a\tb\r\n"));
        assert!(outside(&set, b"a\0"));
        assert!(outside(&set, b"\xff"));
        assert!(!outside(&set, b""));
        for (wrong, at) in [("", 0), ("256", 0), ("1,x", 2), ("5-1", 0), ("1,-5", 2), ("1,2-", 2), ("1,2-3-4", 2)] {
            assert_eq!(byte_ranges(wrong.as_bytes()).map_err(|error| error.offset), Err(Some(at)), "{wrong}");
        }
    }

    #[test]
    fn validates_encodings() {
        for valid in ["", "abc", "%41%zz".get(..3).unwrap_or(""), "%00", "a+b"] {
            assert!(!invalid_percent_encoding(valid.as_bytes()), "{valid}");
        }
        for invalid in ["%", "%4", "%zz", "%41%", "%u0041", "100%"] {
            assert!(invalid_percent_encoding(invalid.as_bytes()), "{invalid}");
        }
        for valid in [&b""[..], b"a", "\u{e9}\u{20ac}\u{1f600}".as_bytes()] {
            assert!(!invalid_utf8(valid));
        }
        for invalid in [&b"\xc0\xaf"[..], b"\xe9", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80"] {
            assert!(invalid_utf8(invalid), "{invalid:?}");
        }
    }
}
