//! The tags that servers run: those of PHP, ASP and JSP.

use memchr::memmem;

use super::begins;
use crate::Format;
use crate::bytes::find_ignoring_case;

/// How far a tag in bytes that are no text is read.
const WINDOW: usize = 64;
/// So many bytes of text behind a tag are no chance.
const SURE: usize = 24;

/// Words of PHP that an expression or a block follows without parentheses.
const EXPRESSION_WORDS: [&[u8]; 12] = [
    b"echo",
    b"print",
    b"include",
    b"include_once",
    b"require",
    b"require_once",
    b"return",
    b"throw",
    b"new",
    b"clone",
    b"do",
    b"try",
];

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
            _ => opens_php(rest) && is_code(rest, b"?>"),
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
        [byte, ..] if byte.is_ascii_whitespace() => !is_wildcard(rest),
        _ => begins_statement(rest),
    }
}

/// Whether a statement of PHP follows that no instruction of XML is: a variable, a command, a call, or a word that takes an expression.
fn begins_statement(rest: &[u8]) -> bool {
    let window = rest.get(..WINDOW * 4).unwrap_or(rest);
    // What may be in front of an expression.
    let signs = window.iter().take(WINDOW).take_while(|byte| b"@({[;!~+-\\ \t\r\n".contains(byte)).count();
    let (before, code) = window.split_at_checked(signs).unwrap_or_default();
    match code {
        [b'$', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'_' | b'{' | b'$'),
        [b'/', b'*', ..] => true,
        [b'`', ..] => is_command(rest.get(signs + 1..).unwrap_or_default()),
        // The name of what is called, as a text: `'system'('id')`.
        [quote @ (b'"' | b'\''), behind @ ..] => {
            let name = memchr::memchr(*quote, behind).and_then(|end| behind.split_at_checked(end));
            name.is_some_and(|(name, behind)| {
                let called = behind.get(1..).unwrap_or_default().trim_ascii_start();
                name.len() > 1 && !name.iter().any(u8::is_ascii_whitespace) && matches!(called, [b'(' | b'.', ..])
            })
        }
        _ => {
            // Signs and words of other texts: `>_<?! that is (almost) all`.
            let is_prose = before.iter().any(u8::is_ascii_whitespace) && !matches!(before.first(), Some(b';' | b'{'));
            begins_word(code, before.is_empty(), is_prose)
        }
    }
}

/// Whether a command and its closing backtick follow, and no text that has the tag in backticks: "the tag `<?` is closed by `?>`".
fn is_command(text: &[u8]) -> bool {
    // Linear over all tags: the backtick of the next one is no further.
    let Some((command, behind)) = memchr::memchr(b'`', text).and_then(|end| text.split_at_checked(end)) else {
        return false;
    };
    if command.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/$~{(\\_".contains(byte)) {
        return true;
    }
    let behind = behind.get(1..).unwrap_or_default().trim_ascii_start();
    let ends = behind.is_empty() || behind.starts_with(b";") || behind.starts_with(b"?>");
    ends && !matches!(command.trim_ascii(), b"" | b"and" | b"or" | b"to")
}

/// Whether a call or another statement follows that begins with a word. `alone` if nothing is in front of it.
fn begins_word(code: &[u8], alone: bool, is_prose: bool) -> bool {
    let length = code.iter().take_while(|byte| is_name_byte(**byte)).count();
    let Some((name, behind)) = code.split_at_checked(length).filter(|_| length > 0) else { return false };
    // One letter behind a sign may be anything in a text that describes other texts: `<?\s(...)`.
    if behind.starts_with(b"(") && (alone || length > 1) {
        return true;
    }
    let further = behind.iter().take_while(|byte| is_name_byte(**byte) || b"\\:.-".contains(byte)).count();
    let named = length > 1 || alone && further > 0;
    let path = behind.get(further..).unwrap_or_default();
    let called = if is_prose { path } else { path.trim_ascii_start() };
    if named && matches!(called, [b'(', ..] | [b'/', b'*' | b'/', ..]) {
        return true;
    }
    !is_prose && EXPRESSION_WORDS.iter().any(|word| word.eq_ignore_ascii_case(name)) && is_expression(behind)
}

/// Whether an expression follows a word, and no attribute of an instruction of XML: `<?include file="a"?>`.
fn is_expression(behind: &[u8]) -> bool {
    match behind {
        [byte, ..] if byte.is_ascii_whitespace() => {
            let rest = behind.trim_ascii_start();
            let name = rest.iter().take_while(|byte| is_name_byte(**byte) || **byte == b'-').count();
            let after = rest.get(name..).unwrap_or_default().trim_ascii_start();
            let ends = rest.is_empty() || rest.starts_with(b"?>");
            !ends && (name == 0 || !after.starts_with(b"=") || after.starts_with(b"=="))
        }
        [b'"' | b'\'' | b'$' | b'`' | b'@' | b'[' | b'{' | b'\\' | b'!' | b'~', ..] => true,
        [b'/', next, ..] => matches!(next, b'*' | b'/'),
        _ => false,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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
