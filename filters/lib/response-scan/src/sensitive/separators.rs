//! What stands between the groups of a number: a blank or a hyphen, in any spelling.

use super::byte;
use crate::escapes::escape_at;

/// The most bytes of a separator.
const LONGEST: usize = 9;

/// A separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator {
    pub(super) length: usize,
    /// A space or a hyphen.
    pub(super) kind: u8,
}

/// The separator at a place: a space, a hyphen, and those that break no line (U+00A0, U+2011, narrow ones), as bytes of UTF-8 or as
/// escapes (`&nbsp;`, `\u00a0`, `%20`).
pub(super) fn separator_at(text: &[u8], at: usize) -> Option<Separator> {
    let (length, code) = match text.get(at..)? {
        [this @ (b' ' | b'-'), ..] => return Some(Separator { length: 1, kind: *this }),
        [0xc2, 0xa0, ..] => (2, 0xa0),
        [0xe2, 0x80, last, ..] => (3, 0x2000 | u32::from(*last & 0x3f)),
        // A byte of UTF-8 in a URL.
        [b'%', b'C' | b'c', b'2', rest @ ..] => {
            (3 + escape_at(rest, 0).filter(|escape| escape.code == 0xa0)?.length, 0xa0)
        }
        _ => escape_at(text, at).map(|escape| (escape.length, escape.code))?,
    };
    let kind = match code {
        0x20 | 0xa0 | 0x2007 | 0x2009 | 0x202f => b' ',
        0x2d | 0x2010 | 0x2011 => b'-',
        _ => return None,
    };
    (length <= LONGEST).then_some(Separator { length, kind })
}

/// The separator that ends in front of a place, the longest of them: `%A0` is the end of `%C2%A0`.
pub(super) fn separator_before(text: &[u8], at: usize) -> Option<Separator> {
    (1..=LONGEST).rev().find_map(|length| {
        let start = at.checked_sub(length)?;
        separator_at(text, start).filter(|separator| separator.length == length)
    })
}

/// Whether a byte may begin a separator of several bytes.
pub(super) fn begins_long(text: &[u8], at: usize) -> bool {
    byte(text, at) != b'-' && separator_at(text, at).is_some_and(|separator| separator.length > 1)
}
