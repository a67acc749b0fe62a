//! Identifiers by their shape: numbers, UUIDs, ObjectIds of MongoDB, and ULIDs.

use std::borrow::Cow;

/// The endings of file names with which backends give an object in another format.
const FORMATS: [&[u8]; 10] = [b"json", b"xml", b"html", b"htm", b"csv", b"pdf", b"txt", b"yaml", b"yml", b"jsonld"];
/// The most digits of a number whose distance from others is judged.
const MAX_DIGITS: usize = 19;
/// The longest number with an exponent, in bytes: shorter than identifiers of hexadecimal digits.
const MAX_EXPONENTIAL: usize = 23;
/// The most digits of what it stands for.
const MAX_WHOLE: usize = 40;
/// The first of the ten digits of scripts whose digits common integer parsers read as well.
const ZEROS: [u32; 41] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
];

/// A part of what identifies an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identifier<'p> {
    /// The same for all spellings of one identifier.
    pub(crate) bytes: Cow<'p, [u8]>,
    /// Its value, where it is a number of at most 19 digits.
    pub(crate) number: Option<u64>,
}

impl<'p> Identifier<'p> {
    /// The identifier that a segment has the shape of.
    pub(crate) fn shaped(segment: &'p [u8]) -> Option<Self> {
        plain(segment).or_else(|| {
            let dot = segment.iter().rposition(|byte| *byte == b'.')?;
            let (stem, format) = (segment.get(..dot)?, segment.get(dot + 1..)?);
            FORMATS.iter().any(|known| known.eq_ignore_ascii_case(format)).then(|| plain(stem)).flatten()
        })
    }

    /// The identifier that a segment is, whatever its shape.
    pub(crate) fn any(segment: &'p [u8]) -> Self {
        Self::shaped(segment).unwrap_or(Self { bytes: Cow::Borrowed(segment), number: None })
    }
}

fn plain(segment: &[u8]) -> Option<Identifier<'_>> {
    match segment.first()? {
        b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'+' | b'-' | b'{' | b'#' | 0x80.. => {}
        _ => return None,
    }
    let named = |bytes| Identifier { bytes: Cow::Owned(bytes), number: None };
    number(segment)
        .or_else(|| uuid(segment).map(named))
        .or_else(|| object_id(segment).map(named))
        .or_else(|| ulid(segment).map(named))
}

/// Digits, with a sign, a fraction of zeros, an exponent, blanks or underscores where parsers of numbers take them; and digits of other
/// bases behind `0x`, `#`, `0o` and `0b`.
fn number(segment: &[u8]) -> Option<Identifier<'_>> {
    if let Some(number) = other_base(segment) {
        return Some(Identifier { bytes: Cow::Owned(number.to_string().into_bytes()), number: Some(number) });
    }
    if let Some(bare) = without_blanks(segment) {
        let found = number(&bare)?;
        return Some(Identifier { bytes: Cow::Owned(found.bytes.into_owned()), number: found.number });
    }
    let unsigned = unsigned(segment);
    if let Some(digits) = exponential(unsigned) {
        let found = number(&digits)?;
        return Some(Identifier { bytes: Cow::Owned(found.bytes.into_owned()), number: found.number });
    }
    let whole = match unsigned.iter().position(|byte| *byte == b'.') {
        Some(dot) => {
            let fraction = unsigned.get(dot + 1..)?;
            fraction.iter().all(|byte| *byte == b'0').then(|| unsigned.get(..dot))??
        }
        None => unsigned,
    };
    let digits: Cow<'_, [u8]> = match whole {
        [] => return None,
        _ if whole.iter().all(u8::is_ascii_digit) => Cow::Borrowed(whole),
        _ => Cow::Owned(std::str::from_utf8(whole).ok()?.chars().map(ascii_digit).collect::<Option<_>>()?),
    };
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count().min(digits.len().saturating_sub(1));
    let bytes: Cow<'_, [u8]> = match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(digits.get(zeros..)?),
        Cow::Owned(digits) => Cow::Owned(digits.get(zeros..)?.to_vec()),
    };
    let value = |value: u64, digit: &u8| value.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')));
    let number = (bytes.len() <= MAX_DIGITS).then(|| bytes.iter().fold(0, value));
    Some(Identifier { bytes, number })
}

