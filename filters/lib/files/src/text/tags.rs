//! The tags that servers run: those of PHP, ASP and JSP.

use memchr::memmem;

use super::begins;
use crate::Format;
use crate::bytes::find_ignoring_case;

/// How far a tag in bytes that are no text is read.
const WINDOW: usize = 64;
/// So many bytes of text behind a tag are no chance.
const SURE: usize = 24;

/// The tags of a text, wherever they are.
pub(crate) fn in_text(text: &[u8]) -> Option<Format> {
    // A text in front of binary data holds the two or three bytes of a tag by chance.
    if !is_mostly_text(text) {
        return in_binary(text);
    }
    if has_long_php_tag(text) || memmem::find_iter(text, b"<?").any(|at| opens_php(behind(text, at))) {
        return Some(Format::Php);
    }
    // Servers refuse a page with a tag that is not closed.
    let last = memmem::rfind(text, b"%>").unwrap_or(0);
    let closed = memmem::find_iter(text, b"<%").take_while(|at| at + 2 <= last);
    let is_asp = closed.into_iter().any(|at| !is_conversion(behind(text, at)))
        || memmem::find_iter(text, b"<%").any(|at| names_page(behind(text, at), |rest| is_printable(rest, 8)))
        || has_long_asp_tag(text);
    is_asp.then_some(Format::Asp)
}

/// The tags in bytes that are no text. Two or three bytes are in any large file: what follows must be text as well.
pub(crate) fn in_binary(bytes: &[u8]) -> Option<Format> {
    let short = |at: usize| {
        let rest = behind(bytes, at);
        match rest.first() {
            Some(b'=') => is_code(rest.get(1..).unwrap_or_default(), b"?>"),
            Some(byte) if byte.is_ascii_whitespace() => opens_php(rest) && is_code(rest, b"?>"),
            _ => false,
        }
    };
    if has_long_php_tag(bytes) || memmem::find_iter(bytes, b"<?").any(short) {
        return Some(Format::Php);
    }
    let page = |at: usize| names_page(behind(bytes, at), |rest| is_code(rest, b"%>"));
    if memmem::find_iter(bytes, b"<%").any(page) || has_long_asp_tag(bytes) {
        return Some(Format::Asp);
    }
    None
}

/// Whether a text begins with a tag of PHP that is not the long one.
pub(super) fn begins_short(text: &[u8]) -> bool {
    text.strip_prefix(b"<?").is_some_and(opens_php)
}

/// What follows the two bytes at a place.
fn behind(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at + 2..).unwrap_or_default()
}

/// Whether few of all bytes are control characters: one of nine is, in bytes by chance.
fn is_mostly_text(text: &[u8]) -> bool {
    let odd = text.iter().filter(|byte| crate::magic::is_control(**byte)).count();
    odd <= text.len() / 64 + 8
}

fn has_long_php_tag(bytes: &[u8]) -> bool {
    find_ignoring_case(bytes, b"<?php").is_some()
        || find_ignoring_case(bytes, b"language=\"php\"").is_some() && find_ignoring_case(bytes, b"<script").is_some()
}

fn has_long_asp_tag(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"<jsp:").is_some() || find_ignoring_case(bytes, b"runat=\"server\"").is_some()
}

/// Whether PHP runs what follows `<?`: `<?=`, and `<?` alone (`short_open_tag`) where it begins no instruction of XML.
fn opens_php(rest: &[u8]) -> bool {
    match rest {
        [b'=' | b'#', ..] | [b'/', b'/' | b'*', ..] => true,
        [b'$', next, ..] => next.is_ascii_alphabetic() || *next == b'_',
        [byte, ..] if byte.is_ascii_whitespace() => !is_wildcard(rest),
        _ => {
            // A call of a function.
            let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            name > 0 && rest.get(name) == Some(&b'(')
        }
    }
}

/// Whether a wildcard of Java follows: `List<? extends Item>`, `Map<? , ?>`. PHP has no such statement.
fn is_wildcard(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let bound = rest.strip_prefix(b"extends").or_else(|| rest.strip_prefix(b"super"));
    let bound = bound.filter(|bound| bound.first().is_some_and(u8::is_ascii_whitespace)).map(<[u8]>::trim_ascii_start);
    matches!(rest.first(), Some(b'>' | b',' | b')'))
        || bound
            .is_some_and(|of| of.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'@')))
}

/// Whether a conversion of `printf` follows the `<%` of a text: `"<%s>"`. Servers run nothing of that form.
fn is_conversion(rest: &[u8]) -> bool {
    let digits =
        rest.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'l')).count();
    let rest = rest.get(digits..).unwrap_or_default();
    matches!(rest, [b'a'..=b'z' | b'X', b'>' | b'"' | b'\'' | b',' | b')' | b'@' | b'%', ..])
}

/// Whether what follows `<%` is a page of ASP or JSP by its first word.
fn names_page(rest: &[u8], is_code: impl Fn(&[u8]) -> bool) -> bool {
    const WORDS: [&[u8]; 14] = [
        b"page ",
        b"eval",
        b"execute",
        b"response.",
        b"request.",
        b"runtime.",
        b"import ",
        b"webhandler ",
        b"language",
        b"java.",
        b"out.",
        b"new ",
        b"string ",
        b"process",
    ];
    let code = rest.trim_ascii_start();
    let named = matches!(code.first(), Some(b'@' | b'=')) || WORDS.iter().any(|word| begins(code, word));
    named && is_code(rest)
}

/// Whether so many bytes are there and are text.
fn is_printable(rest: &[u8], length: usize) -> bool {
    rest.get(..length).is_some_and(|start| start.iter().all(is_ascii_text))
}

/// Whether text follows a tag: to the tag that closes it, or for more bytes than are text by chance.
fn is_code(rest: &[u8], close: &[u8]) -> bool {
    let window = rest.get(..WINDOW).unwrap_or(rest);
    let end = memmem::find(window, close);
    let inside = end.map_or(window, |end| window.get(..end).unwrap_or_default());
    let plain = inside.iter().filter(|byte| is_ascii_text(byte)).count();
    match (end.is_some(), inside.len()) {
        (true, 0..4) => false,
        (true, 4..12) | (false, 0..WINDOW) => plain == inside.len() && plain >= 4 || is_printable(inside, SURE),
        _ => plain * 4 >= inside.len() * 3 || is_printable(inside, SURE),
    }
}

fn is_ascii_text(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}
