//! Names of secrets, and the escapes that names and values come in.

use std::borrow::Cow;

use exchange::fold::{ID, fold_segment};

/// What names of secrets hold, in lower case. Followed by the second text it is part of a harmless word: `author`, `classname`.
const PARTS: [(&[u8], &[u8]); 19] = [
    (b"passw", b""),
    (b"pwd", b""),
    (b"secret", b""),
    (b"token", b""),
    (b"api_key", b""),
    (b"api-key", b""),
    (b"apikey", b""),
    (b"authori", b""),
    (b"auth", b"or"),
    (b"session", b""),
    (b"sessid", b""),
    (b"csrf", b""),
    (b"xsrf", b""),
    (b"card", b""),
    (b"cvv", b""),
    (b"cvc", b""),
    (b"iban", b""),
    (b"ssn", b"ame"),
    (b"credential", b""),
];
/// What any of them begins with.
const FIRST: &[u8] = b"acipstx";
/// Words that are names of secrets by themselves: `pin`, `user[pin]`, `connect.sid`.
const WORDS: [&[u8]; 2] = [b"pin", b"sid"];

/// Whether a name, its escapes undone, is that of a secret.
pub(super) fn is_secret(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let begins = |rest: &[u8]| {
        PARTS.iter().any(|(part, harmless)| {
            rest.strip_prefix(*part).is_some_and(|behind| harmless.is_empty() || !behind.starts_with(harmless))
        })
    };
    let is_word = |word: &[u8]| WORDS.contains(&word);
    let starts = lower.iter().enumerate().filter(|(_, byte)| FIRST.contains(byte));
    starts.into_iter().any(|(at, _)| lower.get(at..).is_some_and(begins))
        || lower.split(|byte| !byte.is_ascii_alphanumeric() && !b"_-".contains(byte)).any(is_word)
}

/// Whether a name is a value: a token that stands in a query by itself, the key of a map, an element of an array other than the first.
/// Each caller sends another one, and it may be a secret.
pub(super) fn is_value(name: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        let element = part.strip_prefix(b"array_").unwrap_or(part);
        element != b"0" && fold_segment(element).starts_with(ID)
    };
    name.split(|byte| b".[]$:".contains(byte)).any(is_part)
}

/// Text of a query or a form with its escapes undone; what is no escape stays.
pub(super) fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        decoded.push(match (byte, behind) {
            (b'+', _) => b' ',
            (b'%', [high, low, behind @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = behind;
                    high << 4 | low
                }
                _ => byte,
            },
            _ => byte,
        });
    }
    Cow::Owned(decoded)
}

/// The text as a value of a query or a form.
pub(super) fn percent_encoded(text: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    let mut encoded = Vec::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~*/:?".contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// The content of a JSON string with its escapes undone. Halves of a character beyond the basic plane become `U+FFFD`.
pub(super) fn json_unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let Some((&escape, behind)) = rest.split_first() else { break };
        rest = behind;
        match escape {
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'n' => plain.push(b'\n'),
            b'r' => plain.push(b'\r'),
            b't' => plain.push(b'\t'),
            b'u' => {
                let (first, behind) = unit(rest);
                rest = behind;
                let second = rest.strip_prefix(b"\\u").map(unit);
                let pair = second.and_then(|(second, _)| char::decode_utf16([first, second]).next()?.ok());
                let single = char::from_u32(u32::from(first));
                if let (None, Some(pair), Some((_, behind))) = (single, pair, second) {
                    rest = behind;
                    plain.extend(pair.encode_utf8(&mut [0; 4]).bytes());
                } else {
                    plain.extend(single.unwrap_or('\u{fffd}').encode_utf8(&mut [0; 4]).bytes());
                }
            }
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

/// The text as the content of a JSON string.
pub(super) fn json_escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' | b'\\' => escaped.extend([b'\\', *byte]),
            ..b' ' => escaped.extend(format!("\\u{byte:04x}").bytes()),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

/// The four digits that text begins with, and what is behind them; `U+FFFD` for other text.
fn unit(text: &[u8]) -> (u16, &[u8]) {
    let digits = text.split_first_chunk::<4>();
    let unit = digits.and_then(|(digits, behind)| {
        let digits = digits.map(digit);
        let unit = digits.iter().try_fold(0, |unit: u16, digit| Some(unit << 4 | u16::from((*digit)?)));
        Some((unit?, behind))
    });
    unit.unwrap_or((0xfffd, text))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_found_in_any_case_and_any_place() {
        for name in [
            "password",
            "Passwort",
            "user_pwd",
            "CLIENT_SECRET",
            "json.auth.token",
            "x-api-key",
            "apiKey",
            "user[card][number]",
            "PHPSESSID",
            "connect.sid",
            "oauth",
            "authorization",
            "_csrf",
            "pin",
            "user[pin]",
            "json.pin",
            "iban",
        ] {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        for name in ["", "q", "author", "authors[]", "className", "spinner", "pins", "opinion", "inside", "comment"] {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_that_are_values_are_known() {
        for name in [
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
            "550e8400-e29b-41d4-a716-446655440000",
            "items[507f1f77bcf86cd799439011]",
            "json.users.ann@example.com.age",
            "json.items.array_1.name",
            "a[17]",
            "20240701",
            &"a".repeat(65),
        ] {
            assert!(is_value(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "q",
            "page2",
            "a[]",
            "a[0]",
            "a[b]",
            "json.items.array_0.name",
            "json.array_name",
            "ctl00$Main$txt",
            "utm_source",
        ] {
            assert!(!is_value(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn every_part_begins_with_one_of_the_first_bytes() {
        assert!(PARTS.iter().all(|(part, _)| FIRST.contains(&part[0])));
    }

    #[test]
    fn escapes_are_undone_and_made_again() {
        assert_eq!(*percent_decoded(b"pass%77ord+%2%zz%"), *b"password %2%zz%");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(*percent_decoded(&percent_encoded(&all)), *all);
        assert_eq!(
            *json_unescaped(br#"p\u0061ss\"\n\/\ud83d\ude00\ud83dx\u12"#),
            *"pass\"\n/😀\u{fffd}x\u{fffd}12".as_bytes()
        );
        assert_eq!(*json_unescaped(b"a\\"), *b"a");
        let text: Vec<u8> = (0..=127).collect();
        assert_eq!(*json_unescaped(&json_escaped(&text)), *text);
    }
}
