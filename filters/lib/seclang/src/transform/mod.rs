//! Transformation functions (`t:`): each turns one byte string into another, in linear time and without failing.
//!
//! The semantics are those of ModSecurity v3. Where that engine lets an encoding be decoded leniently, so does this
//! one: an attacker chooses the input, and what a lenient application would decode must be seen decoded.

mod base64;
mod best_fit;
mod bytes;
mod comments;
mod css;
mod digest;
mod escape;
mod hex;
mod html;
mod js;
mod nulls;
mod parity;
mod path;
mod shell;
mod sql;
#[cfg(test)]
mod tests;
mod text;
mod unicode;
mod url;
mod whitespace;

use std::borrow::Cow;

pub(crate) use base64::sextet;
pub(crate) use url::decode_argument;

use crate::operator::ByteSet;

/// A transformation function of SecLang.
///
/// The code of each ([`Transform::code`]) is part of the compiled rule set's format: it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transform {
    /// `none`: drops the transformations collected so far; applied to a value it changes nothing.
    None = 0,
    /// `base64Decode`: strict decoding, stops at the first byte outside of the alphabet.
    Base64Decode = 1,
    /// `base64DecodeExt`: forgiving decoding, skips bytes outside of the alphabet.
    Base64DecodeExt = 2,
    /// `base64Encode`.
    Base64Encode = 3,
    /// `cmdLine`: undoes the quoting tricks of command shells.
    CmdLine = 4,
    /// `compressWhitespace`: each run of white space becomes one space.
    CompressWhitespace = 5,
    /// `cssDecode`: CSS 2 escapes.
    CssDecode = 6,
    /// `escapeSeqDecode`: ANSI C escapes.
    EscapeSeqDecode = 7,
    /// `hexDecode`: pairs of hexadecimal digits.
    HexDecode = 8,
    /// `hexEncode`.
    HexEncode = 9,
    /// `htmlEntityDecode`.
    HtmlEntityDecode = 10,
    /// `jsDecode`: JavaScript escapes.
    JsDecode = 11,
    /// `length`: the length in bytes, as decimal digits.
    Length = 12,
    /// `lowercase` (ASCII).
    Lowercase = 13,
    /// `uppercase` (ASCII).
    Uppercase = 14,
    /// `md5`: the 16 raw bytes of the digest.
    Md5 = 15,
    /// `sha1`: the 20 raw bytes of the digest.
    Sha1 = 16,
    /// `normalizePath` (also `normalisePath`): resolves `//`, `/./` and `/../`.
    NormalizePath = 17,
    /// `normalizePathWin` (also `normalisePathWin`): the same after turning `\` into `/`.
    NormalizePathWin = 18,
    /// `parityEven7bit`.
    ParityEven7bit = 19,
    /// `parityOdd7bit`.
    ParityOdd7bit = 20,
    /// `parityZero7bit`.
    ParityZero7bit = 21,
    /// `removeComments`.
    RemoveComments = 22,
    /// `removeCommentsChar`.
    RemoveCommentsChar = 23,
    /// `removeNulls`.
    RemoveNulls = 24,
    /// `removeWhitespace`.
    RemoveWhitespace = 25,
    /// `replaceComments`.
    ReplaceComments = 26,
    /// `replaceNulls`: each NUL becomes a space.
    ReplaceNulls = 27,
    /// `sqlHexDecode`: `0x...` literals of SQL.
    SqlHexDecode = 28,
    /// `trim`.
    Trim = 29,
    /// `trimLeft`.
    TrimLeft = 30,
    /// `trimRight`.
    TrimRight = 31,
    /// `urlDecode`.
    UrlDecode = 32,
    /// `urlDecodeUni`: `urlDecode` and `%uHHHH` with best-fit mapping.
    UrlDecodeUni = 33,
    /// `urlEncode`.
    UrlEncode = 34,
    /// `utf8toUnicode`: sequences of UTF-8 become `%uHHHH`, NUL bytes and broken sequences go.
    Utf8ToUnicode = 35,
}

