//! The first argument of a rule: `ARGS|!ARGS:token|&REQUEST_HEADERS:Host|TX:/^score_/`.

use nom::Parser;
use nom::bytes::complete::take_while;

use super::{SyntaxError, offset_in};

/// One target of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The byte of the argument.
    pub(crate) offset: usize,
    /// The name as written.
    pub(crate) name: String,
    /// What selects from the collection.
    pub(crate) key: Option<Key>,
    /// `&`: the number of values.
    pub(crate) count: bool,
    /// `!`: not these.
    pub(crate) exclude: bool,
}

/// What selects from a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A name.
    Name(Vec<u8>),
    /// A pattern, `/.../`.
    Pattern(Vec<u8>),
}

/// All targets. `separators` are the bytes between them: `|`, and in updates also `,`.
pub(crate) fn targets(text: &[u8], separators: &[u8]) -> Result<Vec<Target>, SyntaxError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let (after, target) = target(text, rest, separators)?;
        found.push(target);
        match after.split_first() {
            None => return Ok(found),
            Some((_, next)) if next.trim_ascii().is_empty() => {
                return Err(SyntaxError::new(offset_in(text, next), "a variable was expected after the separator"));
            }
            Some((_, next)) => rest = next,
        }
    }
}

fn target<'a>(text: &'a [u8], input: &'a [u8], separators: &[u8]) -> Result<(&'a [u8], Target), SyntaxError> {
    let mut rest = input.trim_ascii_start();
    let offset = offset_in(text, rest);
    let mut target = Target { offset, name: String::new(), key: None, count: false, exclude: false };
    while let Some((&sign, after)) = rest.split_first() {
        match sign {
            b'!' => target.exclude = true,
            b'&' => target.count = true,
            _ => break,
        }
        rest = after.trim_ascii_start();
    }
    let (after, name) = identifier(rest);
    if name.is_empty() {
        return Err(SyntaxError::new(offset_in(text, rest), "a variable was expected here")
            .help("separate variables with '|', for example ARGS|REQUEST_HEADERS:Referer"));
    }
    target.name = String::from_utf8_lossy(name).into_owned();
    rest = after;
    if let Some(after) = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b".")) {
        let xpath = target.name.eq_ignore_ascii_case("XML");
        let (after, key) = key(text, after, separators, xpath)?;
        target.key = Some(key);
        rest = after;
    }
    rest = rest.trim_ascii_start();
    match rest.first() {
        Some(byte) if !separators.contains(byte) => Err(SyntaxError::new(
            offset_in(text, rest),
            format!("unexpected text after the variable '{}'", target.name),
        )
        .help("separate variables with '|'; put a key with special characters in single quotes: ARGS:'a|b'")),
        _ => Ok((rest, target)),
    }
}

fn identifier(input: &[u8]) -> (&[u8], &[u8]) {
    let parsed = take_while::<_, _, nom::error::Error<&[u8]>>(|byte: u8| byte.is_ascii_alphanumeric() || byte == b'_')
        .parse(input);
    parsed.unwrap_or((input, &[]))
}

fn key<'a>(text: &'a [u8], input: &'a [u8], separators: &[u8], xpath: bool) -> Result<(&'a [u8], Key), SyntaxError> {
    if let Some(quoted) = input.strip_prefix(b"'") {
        let Some((rest, inner)) = until(quoted, b'\'') else {
            return Err(SyntaxError::new(offset_in(text, input), "this quote is never closed"));
        };
        let pattern = inner.strip_prefix(b"/").and_then(|inner| inner.strip_suffix(b"/"));
        return Ok(match pattern {
            Some(pattern) if !xpath => (rest, Key::Pattern(pattern.to_vec())),
            _ => (rest, Key::Name(inner)),
        });
    }
    if !xpath && let Some(pattern) = input.strip_prefix(b"/") {
        return match until(pattern, b'/') {
            Some((rest, inner)) => Ok((rest, Key::Pattern(inner))),
            None => Err(SyntaxError::new(offset_in(text, input), "this pattern is never closed")
                .help("a pattern in a key is written between slashes: ARGS:/^id_/")),
        };
    }
    let end = input.iter().position(|byte| separators.contains(byte)).unwrap_or(input.len());
    let (name, rest) = input.split_at_checked(end).unwrap_or((input, &[]));
    let name = name.trim_ascii();
    if name.is_empty() {
        return Err(SyntaxError::new(offset_in(text, input), "a key was expected after the colon"));
    }
    Ok((rest, Key::Name(name.to_vec())))
}

/// The bytes up to an unescaped `end`, which is consumed; `\` before `end` is dropped.
fn until(input: &[u8], end: u8) -> Option<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut bytes = input.iter().copied().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some((_, next)) if next == end => found.push(next),
                Some((_, next)) => found.extend([byte, next]),
                None => found.push(byte),
            },
            _ if byte == end => return Some((input.get(at + 1..).unwrap_or_default(), found)),
            _ => found.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Target> {
        targets(text.as_bytes(), b"|").unwrap()
    }

    #[test]
    fn reads_signs_keys_and_patterns() {
        let found = read("ARGS|!ARGS:token|&REQUEST_HEADERS:Host|TX:/^a|b\\/c/|XML:/*|XML://@*");
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].key, None);
        assert!(found[1].exclude && found[1].key == Some(Key::Name(b"token".to_vec())));
        assert!(found[2].count);
        assert_eq!(found[3].key, Some(Key::Pattern(b"^a|b/c".to_vec())));
        assert_eq!(found[4].key, Some(Key::Name(b"/*".to_vec())));
        assert_eq!(found[5].key, Some(Key::Name(b"//@*".to_vec())));
    }

    #[test]
    fn reads_quoted_keys() {
        let found = read("REQUEST_COOKIES:'/^a|b$/'|ARGS:'x y'|ARGS:body[0][value]");
        assert_eq!(found[0].key, Some(Key::Pattern(b"^a|b$".to_vec())));
        assert_eq!(found[1].key, Some(Key::Name(b"x y".to_vec())));
        assert_eq!(found[2].key, Some(Key::Name(b"body[0][value]".to_vec())));
    }

    #[test]
    fn says_where_it_stops_understanding() {
        assert_eq!(targets(b"ARGS|", b"|").unwrap_err().offset, 5);
        assert_eq!(targets(b"ARGS REQUEST_URI", b"|").unwrap_err().offset, 5);
        assert_eq!(targets(b"TX:/abc", b"|").unwrap_err().offset, 3);
        assert_eq!(targets(b"ARGS:", b"|").unwrap_err().offset, 5);
    }
}
