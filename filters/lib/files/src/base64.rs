//! Base64 and quoted-printable, as decoders of applications read them.

/// Decodes base64 (RFC 4648) of either alphabet. White space is skipped, padding may be missing, and what follows padding ends the
/// data. `None` where another character is in it, or where the last group is a single character.
#[must_use]
pub fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0_u8);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            decoded.push(u8::try_from(bits >> held & 0xff).unwrap_or_default());
        }
    }
    (held < 6).then_some(decoded)
}

/// As [`base64`], but `None` where more than padding and white space follows padding as well: some decoders stop there, and others
/// decode on.
#[must_use]
pub(crate) fn whole_base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = memchr::memchr(b'=', text).and_then(|at| text.get(at..)).unwrap_or_default();
    let ends = padding.iter().all(|byte| matches!(byte, b'=' | b' ' | b'\t' | b'\r' | b'\n'));
    base64(text).filter(|_| ends)
}

/// The content of a data URL (RFC 2397) with base64, and its media type; the text itself without a type if it is none.
#[must_use]
pub fn data_url(text: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let scheme = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
    let parts = text.get(5..).filter(|_| scheme).and_then(|rest| {
        let comma = memchr::memchr(b',', rest.get(..512).unwrap_or(rest))?;
        Some((rest.get(..comma)?, rest.get(comma + 1..)?))
    });
    match parts {
        Some((head, data)) => (head.split(|byte| *byte == b';').next().filter(|media| !media.is_empty()), data),
        None => (None, text),
    }
}

/// Decodes quoted-printable (RFC 2045, section 6.7). What is no valid escape stays as it is.
#[must_use]
pub fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'=' {
            decoded.push(*byte);
            continue;
        }
        if let Some(next) = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")) {
            rest = next;
            continue;
        }
        match hex_pair(rest) {
            Some(value) => {
                decoded.push(value);
                rest = rest.get(2..).unwrap_or_default();
            }
            None => decoded.push(b'='),
        }
    }
    decoded
}

/// The byte of two hexadecimal digits.
pub(crate) fn hex_pair(text: &[u8]) -> Option<u8> {
    let [high, low] = *text.first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_may_follow_padding() {
        for (text, expected) in [
            ("aGVsbG8=", Some(b"hello".as_slice())),
            ("aGVsbA= =\r\n", Some(b"hell")),
            ("aGVsbG8", Some(b"hello")),
            ("aGVsbG8=aGVsbG8=", None),
            ("aGVsbG8=!", None),
            ("=aGVs", None),
        ] {
            assert_eq!(whole_base64(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }
}
