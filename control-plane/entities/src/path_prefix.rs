//! The path prefixes that a route may answer to.
//!
//! The listener normalises paths before it looks for a route: dot segments and repeated slashes are resolved, escapes of
//! unreserved characters undone, characters that no path has escaped. Envoy compares text. A prefix in another form would
//! match nothing, and its requests would go to the next wider route, with the plugins of that one.

use std::fmt::Write as _;

/// What may be written.
pub(crate) const EXPECTED: &str =
    "a path that begins with /, without query, spaces, empty segments and `.` or `..` between slashes";

/// The form of a path behind the listener: without the escapes that no character needs, with those that it needs, in
/// capitals.
pub(crate) fn normal(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if let Some((byte, behind)) = escape(rest) {
            match is_unreserved(byte) {
                true => normal.push(char::from(byte)),
                false => push_escape(&mut normal, byte),
            }
            rest = behind;
            continue;
        }
        match first.is_ascii() {
            true => normal.push(first),
            false => first.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escape(&mut normal, byte)),
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    normal
}

/// A prefix in its normal form, and as clients write it that have the digits of escapes in lower case: the listener
/// leaves them as they are.
pub fn spellings(path: &str) -> Vec<String> {
    let mut lower = String::with_capacity(path.len());
    let mut digits = 0;
    for character in path.chars() {
        digits = if character == '%' { 2_usize } else { digits };
        lower.push(if digits > 0 { character.to_ascii_lowercase() } else { character });
        digits = if character == '%' { digits } else { digits.saturating_sub(1) };
    }
    let both = lower != path;
    std::iter::once(path.to_owned()).chain(both.then_some(lower)).collect()
}

/// Why no request has a path with this prefix, which is in its [`normal`] form; `None` where some may.
pub(crate) fn problem(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("it does not begin with /");
    }
    if path.contains(['?', '#']) {
        return Some("a query or a fragment is no part of the path");
    }
    if path.bytes().any(|byte| byte.is_ascii_control() || b" \"<>^`{|}".contains(&byte)) {
        return Some("it has a space or another character that paths have only as an escape, such as `%20`");
    }
    if path.contains('\\') {
        return Some("the listener makes a slash of a backslash");
    }
    if path.contains("//") {
        return Some("the listener merges slashes that follow each other");
    }
    // What ends the prefix may go on in the request: `/.` is the beginning of `/.git`.
    let mut segments = path.split('/').rev().skip(1);
    if segments.any(|segment| matches!(segment, "." | "..")) {
        return Some("the listener resolves `.` and `..`");
    }
    let mut escapes = path.match_indices('%').filter_map(|(at, _)| path.get(at..));
    if escapes.any(|text| escape(text).is_none_or(|(byte, _)| byte == 0)) {
        return Some("a `%` begins an escape of two hexadecimal digits, and not of 00");
    }
    None
}

/// What is probably not meant by a prefix that requests may have. `keeps_slashes`: the listener lets escaped slashes be.
pub fn doubt(path: &str, keeps_slashes: bool) -> Option<&'static str> {
    let escaped_slash = ["%2F", "%5C"].iter().any(|escape| path.contains(escape));
    match path.rsplit('/').next() {
        _ if escaped_slash && !keeps_slashes => Some(
            "no request has it: the listener refuses or undoes escaped slashes (`gateway.listener.escaped_slashes`)",
        ),
        Some("." | "..") => {
            Some("it is the beginning of names such as `.git`; the listener resolves the segment itself")
        }
        Some(last) if last.contains('*') => {
            Some("`*` is the character itself: a path is a prefix already, without any wildcard")
        }
        _ => None,
    }
}

/// The byte of the escape that a text begins with, and what follows.
fn escape(text: &str) -> Option<(u8, &str)> {
    let rest = text.strip_prefix('%')?;
    let (digits, behind) = rest.split_at_checked(2)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()?;
    Some((byte, behind))
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn push_escape(text: &mut String, byte: u8) {
    // Writing to a string has no way to fail.
    let _ = write!(text, "%{byte:02X}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_get_the_form_of_the_listener() {
        for (written, kept) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/%61%2Db", "/a-b"),
            ("/\u{fc}", "/%C3%BC"),
            ("/%c3%bc", "/%C3%BC"),
            ("/a%20b;c=1", "/a%20b;c=1"),
            ("/%2e%2e/a", "/../a"),
            ("/a%2fb", "/a%2Fb"),
            ("/%2561", "/%2561"),
            ("/%", "/%"),
            ("/%zz", "/%zz"),
            ("/%+1", "/%+1"),
            ("/%\u{fc}1", "/%%C3%BC1"),
        ] {
            assert_eq!(normal(written), kept, "{written}");
            assert_eq!(normal(kept), kept, "{kept}: no other form of its own");
        }
    }

    #[test]
    fn escapes_are_served_in_both_cases() {
        assert_eq!(spellings("/ABC"), ["/ABC"]);
        assert_eq!(spellings("/a%20B"), ["/a%20B"]);
        assert_eq!(spellings("/A%C3%BCABC%2FD"), ["/A%C3%BCABC%2FD", "/A%c3%bcABC%2fD"]);
    }

    #[test]
    fn prefixes_of_no_request_are_refused() {
        for path in
            ["/", "/a", "/a/", "/.", "/.well-known/", "/a/..", "/a..b/c", "/%C3%BC", "/a%20b", "/A;v=1", "/*", "/~u"]
        {
            assert_eq!(problem(path), None, "{path}");
        }
        for (path, reason) in [
            ("", "begin"),
            ("a", "begin"),
            ("*", "begin"),
            ("/a?b", "query"),
            ("/a#b", "query"),
            ("/a b", "space"),
            ("/{id}", "space"),
            ("/a\tb", "space"),
            ("/\\", "backslash"),
            ("//", "merges"),
            ("/a//b", "merges"),
            ("/a/../b", "resolves"),
            ("/./a", "resolves"),
            ("/%", "%"),
            ("/%zz", "%"),
            ("/a%2", "%"),
            ("/a%00", "%"),
        ] {
            assert!(problem(path).is_some_and(|found| found.contains(reason)), "{path}: {:?}", problem(path));
        }
    }

    #[test]
    fn odd_prefixes_are_told() {
        let told = |path, keeps| doubt(path, keeps).is_some();
        assert_eq!(["/.", "/a/..", "/*", "/api/*"].map(|path| told(path, true)), [true; 4]);
        assert_eq!(["/", "/.git", "/a/", "/*/b", "/~u", "/a%20b"].map(|path| told(path, false)), [false; 6]);
        assert_eq!([told("/a%2Fb", false), told("/a%5Cb", false), told("/a%2Fb", true)], [true, true, false]);
    }
}
