//! Escapes that a language within JSON undoes once more: GraphQL, JavaScript, another JSON document.

/// The text without its escapes, where one of them gives a character by its number (`\u0027`, `\u{27}`, `\x27`); `None` where none
/// does: then it reads the same for rules. A number that is no character becomes U+FFFD.
pub(crate) fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let first = memchr::memchr(b'\\', text)?;
    let mut value = text.get(..first)?.to_vec();
    let (mut rest, mut numbered) = (text.get(first..)?, false);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        if let Some((number, length)) = by_number(after) {
            numbered = true;
            let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after.get(length..).unwrap_or_default();
            continue;
        }
        let Some((&escaped, after)) = after.split_first() else { break };
        rest = after;
        value.push(match escaped {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            other => other,
        });
    }
    numbered.then_some(value)
}

/// The number of a character behind a backslash, and how many bytes name it.
fn by_number(text: &[u8]) -> Option<(u32, usize)> {
    let number = |digits: &[u8]| {
        let digit = |value: u32, byte: &u8| Some(value.checked_mul(16)? + char::from(*byte).to_digit(16)?);
        digits.iter().try_fold(0_u32, digit)
    };
    match text {
        [b'u', b'{', digits @ ..] => {
            let length = memchr::memchr(b'}', digits.get(..9).unwrap_or(digits)).filter(|length| *length > 0)?;
            Some((number(digits.get(..length)?)?, length + 3))
        }
        [b'u', digits @ ..] => {
            let high = number(digits.get(..4)?)?;
            let low =
                digits.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(|rest| number(rest.get(..4)?));
            match low.filter(|low| (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(low)) {
                Some(low) => Some((0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 11)),
                None => Some((high, 5)),
            }
        }
        [b'x', digits @ ..] => Some((number(digits.get(..2)?)?, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_by_number_are_undone_with_all_others() {
        let cases: &[(&str, Option<&str>)] = &[
            ("plain", None),
            (r#"C:\users\new \" \n"#, None),
            (r"1\u0027 \u0055NION", Some("1' UNION")),
            (r"1\u{27} \u{00000055}NION", Some("1' UNION")),
            (r#"\x3cscript\x3E\n\t\"\\"#, Some("<script>\n\t\"\\")),
            (r"\ud83d\ude00 \u{1f600}", Some("\u{1f600} \u{1f600}")),
            (r"\ud83d \u{110000} \u0041", Some("\u{fffd} \u{fffd} A")),
            (r"\u00 \u{} \u{zz} \xg0 \u0041\", Some("u00 u{} u{zz} xg0 A")),
        ];
        for (text, expected) in cases {
            let found = unescaped(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), *expected, "{text}");
        }
        assert_eq!(unescaped(b"\xff\\x41\xfe").unwrap(), b"\xffA\xfe");
    }
}
