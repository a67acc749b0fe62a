//! How a backend may read the path of a request.
//!
//! Gateways and backends do not agree on a path's escapes, parameters (`;x=1`), doubled slashes and dot segments. What
//! decides by a path whether a request is inspected must hold for every reading, or not rely on the path at all.

use crate::spelling::escaped;

/// The readings of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathReadings<'a> {
    /// Every backend reads it as it stands.
    Plain(&'a [u8]),
    /// It has escapes or parameters, and names one resource all the same.
    Several(Box<SeveralReadings<'a>>),
    /// Which resource it names depends on the backend: it has an escaped slash, a backslash, an empty segment, a segment
    /// that ends in a dot or a space, a fragment, a control byte, an escape of an escape, an overlong character, or does
    /// not begin with a slash.
    Ambiguous,
}

/// The readings of a path with escapes or parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeveralReadings<'a> {
    /// As it was sent.
    sent: &'a [u8],
    /// With those escapes undone that no URI needs (RFC 3986, section 6.2.2.2, and `sub-delims`, `:`, `@`).
    normalized: Reading,
    /// With every escape undone.
    decoded: Reading,
}

/// A path, and the same without the parameters of its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    whole: Vec<u8>,
    bare: Vec<u8>,
}

impl<'a> PathReadings<'a> {
    /// Reads a path without its query. Linear in its length.
    #[must_use]
    pub fn of(path: &'a [u8]) -> Self {
        if !path.contains(&b'%') {
            return match () {
                () if is_ambiguous(path) => Self::Ambiguous,
                () if path.contains(&b';') => Self::several(path, path.to_vec(), path.to_vec()),
                () => Self::Plain(path),
            };
        }
        let Some(decoded) = decode(path, |_| true) else { return Self::Ambiguous };
        // An escape that is left was itself escaped: some backends decode twice.
        if is_ambiguous(&decoded) || has_escape(&decoded) {
            return Self::Ambiguous;
        }
        let normalized = decode(path, stands_for_itself).unwrap_or_else(|| path.to_vec());
        Self::several(path, normalized, decoded)
    }

    fn several(sent: &'a [u8], normalized: Vec<u8>, decoded: Vec<u8>) -> Self {
        Self::Several(Box::new(SeveralReadings {
            sent,
            normalized: Reading::of(normalized),
            decoded: Reading::of(decoded),
        }))
    }

    /// Whether it may name anything at all.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Ambiguous)
    }

    /// Whether some backend may read it as a path that `matches`.
    pub(crate) fn may_match(&self, matches: impl Fn(&[u8]) -> bool) -> bool {
        match self {
            Self::Plain(path) => matches(path),
            Self::Several(readings) => {
                let all = [&readings.normalized, &readings.decoded];
                matches(readings.sent) || all.iter().any(|reading| matches(&reading.whole) || matches(&reading.bare))
            }
            Self::Ambiguous => true,
        }
    }

    /// Whether every backend reads it as a path that `matches`. The pattern may be written with escapes or without.
    pub(crate) fn surely_matches(&self, matches: impl Fn(&[u8]) -> bool) -> bool {
        match self {
            Self::Plain(path) => matches(path),
            Self::Several(readings) => {
                let all = [&readings.normalized, &readings.decoded];
                all.iter().any(|reading| matches(&reading.whole) && matches(&reading.bare))
            }
            Self::Ambiguous => false,
        }
    }
}

impl Reading {
    fn of(whole: Vec<u8>) -> Self {
        let mut bare = Vec::with_capacity(whole.len());
        for (index, segment) in whole.split(|byte| *byte == b'/').enumerate() {
            if index > 0 {
                bare.push(b'/');
            }
            bare.extend_from_slice(without_parameters(segment));
        }
        Self { whole, bare }
    }
}

