//! Names in requests (keys of JSON, fields of forms), compared as the most lenient of backends compare them.
//!
//! Go's `encoding/json` finds names in any case, where U+017F is an `s` and U+212A a `k`, and takes the last one. ASP.NET Core binds names
//! in any case, Java's `equalsIgnoreCase` takes U+0131 for an `i`, webonyx/graphql-php puts names into lower case. A guard that compares
//! bytes alone does not see the name that such a backend executes.
//!
//! Two names are equal here if each of their characters is, in upper case and then in lower case, by Unicode's simple mappings. So a
//! character stays one character. Bytes that are no UTF-8 are equal to themselves alone.

use std::cmp::Ordering;

/// The headers by which Symfony, Laravel, Rack, Spring, Slim and others take a request for one of another method, in lower case.
pub const METHOD_HEADERS: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// Whether a request is a preflight of CORS by its head: a question of a browser whether a page of another origin may ask. `has` says whether
/// it has a header of a name. With one of [`METHOD_HEADERS`], which no browser sends with it, it is none.
#[must_use]
pub fn is_preflight(method: &[u8], has: impl Fn(&str) -> bool) -> bool {
    method == b"OPTIONS"
        && has("origin")
        && has("access-control-request-method")
        && !METHOD_HEADERS.iter().any(|name| has(name))
}

/// Above every character: what a byte counts as that is no UTF-8.
const NO_CHARACTER: u32 = 0x0011_0000;

/// A name in one spelling: the same for all names that are [`equal`]. Allocates once.
#[must_use]
pub fn folded(name: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((letter, behind)) = first(rest) {
        match char::from_u32(letter) {
            Some(letter) => folded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            None => folded.extend(rest.first()),
        }
        rest = behind;
    }
    folded
}

/// Whether some backend takes one name for the other. Allocates nothing.
#[must_use]
pub fn equal(one: &[u8], two: &[u8]) -> bool {
    compare(one, two).is_eq()
}

/// An order in which names that are [`equal`] are in one place. Allocates nothing.
#[must_use]
pub fn compare(one: &[u8], two: &[u8]) -> Ordering {
    letters(one).cmp(letters(two))
}

/// The known name that a backend may take this one for, unless it is that name.
#[must_use]
pub fn lookalike<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    known.iter().copied().find(|one| *one != name && equal(name.as_bytes(), one.as_bytes()))
}

fn letters(name: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (letter, behind) = first(rest)?;
        rest = behind;
        Some(letter)
    })
}

/// The first letter of a text, folded, and what is behind it.
#[inline]
fn first(text: &[u8]) -> Option<(u32, &[u8])> {
    let (byte, behind) = text.split_first()?;
    if byte.is_ascii() {
        return Some((u32::from(byte.to_ascii_lowercase()), behind));
    }
    let start = text.get(..4).unwrap_or(text);
    let letter = start.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    match letter {
        Some(letter) => Some((simple(letter).into(), text.get(letter.len_utf8()..).unwrap_or_default())),
        None => Some((NO_CHARACTER | u32::from(*byte), behind)),
    }
}

/// A letter in upper case, then in lower case. Where upper case is several letters, it stays.
fn simple(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    let upper = upper.next().filter(|_| upper.next().is_none()).unwrap_or(letter);
    // Of U+0130 alone the lower case is two letters, the second a mark that the simple mapping leaves out.
    upper.to_lowercase().next().unwrap_or(upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_lenient_backends_do() {
        for (name, known) in [
            ("Extensions", "extensions"),
            ("EXTENSIONS", "extensions"),
            ("exten\u{17f}ions", "extensions"),
            ("extension\u{17f}", "EXTENSIONS"),
            ("to\u{212a}en", "token"),
            ("\u{131}d", "id"),
            ("\u{130}D", "id"),
            ("\u{c4}RGER", "\u{e4}rger"),
            ("\u{3a3}\u{391}\u{3a3}", "\u{3c3}\u{3b1}\u{3c2}"),
            ("\u{b5}", "\u{3bc}"),
            ("\u{1e9e}", "\u{df}"),
        ] {
            assert!(equal(name.as_bytes(), known.as_bytes()), "{name} {known}");
            assert_eq!(folded(name.as_bytes()), folded(known.as_bytes()), "{name} {known}");
            assert_eq!(lookalike(name, &["other", known]), Some(known), "{name} {known}");
        }
        for name in ["extensions", "extension", "extensionss", "extension\u{e9}", "e", "", "ext\u{c5}", " extensions"] {
            assert_eq!(lookalike(name, &["extensions", "token"]), None, "{name}");
        }
        assert_eq!(folded("To\u{212a}en\u{c9}\u{17f}".as_bytes()), "token\u{e9}s".as_bytes());
    }

    #[test]
    fn names_of_any_bytes_are_compared() {
        let odd: &[&[u8]] =
            &[b"\xc5", b"\xbf", b"\xe2\x84", b"\xff", b"\xc5\xbf", b"s", b"\xf0\x9f\x98", b"", b"\xc5s"];
        for (place, one) in odd.iter().enumerate() {
            for (other, two) in odd.iter().enumerate() {
                let same =
                    place == other || (*one == b"\xc5\xbf" && *two == b"s") || (*two == b"\xc5\xbf" && *one == b"s");
                assert_eq!(equal(one, two), same, "{one:?} {two:?}");
                assert_eq!(folded(one) == folded(two), same, "{one:?} {two:?}");
                assert_eq!(compare(one, two), compare(two, one).reverse(), "{one:?} {two:?}");
            }
        }
        assert_eq!(folded(b"A\xffB\xe2\x84"), b"a\xffb\xe2\x84");
    }

    #[test]
    fn equal_names_have_one_spelling_and_one_place() {
        for letter in (0..=0x0011_0000).filter_map(char::from_u32) {
            let name = letter.to_string();
            let folded = folded(name.as_bytes());
            assert!(equal(name.as_bytes(), &folded) && super::folded(&folded) == folded, "{letter:?}");
        }
    }
}
