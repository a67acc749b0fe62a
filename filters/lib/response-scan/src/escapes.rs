//! Characters that a text writes as escapes: of JSON and JavaScript (`\u003d`, `\n`), of HTML (`&#61;`, `&quot;`), of URLs (`%3D`).

/// The names of HTML that are read, as they follow an ampersand.
const NAMES: [(&[u8], u32); 6] =
    [(b"nbsp;", 0xa0), (b"quot;", 0x22), (b"apos;", 0x27), (b"amp;", 0x26), (b"lt;", 0x3c), (b"gt;", 0x3e)];
/// The most backslashes in front of a quotation mark: of a string in a string in a string.
const BACKSLASHES: usize = 8;
/// The most bytes that a quotation mark takes.
const LONGEST_QUOTE: usize = 24;

/// The character of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Escape {
    /// Its bytes in the text.
    pub(crate) length: usize,
    /// The code point.
    pub(crate) code: u32,
}

impl Escape {
    /// The character, where it is one of ASCII.
    pub(crate) fn ascii(self) -> Option<u8> {
        u8::try_from(self.code).ok().filter(u8::is_ascii)
    }
}

/// The byte at a place; NUL beyond the end.
pub(crate) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The byte in front of a place; NUL at the beginning.
pub(crate) fn byte_before(text: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |before| byte(text, before))
}

/// Whether a byte continues a word: what stands beside one is a part of a longer value.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether what begins at a place is the rest of a longer word. Of an escape (`\n`, `\u003d`, `%3D`) its character counts, not
/// its letters and digits.
pub(crate) fn is_inside_word(text: &[u8], at: usize) -> bool {
    is_word(byte_before(text, at)) && escape_before(text, at).is_none_or(|escape| escape.ascii().is_some_and(is_word))
}

/// The escape that begins at a place.
pub(crate) fn escape_at(text: &[u8], at: usize) -> Option<Escape> {
    let of = |length, code| Some(Escape { length, code });
    match text.get(at..)? {
        [b'\\', b'u', digits @ ..] => of(6, hex(digits, 4)?),
        [b'\\', b'x', digits @ ..] => of(4, hex(digits, 2)?),
        [b'\\', letter, ..] => of(2, u32::from(control(*letter)?)),
        [b'%', digits @ ..] => of(3, hex(digits, 2)?),
        [b'&', rest @ ..] => reference(rest).map(|escape| Escape { length: escape.length + 1, ..escape }),
        _ => None,
    }
}

/// The escape that ends in front of a place, of those that end with a letter or a digit. A backslash that is escaped itself counts
/// as well: a string of JSON may have JSON in it.
pub(crate) fn escape_before(text: &[u8], at: usize) -> Option<Escape> {
    [6, 4, 3, 2].into_iter().find_map(|length| {
        let escape = escape_at(text, at.checked_sub(length)?)?;
        (escape.length == length).then_some(escape)
    })
}

/// How many bytes from a place on are the rest of an escape that begins before it.
pub(crate) fn rest_of_escape(text: &[u8], at: usize) -> usize {
    let rest = |back: usize| {
        let start = at.checked_sub(back)?;
        let escape = escape_at(text, start).filter(|_| byte(text, start) != b'&')?;
        escape.length.checked_sub(back).filter(|rest| *rest > 0)
    };
    (1..=5).find_map(rest).unwrap_or(0)
}

/// The length of the quotation mark at a place, single or double, in any spelling: as it is, behind backslashes, as a code of JSON,
/// as a reference of HTML, or one of these within another.
pub(crate) fn quote_at(text: &[u8], at: usize) -> Option<usize> {
    quotation_at(text, at).map(|quote| quote.length)
}

/// The quotation mark at a place, as [`quote_at`] knows it: the length of its spelling, and which one it is.
pub(crate) fn quotation_at(text: &[u8], at: usize) -> Option<Escape> {
    let of = |length, code| Some(Escape { length, code });
    let rest = text.get(at..)?;
    let slashes = backslashes(rest, 0);
    let start = match rest.get(slashes..)? {
        [mark @ (b'\'' | b'"'), ..] => return of(slashes + 1, u32::from(*mark)),
        [b'u' | b'x', ..] => slashes.checked_sub(1)?,
        [b'&', ..] => slashes,
        [0xe2, 0x80, mark @ (0x98 | 0x99 | 0x9c | 0x9d), ..] if slashes == 0 => {
            return of(3, 0x2000 | u32::from(*mark & 0x3f));
        }
        _ => return None,
    };
    let mut escape = escape_at(rest, start)?;
    let mut end = start + escape.length;
    // An ampersand that is escaped itself: `&amp;#39;`, `\u0026#39;`.
    for _ in 0..2 {
        if escape.code == u32::from(b'&') {
            escape = reference(rest.get(end..)?)?;
            end += escape.length;
        }
    }
    matches!(escape.code, 0x22 | 0x27 | 0x2018 | 0x2019 | 0x201c | 0x201d).then_some(Escape { length: end, ..escape })
}

/// Whether a quotation mark ends in front of a place.
pub(crate) fn is_behind_quote(text: &[u8], at: usize) -> bool {
    let ends = |length: &usize| at.checked_sub(*length).is_some_and(|start| quote_at(text, start) == Some(*length));
    (1..=LONGEST_QUOTE).any(|length| ends(&length))
}