/// Every transformation with the name rules write; a second spelling follows the first.
const NAMES: &[(&str, Transform)] = &[
    ("none", Transform::None),
    ("base64Decode", Transform::Base64Decode),
    ("base64DecodeExt", Transform::Base64DecodeExt),
    ("base64Encode", Transform::Base64Encode),
    ("cmdLine", Transform::CmdLine),
    ("compressWhitespace", Transform::CompressWhitespace),
    ("cssDecode", Transform::CssDecode),
    ("escapeSeqDecode", Transform::EscapeSeqDecode),
    ("hexDecode", Transform::HexDecode),
    ("hexEncode", Transform::HexEncode),
    ("htmlEntityDecode", Transform::HtmlEntityDecode),
    ("jsDecode", Transform::JsDecode),
    ("length", Transform::Length),
    ("lowercase", Transform::Lowercase),
    ("uppercase", Transform::Uppercase),
    ("md5", Transform::Md5),
    ("sha1", Transform::Sha1),
    ("normalizePath", Transform::NormalizePath),
    ("normalisePath", Transform::NormalizePath),
    ("normalizePathWin", Transform::NormalizePathWin),
    ("normalisePathWin", Transform::NormalizePathWin),
    ("parityEven7bit", Transform::ParityEven7bit),
    ("parityOdd7bit", Transform::ParityOdd7bit),
    ("parityZero7bit", Transform::ParityZero7bit),
    ("removeComments", Transform::RemoveComments),
    ("removeCommentsChar", Transform::RemoveCommentsChar),
    ("removeNulls", Transform::RemoveNulls),
    ("removeWhitespace", Transform::RemoveWhitespace),
    ("replaceComments", Transform::ReplaceComments),
    ("replaceNulls", Transform::ReplaceNulls),
    ("sqlHexDecode", Transform::SqlHexDecode),
    ("trim", Transform::Trim),
    ("trimLeft", Transform::TrimLeft),
    ("trimRight", Transform::TrimRight),
    ("urlDecode", Transform::UrlDecode),
    ("urlDecodeUni", Transform::UrlDecodeUni),
    ("urlEncode", Transform::UrlEncode),
    ("utf8toUnicode", Transform::Utf8ToUnicode),
];