/// Undoes the escapes of bytes that are wanted; `None` where an escaped byte gives the path another structure.
fn decode(path: &[u8], wanted: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        // `%u2215`, which some servers of old understand.
        if matches!(rest.first(), Some(b'u' | b'U')) {
            return None;
        }
        let Some((value, behind)) = escaped(rest) else {
            decoded.push(*byte);
            continue;
        };
        if value < 0x20 || b"/\\?#;\x7f".contains(&value) {
            return None;
        }
        if wanted(value) {
            decoded.push(value);
            rest = behind;
        } else {
            decoded.push(*byte);
        }
    }
    Some(decoded)
}

fn has_escape(decoded: &[u8]) -> bool {
    decoded
        .split(|byte| *byte == b'%')
        .skip(1)
        .any(|behind| matches!(behind.first(), Some(b'u' | b'U')) || escaped(behind).is_some())
}

/// Bytes that a segment may have as they are.
fn stands_for_itself(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte)
}

/// Whether backends disagree on what a path names; its escapes are undone already.
fn is_ambiguous(path: &[u8]) -> bool {
    let odd = |byte: &u8| *byte < 0x20 || b"\\#\x7f".contains(byte);
    if path.first() != Some(&b'/') || path.iter().any(odd) || has_lookalike(path) {
        return true;
    }
    let mut segments = path.split(|byte| *byte == b'/').skip(1).map(without_parameters).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment.last() {
            // `/.`, `/..`, and names that Windows cuts.
            Some(b'.' | b' ') => return true,
            // `//` and `/;x/`; a slash at the end is usual.
            None if !last => return true,
            _ => {}
        }
    }
    false
}

/// Whether lenient backends may see dots, slashes or backslashes where none are: bytes that are no UTF-8 (overlong forms
/// among them), characters that normalization (Unicode NFKC) or a best fit of Windows maps to them, and characters of
/// which only the lowest byte is kept, where that makes a dot segment.
pub(crate) fn has_lookalike(path: &[u8]) -> bool {
    if path.is_ascii() {
        return false;
    }
    let Ok(path) = std::str::from_utf8(path) else { return true };
    path.chars().any(is_lookalike) || has_narrow_dots(path)
}

/// Whether normalization or a best fit makes a dot, a slash or a backslash of a character, alone or beside others.
fn is_lookalike(character: char) -> bool {
    matches!(
        character,
        // Dots: leaders, presentation forms, numbers with a full stop, small and wide forms.
        '\u{2024}'..='\u{2026}'
            | '\u{fe19}'
            | '\u{2488}'..='\u{249b}'
            | '\u{1f100}'
            | '\u{fe52}'
            | '\u{ff0e}'
            | '\u{ff61}'
            | '\u{3002}'
            // Slashes: fractions, divisions, `a/c` and the like, wide forms.
            | '\u{bc}'..='\u{be}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{29f8}'
            | '\u{2571}'
            | '\u{2100}' | '\u{2101}' | '\u{2105}' | '\u{2106}'
            | '\u{2150}'..='\u{215f}'
            | '\u{2189}'
            | '\u{ff0f}'
            // Backslashes: set minus, reverse solidi, the yen and won signs of code pages 932 and 949.
            | '\u{a5}'
            | '\u{20a9}'
            | '\u{2216}'
            | '\u{29f5}'
            | '\u{29f9}'
            | '\u{2572}'
            | '\u{fe68}'
            | '\u{ff3c}'
            | '\u{ffe5}' | '\u{ffe6}'
    )
}

/// Whether the lowest bytes of characters make a dot segment, as where UTF-16 is cut to bytes.
fn has_narrow_dots(path: &str) -> bool {
    let narrow = path.chars().map(|character| {
        let [lowest, ..] = u32::from(character).to_le_bytes();
        lowest
    });
    let mut dots = Some(0);
    for byte in narrow.chain([b'/']) {
        match (byte, dots) {
            (b'/' | b'\\', Some(1 | 2)) => return true,
            (b'/' | b'\\', _) => dots = Some(0),
            (b'.', Some(count)) => dots = Some(count + 1),
            _ => dots = None,
        }
    }
    false
}

