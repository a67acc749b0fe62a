//! The segments of a path, however it is spelt.
//!
//! Backends undo escapes, doubled slashes, dot segments and parameters (`;x=1`), some of them twice. A client that spells one path in many
//! ways must not read one object as many kinds of objects, so all of that is undone here.

use std::borrow::Cow;

use exchange::spelling;

/// The most segments of a path that are looked at.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// The most segments before `..` takes some of them back.
const MAX_UNRESOLVED: usize = 4096;

/// A path as two kinds of backends read it.
#[derive(Debug)]
pub(crate) struct Spelling<'p> {
    /// Escaped slashes are a part of their segment.
    strict: Vec<Cow<'p, [u8]>>,
    /// Escaped slashes and backslashes separate segments; `None` where that is the same.
    lenient: Option<Vec<Cow<'p, [u8]>>>,
}

impl<'p> Spelling<'p> {
    /// Reads a path without its query; `None` if it has more than [`MAX_SEGMENTS`] segments.
    pub(crate) fn of(path: &'p [u8]) -> Option<Self> {
        let strict = segments(path.split(|byte| *byte == b'/').map(decoded))?;
        if !path.iter().any(|byte| matches!(byte, b'%' | b'\\')) {
            return Some(Self { strict, lenient: None });
        }
        let whole = decoded(path);
        // One with too many segments is none: the other one stays.
        let lenient = segments(whole.split(|byte| matches!(byte, b'/' | b'\\')).map(|part| Cow::Owned(part.to_vec())));
        let lenient = lenient.filter(|lenient| *lenient != strict);
        Some(Self { strict, lenient })
    }

    /// The segments as most backends read them.
    pub(crate) fn strict(&self) -> &[Cow<'p, [u8]>] {
        &self.strict
    }

    /// The segments where every slash separates them, however it is escaped.
    pub(crate) fn lenient(&self) -> &[Cow<'p, [u8]>] {
        self.lenient.as_ref().unwrap_or(&self.strict)
    }

    /// Each reading once.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &[Cow<'p, [u8]>]> {
        [Some(self.strict.as_slice()), self.lenient.as_deref()].into_iter().flatten()
    }
}

/// The segments that name something, without dot segments.
fn segments<'p>(parts: impl Iterator<Item = Cow<'p, [u8]>>) -> Option<Vec<Cow<'p, [u8]>>> {
    let mut all: Vec<Cow<'p, [u8]>> = Vec::new();
    for part in parts {
        let bare = match part {
            Cow::Borrowed(part) => Cow::Borrowed(bare(part)),
            Cow::Owned(part) if bare(&part).len() == part.len() => Cow::Owned(part),
            Cow::Owned(part) => Cow::Owned(bare(&part).to_vec()),
        };
        match bare.as_ref() {
            b"" | b"." => {}
            b".." => drop(all.pop()),
            _ if all.len() >= MAX_UNRESOLVED => return None,
            _ => all.push(bare),
        }
    }
    (all.len() <= MAX_SEGMENTS).then_some(all)
}

/// A segment without its parameters and without white space and control bytes around it.
pub(crate) fn bare(segment: &[u8]) -> &[u8] {
    let mut bare = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    while let [first, rest @ ..] = bare
        && *first <= b' '
    {
        bare = rest;
    }
    while let [rest @ .., last] = bare
        && *last <= b' '
    {
        bare = rest;
    }
    bare
}

/// Text without percent escapes (`%41`, `%u0041`), and without those that are left of escapes of escapes.
pub(crate) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    spelling::decoded(text).last().map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> (String, String) {
        let spelling = Spelling::of(path.as_bytes()).unwrap();
        let text = |segments: &[Cow<'_, [u8]>]| {
            segments.iter().map(|segment| String::from_utf8_lossy(segment).into_owned()).collect::<Vec<_>>().join("|")
        };
        (text(spelling.strict()), text(spelling.lenient()))
    }

    #[test]
    fn one_path_has_one_reading_however_it_is_spelt() {
        let spellings = [
            "/orders/42",
            "/orders/42/",
            "//orders///42",
            "/./orders/x/../42",
            "/orders/%2e%2e/orders/42",
            "/orders;a=b/42;c",
            "/%6frders/%34%32",
            "/orders/%2534%32",
            "/orders/%252534%32",
            "/orders/%u0034%U0032",
            "/orders/%2042%09",
            "/orders/42%00",
            "/../orders/42",
            "orders/42",
        ];
        for path in spellings {
            assert_eq!(read(path), ("orders|42".to_owned(), "orders|42".to_owned()), "{path}");
        }
    }

    #[test]
    fn slashes_in_disguise_separate_in_one_reading_alone() {
        for path in ["/orders%2F42", "/orders%5c42", "/orders%252f42"] {
            assert_eq!(read(path).1, "orders|42", "{path}");
        }
        assert_eq!(read("/files/a%2Fb"), ("files|a/b".to_owned(), "files|a|b".to_owned()));
        assert_eq!(read("/orders\\42").1, "orders|42");
        assert_eq!(Spelling::of(b"/a%20b/c").unwrap().readings().count(), 1);
        assert_eq!(Spelling::of(b"/a%2Fb/c").unwrap().readings().count(), 2);
    }

    #[test]
    fn broken_escapes_stay_and_long_paths_end() {
        assert_eq!(read("/a%/b%4/c%zz").0, "a%|b%4|c%zz");
        assert!(Spelling::of("/a".repeat(MAX_SEGMENTS).as_bytes()).is_some());
        assert!(Spelling::of("/a".repeat(MAX_SEGMENTS + 1).as_bytes()).is_none());
        let there_and_back = ["/a".repeat(100), "/..".repeat(100), "/orders/42".to_owned()].concat();
        assert_eq!(read(&there_and_back).0, "orders|42");
        assert_eq!(
            read(&["/orders/42;", &"%2Fa".repeat(100)].concat()).0,
            "orders|42",
            "too long in the other reading"
        );
        assert!(Spelling::of(&b"%2F".repeat(20_000)).is_some(), "slashes alone");
        let long = ["/orders/", &"9".repeat(60_000)].concat();
        assert_eq!(Spelling::of(long.as_bytes()).unwrap().strict()[1].len(), 60_000);
        assert_eq!(read(""), (String::new(), String::new()));
    }
}