fn unsigned(number: &[u8]) -> &[u8] {
    number.strip_prefix(b"+").or_else(|| number.strip_prefix(b"-")).unwrap_or(number)
}

/// A segment without blanks, also those of Unicode, and underscores; `None` where it has none.
fn without_blanks(segment: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |letter: char| letter.is_whitespace() || matches!(letter, '_' | '\u{feff}');
    let text = std::str::from_utf8(segment).ok()?;
    text.contains(is_blank).then(|| text.replace(is_blank, "").into_bytes())
}

/// The digits of a whole number that is written with an exponent: `42e0`, `4.2E+1`, `420e-1`.
fn exponential(number: &[u8]) -> Option<Vec<u8>> {
    if number.len() > MAX_EXPONENTIAL {
        return None;
    }
    let at = number.iter().position(|byte| matches!(byte, b'e' | b'E'))?;
    let exponent: i32 = std::str::from_utf8(number.get(at + 1..)?).ok()?.parse().ok()?;
    let mut parts = number.get(..at)?.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.iter().all(|digit| *digit == b'0') {
        return Some(b"0".to_vec());
    }
    let shift = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let length = usize::try_from(i64::try_from(digits.len()).ok()? + shift).ok()?;
    let cut = digits.get(length..).unwrap_or_default();
    if length > MAX_WHOLE || cut.iter().any(|digit| *digit != b'0') {
        return None;
    }
    digits.resize(length, b'0');
    Some(digits)
}

/// A number in hexadecimal, octal or binary digits, of at most 64 bits.
fn other_base(segment: &[u8]) -> Option<u64> {
    let prefixes: [(&[u8], u32); 7] =
        [(b"0x", 16), (b"0X", 16), (b"#", 16), (b"0o", 8), (b"0O", 8), (b"0b", 2), (b"0B", 2)];
    let of = |(prefix, base): &(&[u8], u32)| Some((unsigned(segment).strip_prefix(*prefix)?, *base));
    let (digits, base) = prefixes.iter().find_map(of)?;
    if !digits.iter().all(|digit| char::from(*digit).is_digit(base)) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok()
}

/// A digit of any common script.
fn ascii_digit(digit: char) -> Option<u8> {
    if let '0'..='9' = digit {
        return u8::try_from(digit).ok();
    }
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&u32::from(digit)))?;
    u8::try_from(u32::from(digit) - zero).ok().map(|value| b'0' + value)
}

/// 32 hexadecimal digits, with the usual hyphens and braces or without.
fn uuid(segment: &[u8]) -> Option<Vec<u8>> {
    let bare = segment.strip_prefix(b"{").and_then(|bare| bare.strip_suffix(b"}")).unwrap_or(segment);
    let hyphens = |(place, byte): (usize, &u8)| (*byte == b'-') == matches!(place, 8 | 13 | 18 | 23);
    let fits = match bare.len() {
        36 => bare.iter().enumerate().all(hyphens),
        32 => !bare.contains(&b'-'),
        _ => false,
    };
    let digits: Vec<u8> = bare.iter().filter(|byte| **byte != b'-').map(u8::to_ascii_lowercase).collect();
    (fits && digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit)).then_some(digits)
}

/// 24 hexadecimal digits.
fn object_id(segment: &[u8]) -> Option<Vec<u8>> {
    (segment.len() == 24 && segment.iter().all(u8::is_ascii_hexdigit)).then(|| segment.to_ascii_lowercase())
}