/// The end of a pattern that a text has at a place. A quotation mark of the pattern is any, a backslash is one or more, other
/// characters may be escaped. `fold`: in any case of its letters.
pub(crate) fn spelled(text: &[u8], at: usize, pattern: &[u8], fold: bool) -> Option<usize> {
    pattern.iter().try_fold(at, |at, wanted| {
        let this = *text.get(at)?;
        let length = match wanted {
            b'\'' | b'"' => quote_at(text, at)?,
            b'\\' => {
                let slashes = backslashes(text, at);
                if slashes == 0 { escape_at(text, at).filter(|escape| escape.code == 0x5c)?.length } else { slashes }
            }
            wanted if this == *wanted || fold && this.eq_ignore_ascii_case(wanted) => 1,
            // In a string within a string its backslash has others in front.
            wanted => {
                let others = backslashes(text, at).saturating_sub(1);
                others + escape_at(text, at + others).filter(|escape| escape.code == u32::from(*wanted))?.length
            }
        };
        Some(at + length)
    })
}

fn backslashes(text: &[u8], at: usize) -> usize {
    text.get(at..).unwrap_or_default().iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count()
}

fn hex(digits: &[u8], count: usize) -> Option<u32> {
    let digits = digits.get(..count)?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

fn control(letter: u8) -> Option<u8> {
    match letter {
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'r' => Some(b'\r'),
        b'b' => Some(8),
        b'f' => Some(12),
        b'"' | b'\'' | b'/' | b'\\' | b'`' => Some(letter),
        _ => None,
    }
}

/// A reference of HTML, behind its ampersand.
fn reference(rest: &[u8]) -> Option<Escape> {
    let named =
        |(name, code): &(&[u8], u32)| rest.starts_with(name).then_some(Escape { length: name.len(), code: *code });
    let (start, radix) = match rest {
        [b'#', b'x' | b'X', ..] => (2, 16),
        [b'#', ..] => (1, 10),
        _ => return NAMES.iter().find_map(named),
    };
    let digits = rest.get(start..)?;
    let count = digits.iter().take(7).take_while(|digit| char::from(**digit).is_digit(radix)).count();
    let value = digits.get(..count)?.iter();
    let code = value.fold(0, |code, digit| code * radix + char::from(*digit).to_digit(radix).unwrap_or(0));
    (count > 0 && byte(digits, count) == b';').then_some(Escape { length: start + count + 1, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_from_both_ends() {
        for (text, code) in [
            ("\\u003d", 0x3d),
            ("\\u00A0", 0xa0),
            ("\\x3D", 0x3d),
            ("\\n", 10),
            ("\\/", 0x2f),
            ("%3d", 0x3d),
            ("&#61;", 0x3d),
            ("&#x3D;", 0x3d),
            ("&nbsp;", 0xa0),
        ] {
            let escape = Escape { length: text.len(), code };
            assert_eq!(escape_at(format!("a{text}b").as_bytes(), 1), Some(escape), "{text}");
            if is_word(byte_before(text.as_bytes(), text.len())) {
                assert_eq!(escape_before(format!("a{text}b").as_bytes(), 1 + text.len()), Some(escape), "{text}");
                assert!(!is_inside_word(format!("a{text}b").as_bytes(), 1 + text.len()), "{text}");
            }
        }
        for text in ["\\u003", "\\u003g", "\\xg0", "\\q", "%3", "%g0", "&#;", "&#61", "&#x;", "&amp", "&x;", "n", ""] {
            assert_eq!(escape_at(text.as_bytes(), 0), None, "{text}");
        }
        // A letter is a letter in any spelling.
        for text in ["ab", "\\u0041b", "%41b", "003db", "u003db", "nb"] {
            assert!(is_inside_word(text.as_bytes(), text.len() - 1), "{text}");
        }
        let rests: Vec<usize> = (0..8).map(|at| rest_of_escape(b"\\u00224", at)).collect();
        assert_eq!(rests, [0, 5, 4, 3, 2, 1, 0, 0]);
    }

    #[test]
    fn quotation_marks_are_known_in_any_spelling() {
        for quote in [
            "'",
            "\"",
            "\\\"",
            "\\'",
            "\\\\\\\"",
            "\\u0027",
            "\\u0022",
            "\\\\u0022",
            "\\x27",
            "&#39;",
            "&#039;",
            "&#x27;",
            "&#34;",
            "&quot;",
            "&apos;",
            "&amp;#039;",
            "\\u0026#39;",
            "\\&quot;",
            "\\u0026quot;",
            "&#8217;",
            "\u{2019}",
        ] {
            assert_eq!(quote_at(format!("{quote}x").as_bytes(), 0), Some(quote.len()), "{quote}");
            assert!(is_behind_quote(format!("x{quote}").as_bytes(), 1 + quote.len()), "{quote}");
            let text = format!("relation {quote}users{quote} does");
            assert_eq!(spelled(text.as_bytes(), 0, b"Relation 'users' d", true), Some(text.len() - 3), "{quote}");
        }
        for other in ["x", "\\", "\\n", "u0022", "&#61;", "&amp;", "%27", ""] {
            assert_eq!(quote_at(other.as_bytes(), 0), None, "{other}");
        }
        assert_eq!(spelled(b"a\\\\b", 0, b"a\\b", false), Some(4));
        assert_eq!(spelled(b"\\u003cb\\u003e", 0, b"<b>", false), Some(13));
        assert_eq!(spelled(b"\\\\u003cb\\\\u003e", 0, b"<b>", false), Some(15));
        assert_eq!(spelled(b"<\\/b>", 0, b"</b>", false), Some(5));
        assert_eq!((spelled(b"ab", 0, b"abc", false), spelled(b"AB", 0, b"ab", false)), (None, None));
    }
}