fn without_parameters(segment: &[u8]) -> &[u8] {
    segment.split(|byte| *byte == b';').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(path: &str) -> Vec<String> {
        match PathReadings::of(path.as_bytes()) {
            PathReadings::Plain(path) => vec![String::from_utf8_lossy(path).into_owned()],
            PathReadings::Several(all) => [&all.normalized, &all.decoded]
                .into_iter()
                .flat_map(|reading| [&reading.whole, &reading.bare])
                .map(|path| String::from_utf8_lossy(path).into_owned())
                .collect(),
            PathReadings::Ambiguous => Vec::new(),
        }
    }

    #[test]
    fn what_is_usual_is_plain() {
        for path in ["/", "/a/b.css", "/a/", "/.well-known/x", "/~u/$,()*'!@:+=&", "/a..b/c", "/\u{e9}"] {
            assert_eq!(reads(path), [path]);
        }
    }

    #[test]
    fn escapes_and_parameters_have_several_readings() {
        assert_eq!(reads("/a%20b"), ["/a%20b", "/a%20b", "/a b", "/a b"]);
        assert_eq!(reads("/%61dmin/%40x"), ["/admin/@x"; 4]);
        assert_eq!(reads("/a;v=1/b;c"), ["/a;v=1/b;c", "/a/b", "/a;v=1/b;c", "/a/b"]);
        assert_eq!(reads("/100%25"), ["/100%25", "/100%25", "/100%", "/100%"]);
        assert_eq!(reads("/\u{42f}/\u{42f}\u{42e}\u{415}/\u{15c}.css"), ["/\u{42f}/\u{42f}\u{42e}\u{415}/\u{15c}.css"]);
        assert_eq!(reads("/caf%C3%A9/x%"), ["/caf%C3%A9/x%", "/caf%C3%A9/x%", "/caf\u{e9}/x%", "/caf\u{e9}/x%"]);
    }

    #[test]
    fn what_backends_disagree_on_is_ambiguous() {
        let paths = [
            "",
            "*",
            "x",
            "http://h/public/",
            "//a",
            "/a//b",
            "/./a",
            "/a/.",
            "/a/../b",
            "/a/..",
            "/a/%2e%2e/b",
            "/a/.%2E",
            "/a/..%2fb",
            "/a%2Fb",
            "/a%5cb",
            "/a\\b",
            "/a/..%252fb",
            "/a/%252e%252e/b",
            "/a%25252fb",
            "/%2561",
            "/a%00",
            "/a%0d%0a",
            "/a\u{1}b",
            "/a%7f",
            "/a#b",
            "/a%23b",
            "/a%3fb",
            "/a%3Bb",
            "/a/..;/b",
            "/a/..;x=1/b",
            "/;x/b",
            "/a/;/b",
            "/admin./x",
            "/admin%20/x",
            "/a/.../b",
            "/a%2e/b",
            "/..%c0%afb",
            "/%c0%ae%c0%ae/b",
            "/%e0%80%af",
            "/%f0%80%80%af",
            "/a%u2215b",
            "/a%25u002fb",
            "/a%ef%bc%8fb",
            "/a%e2%88%95b",
            "/a%ef%bc%8e%ef%bc%8e/b",
            "/a/%e2%80%a4%e2%80%a4/b",
            "/a/%e2%80%a5/b",
            "/a/%c4%ae%c4%ae/b",
            "/a/..%c4%afb",
            "/a/..%c5%9cb",
            "/a/\u{42e}\u{42e}/b",
            "/a%e2%a7%b5b",
            "/a%c2%a5b",
            "/a%f8%80%80%80%aeb",
            "/a%fc%80%80%80%80%aeb",
            "/caf\u{e9}%e9",
        ];
        for path in paths {
            assert_eq!(PathReadings::of(path.as_bytes()), PathReadings::Ambiguous, "{path:?}");
        }
    }
}