impl Transform {
    /// The transformation a rule names, in any case of letters.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, transform)| transform)
    }

    /// The name rules write, in the usual spelling.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|&&(_, transform)| transform == self).map_or("none", |&(name, _)| name)
    }

    /// Every name a rule may write, for "did you mean".
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|&(name, _)| name)
    }

    /// The number that stands for this transformation in a compiled rule set.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The transformation of a compiled rule set's number; `None` for a number of a later version.
    pub fn from_code(code: u8) -> Option<Self> {
        NAMES.iter().find(|(_, transform)| transform.code() == code).map(|&(_, transform)| transform)
    }

    /// The bytes without which an input does not change; `None` if every input may change.
    pub(crate) fn triggers(self) -> Option<ByteSet> {
        let of = ByteSet::of_bytes;
        let mut upper = ByteSet::default();
        upper.insert_range(b'A', b'Z');
        let mut high = ByteSet::default();
        high.insert_range(0x80, 0xff);
        let space = b"\t\n\x0b\x0c\r ";
        Some(match self {
            Self::None => ByteSet::default(),
            Self::CmdLine => {
                upper.add(of(shell::CMD_LINE_TRIGGERS));
                upper
            }
            Self::Lowercase => upper,
            Self::Uppercase => {
                let mut lower = ByteSet::default();
                lower.insert_range(b'a', b'z');
                lower
            }
            Self::CompressWhitespace | Self::Trim | Self::TrimLeft | Self::TrimRight => of(space),
            Self::RemoveWhitespace => {
                let mut all = of(space);
                all.add(of(b"\xa0\xc2"));
                all
            }
            Self::CssDecode | Self::EscapeSeqDecode | Self::JsDecode => of(b"\\"),
            Self::HtmlEntityDecode => of(b"&"),
            Self::RemoveNulls | Self::ReplaceNulls => of(b"\0"),
            Self::RemoveComments => of(b"/<-#"),
            Self::RemoveCommentsChar => of(b"/*<-#"),
            Self::ReplaceComments => of(b"*"),
            Self::NormalizePath => of(b"./"),
            Self::NormalizePathWin => of(b"./\\"),
            Self::UrlDecode | Self::UrlDecodeUni => of(b"%+"),
            Self::Utf8ToUnicode => {
                high.add(of(b"\0"));
                high
            }
            _ => return None,
        })
    }

    /// The bytes without which a value keeps, but for the case of its letters, every byte, as [`Transform::triggers`]
    /// has those without which it keeps them all.
    pub(crate) fn prefilter_triggers(self) -> Option<ByteSet> {
        match self {
            Self::Lowercase | Self::Uppercase => Some(ByteSet::default()),
            Self::CmdLine => Some(ByteSet::of_bytes(shell::CMD_LINE_TRIGGERS).without(b' ')),
            Self::CompressWhitespace => Some(self.triggers()?.without(b' ')),
            _ => self.triggers(),
        }
    }

    /// Whether a single space triggers the transformation only next to white space, a separator, `/` or `(`: see
    /// [`Transform::prefilter_triggers`].
    pub(crate) fn minds_spacing(self) -> bool {
        matches!(self, Self::CmdLine | Self::CompressWhitespace)
    }

    /// Units of work for each byte of an input that changes: a quarter to a fifth of the instructions of the shipped module that the
    /// dearest input takes for each of its bytes.
    pub(crate) fn units(self) -> u64 {
        match self {
            Self::None | Self::Length | Self::ReplaceNulls => 1,
            Self::Lowercase | Self::Uppercase | Self::HexDecode | Self::ParityZero7bit | Self::SqlHexDecode => 2,
            Self::HexEncode | Self::Md5 | Self::ParityEven7bit | Self::ParityOdd7bit => 7,
            Self::RemoveNulls | Self::Trim | Self::TrimLeft | Self::TrimRight => 8,
            Self::CssDecode | Self::NormalizePath | Self::NormalizePathWin | Self::Sha1 | Self::UrlDecodeUni => 12,
            Self::Base64Encode
            | Self::CmdLine
            | Self::CompressWhitespace
            | Self::EscapeSeqDecode
            | Self::RemoveWhitespace => 15,
            Self::Base64DecodeExt | Self::JsDecode | Self::UrlDecode => 19,
            Self::Base64Decode | Self::RemoveComments | Self::RemoveCommentsChar | Self::UrlEncode => 25,
            Self::HtmlEntityDecode | Self::ReplaceComments | Self::Utf8ToUnicode => 33,
        }
    }

    /// Transforms `input`. The result is `Cow::Borrowed` of the whole input if, and only if, nothing changed.
    ///
    /// Takes time linear in the input; the output is at most three times as long (`urlEncode`), six for
    /// `utf8toUnicode`, and never longer than that plus a digest.
    pub fn apply<'a>(self, input: &'a [u8]) -> Cow<'a, [u8]> {
        let changed = match self {
            Self::None => None,
            Self::Base64Decode => base64::decode(input),
            Self::Base64DecodeExt => base64::decode_forgiving(input),
            Self::Base64Encode => base64::encode(input),
            Self::CmdLine => shell::cmd_line(input),
            Self::CompressWhitespace => whitespace::compress(input),
            Self::CssDecode => css::decode(input),
            Self::EscapeSeqDecode => escape::decode(input),
            Self::HexDecode => hex::decode(input),
            Self::HexEncode => hex::encode(input),
            Self::HtmlEntityDecode => html::decode(input),
            Self::JsDecode => js::decode(input),
            Self::Length => Some(input.len().to_string().into_bytes()),
            Self::Lowercase => text::lowercase(input),
            Self::Uppercase => text::uppercase(input),
            Self::Md5 => Some(digest::md5(input)),
            Self::Sha1 => Some(digest::sha1(input)),
            Self::NormalizePath => path::normalize(input),
            Self::NormalizePathWin => path::normalize_windows(input),
            Self::ParityEven7bit => parity::even(input),
            Self::ParityOdd7bit => parity::odd(input),
            Self::ParityZero7bit => parity::zero(input),
            Self::RemoveComments => comments::remove(input),
            Self::RemoveCommentsChar => comments::remove_markers(input),
            Self::RemoveNulls => nulls::remove(input),
            Self::RemoveWhitespace => whitespace::remove(input),
            Self::ReplaceComments => comments::replace(input),
            Self::ReplaceNulls => nulls::replace(input),
            Self::SqlHexDecode => sql::hex_decode(input),
            Self::Trim => whitespace::trim(input, true, true),
            Self::TrimLeft => whitespace::trim(input, true, false),
            Self::TrimRight => whitespace::trim(input, false, true),
            Self::UrlDecode => url::decode(input),
            Self::UrlDecodeUni => url::decode_unicode(input),
            Self::UrlEncode => url::encode(input),
            Self::Utf8ToUnicode => unicode::escape_utf8(input),
        };
        match changed {
            // An escape may decode to itself: a caller that skips unchanged values relies on this comparison.
            Some(output) if !equal(&output, input) => Cow::Owned(output),
            _ => Cow::Borrowed(input),
        }
    }
}

/// Whether two texts are the same. Many bytes at once: `memcmp` of a VM compares one after the other.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let ((blocks, rest), (other_blocks, other_rest)) = (one.as_chunks::<16>(), other.as_chunks::<16>());
    let same = |(one, other): (&[u8; 16], &[u8; 16])| u128::from_ne_bytes(*one) == u128::from_ne_bytes(*other);
    one.len() == other.len() && blocks.iter().zip(other_blocks).all(same) && rest == other_rest
}