/// 26 characters of Crockford's base 32, of which the first is at most 7.
fn ulid(segment: &[u8]) -> Option<Vec<u8>> {
    let of_base = |byte: &u8| byte.is_ascii_alphanumeric() && !b"iIlLoOuU".contains(byte);
    let fits = segment.len() == 26 && matches!(segment.first(), Some(b'0'..=b'7')) && segment.iter().all(of_base);
    fits.then(|| segment.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(segment: &str) -> Option<(String, Option<u64>)> {
        Identifier::shaped(segment.as_bytes()).map(|id| (String::from_utf8_lossy(&id.bytes).into_owned(), id.number))
    }

    #[test]
    fn spellings_of_one_identifier_are_one() {
        let all: [(&[&str], &str, Option<u64>); 4] = [
            (
                &[
                    "42",
                    "042",
                    "+42",
                    "-42",
                    "42.0",
                    "42.000",
                    "42.json",
                    "42.XML",
                    "0x2A",
                    "-0X2a",
                    "#2a",
                    "0b101010",
                    "0O52",
                    "42.",
                    "42e0",
                    "4.2E+1",
                    "+420e-1",
                    "0.042e3",
                    "4200e-2.json",
                    "4 2",
                    "\u{a0}42\u{feff}",
                    "4\u{2003}2",
                    "4_2",
                    "\u{1d7dc}\u{1d7da}",
                    "\u{ff14}\u{ff12}",
                    "\u{664}\u{662}",
                ],
                "42",
                Some(42),
            ),
            (
                &[
                    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
                    "F47AC10B-58CC-4372-A567-0E02B2C3D479",
                    "f47ac10b58cc4372a5670e02b2c3d479",
                    "{f47ac10b-58cc-4372-a567-0e02b2c3d479}",
                    "f47ac10b-58cc-4372-a567-0e02b2c3d479.pdf",
                ],
                "f47ac10b58cc4372a5670e02b2c3d479",
                None,
            ),
            (&["507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"], "507f1f77bcf86cd799439011", None),
            (&["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav"], "01ARZ3NDEKTSV4RRFFQ69G5FAV", None),
        ];
        for (spellings, bytes, number) in all {
            for spelling in spellings {
                assert_eq!(shaped(spelling), Some((bytes.to_owned(), number)), "{spelling}");
            }
        }
        assert_eq!((shaped("0"), shaped("000")), (Some(("0".into(), Some(0))), Some(("0".into(), Some(0)))));
        assert_eq!(shaped("9999999999999999999").unwrap().1, Some(9_999_999_999_999_999_999));
        let object_id = "123456789012345678901e23";
        assert_eq!(shaped(object_id), Some((object_id.to_owned(), None)), "not a number with an exponent");
        assert_eq!(shaped("18446744073709551616").unwrap().1, None, "20 digits");
    }

    #[test]
    fn names_and_files_are_no_identifiers() {
        for segment in [
            "",
            "me",
            "v1",
            "orders",
            "42a",
            "4 x",
            "0x",
            "0xg",
            "#top",
            "42.5",
            ".42",
            "42..",
            "4e",
            "e4",
            "4e1.5",
            "42e-1",
            "4.25e1",
            "4e99",
            "4e-99",
            "4e9999999999",
            "12345678901234567890e23",
            "0b2",
            "0o8",
            "0b",
            "\u{a0}x",
            "42.png",
            "42.jpg",
            "4-2",
            "--42",
            "+",
            "-",
            "%34",
            "f47ac10b-58cc-4372-a567-0e02b2c3d47",
            "f47ac10b-58cc-4372-a567-0e02b2c3d47g",
            "f47ac10b--58cc4372a567-0e02b2c3d479",
            "507f1f77bcf86cd79943901",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FAI",
            "2024-05-01",
            "json",
        ] {
            assert_eq!(shaped(segment), None, "{segment}");
        }
        assert_eq!(Identifier::any(b"me").bytes.as_ref(), b"me");
        assert_eq!(Identifier::any(b"aB").bytes.as_ref(), b"aB", "backends tell cases of other identifiers apart");
        assert_eq!(Identifier::any(&[0xff, 0xfe]).bytes.as_ref(), [0xff, 0xfe]);
    }
}
