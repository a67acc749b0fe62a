//! The charset of a body, and its text in UTF-8.

use std::borrow::Cow;

use super::media::candidates;

/// Charsets whose ASCII is ASCII, and in which no other character has a byte of ASCII in it. Their families end in a number.
const USUAL: [&[u8]; 4] = [b"utf-8", b"utf8", b"us-ascii", b"ascii"];
const FAMILIES: [&[u8]; 9] =
    [b"iso-8859-", b"iso8859-", b"iso8859_", b"iso_8859-", b"latin", b"latin-", b"windows-125", b"cp125", b"cp-125"];

/// Further charsets of that kind, and such in which other characters have letters, digits or brackets of ASCII behind their first byte, but no
/// quotation mark and none of `&=+%`: where a text is part of a form, and whether it has a word of ASCII, is told as in ASCII.
const NEARLY: [&[u8]; 22] = [
    b"big5",
    b"big5-hkscs",
    b"cp932",
    b"cp936",
    b"cp949",
    b"cp950",
    b"gb2312",
    b"gb18030",
    b"gbk",
    b"iso-8859-8-i",
    b"ks_c_5601-1987",
    b"macintosh",
    b"ms932",
    b"shift-jis",
    b"shift_jis",
    b"sjis",
    b"tis-620",
    b"uhc",
    b"windows-31j",
    b"windows-874",
    b"x-gbk",
    b"x-sjis",
];
const NEARLY_FAMILIES: [&[u8]; 4] = [b"euc-", b"koi8-", b"x-euc-", b"x-mac-"];

/// A charset as far as it matters where the structure of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// None is named, or one whose ASCII is ASCII.
    Usual,
    /// UTF-16 or UTF-32.
    Wide(Width, Option<Order>),
    /// Another one, or several: bytes may stand for other characters.
    Foreign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Four,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Charset {
    /// The charset that a content type names.
    pub(super) fn of(content_type: &[u8]) -> Self {
        let named = candidates(content_type, b"charset", true).values;
        let mut all = named.iter().map(|name| Self::named(name));
        let first = all.next().unwrap_or(Self::Usual);
        if all.all(|other| other == first) { first } else { Self::Foreign }
    }

    /// Whether ASCII may be hidden in a text of the charset that a content type or a field names: of what is not known to keep it, it may.
    pub(super) fn hides_ascii(content_type: &[u8]) -> bool {
        candidates(content_type, b"charset", true).values.iter().any(|name| Self::is_hiding(name))
    }

    /// The same of the name of a charset.
    pub(super) fn is_hiding(name: &[u8]) -> bool {
        let keeps =
            |name: &[u8]| NEARLY.contains(&name) || NEARLY_FAMILIES.iter().any(|family| name.starts_with(family));
        Self::named(name) == Self::Foreign && !keeps(&plain(name))
    }

    pub(super) fn named(name: &[u8]) -> Self {
        match plain(name).as_slice() {
            b"utf-16" | b"utf16" => Self::Wide(Width::Two, None),
            b"utf-16le" | b"utf16le" => Self::Wide(Width::Two, Some(Order::Little)),
            b"utf-16be" | b"utf16be" => Self::Wide(Width::Two, Some(Order::Big)),
            b"utf-32" | b"utf32" => Self::Wide(Width::Four, None),
            b"utf-32le" | b"utf32le" => Self::Wide(Width::Four, Some(Order::Little)),
            b"utf-32be" | b"utf32be" => Self::Wide(Width::Four, Some(Order::Big)),
            name if name.is_empty() || USUAL.contains(&name) || is_of_a_family(name) => Self::Usual,
            _ => Self::Foreign,
        }
    }

    /// Whether a body in it may be of this form.
    fn agrees(self, (width, order): (Width, Order)) -> bool {
        matches!(self, Self::Wide(own, named) if own == width && named.is_none_or(|named| named == order))
    }
}

/// A name without quotation marks and blanks, in lower case.
fn plain(name: &[u8]) -> Vec<u8> {
    let quotes = |byte: &u8| matches!(byte, b'"' | b'\'') || byte.is_ascii_whitespace();
    name.iter().filter(|byte| !quotes(byte)).map(u8::to_ascii_lowercase).collect()
}

fn is_of_a_family(name: &[u8]) -> bool {
    FAMILIES.iter().any(|family| {
        let number = name.strip_prefix(*family).unwrap_or_default();
        (1..=2).contains(&number.len()) && number.iter().all(u8::is_ascii_digit)
    })
}

/// The text of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text<'b> {
    /// In UTF-8; borrowed where that is how it was sent.
    pub(super) utf8: Cow<'b, [u8]>,
    /// Backends may read another text.
    pub(super) is_doubtful: bool,
}

/// The text of a body by its byte order mark, or by the NULs that UTF-16 and UTF-32, which parsers recognise, have beside characters of
/// ASCII.
pub(super) fn text(body: &[u8], charset: Charset) -> Text<'_> {
    let is_wide = matches!(charset, Charset::Wide(..));
    if let Some(behind) = body.strip_prefix(b"\xef\xbb\xbf") {
        return Text { utf8: Cow::Owned(behind.to_vec()), is_doubtful: is_wide };
    }
    if let Some((form, behind)) = marked(body) {
        return Text { utf8: Cow::Owned(decoded(behind, form)), is_doubtful: is_wide && !charset.agrees(form) };
    }
    if let Some(form) = by_zeros(body) {
        return Text { utf8: Cow::Owned(decoded(body, form)), is_doubtful: !charset.agrees(form) };
    }
    if body.contains(&0) {
        let narrow = body.iter().copied().filter(|byte| *byte != 0).collect();
        return Text { utf8: Cow::Owned(narrow), is_doubtful: true };
    }
    Text { utf8: Cow::Borrowed(body), is_doubtful: is_wide && !body.is_empty() }
}

fn marked(body: &[u8]) -> Option<((Width, Order), &[u8])> {
    match body {
        [0xff, 0xfe, 0, 0, behind @ ..] => Some(((Width::Four, Order::Little), behind)),
        [0, 0, 0xfe, 0xff, behind @ ..] => Some(((Width::Four, Order::Big), behind)),
        [0xff, 0xfe, behind @ ..] => Some(((Width::Two, Order::Little), behind)),
        [0xfe, 0xff, behind @ ..] => Some(((Width::Two, Order::Big), behind)),
        _ => None,
    }
}

/// By the first characters (RFC 4627, section 3): a text begins with one that is shown, or with white space.
fn by_zeros(body: &[u8]) -> Option<(Width, Order)> {
    let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match *body {
        [first, 0, 0, 0, ..] if is_text(first) => Some((Width::Four, Order::Little)),
        [0, 0, 0, first, ..] if is_text(first) => Some((Width::Four, Order::Big)),
        [first, 0, ..] if is_text(first) => Some((Width::Two, Order::Little)),
        [0, first, ..] if is_text(first) => Some((Width::Two, Order::Big)),
        _ => None,
    }
}

fn decoded(bytes: &[u8], (width, order): (Width, Order)) -> Vec<u8> {
    let text: String = match width {
        Width::Two => {
            let units = bytes.as_chunks::<2>().0.iter().map(|unit| match order {
                Order::Little => u16::from_le_bytes(*unit),
                Order::Big => u16::from_be_bytes(*unit),
            });
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Width::Four => {
            let units = bytes.as_chunks::<4>().0.iter().map(|unit| match order {
                Order::Little => u32::from_le_bytes(*unit),
                Order::Big => u32::from_be_bytes(*unit),
            });
            units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
    };
    text.into_bytes()
}
