//! Formats of text: pages, scripts, SVG, XML, JSON.

pub(crate) mod tags;
mod xml;

use std::borrow::Cow;

use memchr::memmem;

use crate::bytes::find_ignoring_case;
use crate::disposition::without_escapes;
use crate::{Family, Format};

/// How many bytes of a text are searched for its root element and for what makes it a script.
const REACH: usize = 1 << 20;
/// The tags that make a page of a text that begins with one of them (WHATWG MIME Sniffing, section 7.1, and what browsers add).
const PAGE_TAGS: [&[u8]; 22] = [
    b"!doctype html",
    b"html",
    b"head",
    b"script",
    b"iframe",
    b"h1",
    b"div",
    b"font",
    b"table",
    b"a",
    b"style",
    b"title",
    b"b",
    b"body",
    b"br",
    b"p",
    b"img",
    b"object",
    b"embed",
    b"meta",
    b"form",
    b"link",
];
/// What loads or runs a script in an SVG image, beside event handlers.
const ACTIVE_SVG: [&[u8]; 8] =
    [b"<script", b":script", b"javascript:", b"<foreignobject", b":foreignobject", b"<iframe", b"<embed", b"<!entity"];
/// What documents of XML with macros hold: Word of 2003, and packages of 2007 and later in one file.
const OFFICE_MACROS: [&[u8]; 5] =
    [b"macrospresent=\"yes\"", b"macrospresent='yes'", b"editdata.mso", b"vbaproject", b"macroenabled"];
/// Words of scripts for the Windows script host.
const WINDOWS_SCRIPT: [&[u8]; 4] =
    [b"wscript.shell", b"wscript.createobject", b"scripting.filesystemobject", b"shell.application"];

/// The text of bytes that may be UTF-16: one byte for each character of ASCII. `None` where they are no text.
pub(crate) fn as_text(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let wide = |bytes: &[u8], high: usize| {
        let narrow = |pair: &[u8; 2]| {
            let [first, second] = *pair;
            let (low, high) = if high == 1 { (first, second) } else { (second, first) };
            if high == 0 && low.is_ascii() { low } else { 0x80 }
        };
        let reach = bytes.get(..REACH).unwrap_or(bytes);
        Cow::Owned(reach.as_chunks::<2>().0.iter().map(narrow).collect())
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some(wide(rest, 1)),
        [0xfe, 0xff, rest @ ..] => Some(wide(rest, 0)),
        [b'<', 0, second, 0, ..] if second.is_ascii_graphic() => Some(wide(bytes, 1)),
        [0, b'<', 0, second, ..] if second.is_ascii_graphic() => Some(wide(bytes, 0)),
        [0xef, 0xbb, 0xbf, rest @ ..] => is_text(rest).then_some(Cow::Borrowed(rest)),
        _ => is_text(bytes).then_some(Cow::Borrowed(bytes)),
    }
}

/// Whether bytes are text, without any control character at their beginning, or are UTF-16.
pub(crate) fn is_plain_text(bytes: &[u8]) -> bool {
    match as_text(bytes) {
        Some(Cow::Owned(_)) => true,
        Some(Cow::Borrowed(text)) => crate::magic::looks_like_text(text),
        None => false,
    }
}

/// Whether bytes are text, or begin as markup or a script does: browsers and systems run those whatever follows.
fn is_text(bytes: &[u8]) -> bool {
    crate::magic::looks_like_text(bytes) || begins_as_code(bytes)
}

/// Whether bytes begin as markup or a script does, whatever follows.
pub(crate) fn begins_as_code(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.trim_ascii_start() {
        [b'<', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'!' | b'?' | b'%' | b'_'),
        start => is_shell(start),
    }
}

/// `#!` with the path of a program.
fn is_shell(start: &[u8]) -> bool {
    start.strip_prefix(b"#!").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"/"))
}

/// The format of a text.
pub(crate) fn of_text(text: &[u8]) -> Format {
    in_both_readings(text, of_characters)
}

/// The format of a text as it is and, where it changes its character set with escapes (ISO 2022), without these: the one that runs
/// something. Browsers read `<scr\x1b(Bipt>` as a tag.
fn in_both_readings(text: &[u8], read: impl Fn(&[u8]) -> Format) -> Format {
    let format = read(text);
    if memchr::memchr(0x1b, text).is_none() {
        return format;
    }
    let other = read(&without_escapes(text));
    if matches!(other.family(), Family::Script | Family::Html) { other } else { format }
}

fn of_characters(text: &[u8]) -> Format {
    let start = text.trim_ascii_start();
    if let Some(script) = script(start) {
        return script;
    }
    let first = start.first().copied().unwrap_or_default();
    if first == b'<' {
        return markup(start);
    }
    if starts_like_mail_page(start) {
        return Format::Html;
    }
    data(start)
}

/// Text without markup.
fn data(start: &[u8]) -> Format {
    match (start.first(), start.trim_ascii_end().last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => Format::Json,
        _ => Format::Text,
    }
}

/// The script that a text is: what runs it does so wherever its tag is.
fn script(start: &[u8]) -> Option<Format> {
    let reach = start.get(..REACH).unwrap_or(start);
    if is_shell(reach) {
        return Some(Format::Shell);
    }
    if let Some(format) = tags::in_text(start) {
        return Some(format);
    }
    let lower = |length: usize| reach.get(..length.min(reach.len())).unwrap_or_default().to_ascii_lowercase();
    let head = lower(64);
    if head.starts_with(b"@echo off") || head.starts_with(b"@echo on") || head.starts_with(b"@cmd ") {
        return Some(Format::Batch);
    }
    if head.starts_with(b"windows registry editor version") || head.starts_with(b"regedit4") {
        return Some(Format::Registry);
    }
    if head.starts_with(b"#requires -") || head.starts_with(b"# powershell") {
        return Some(Format::PowerShell);
    }
    let beginning = reach.get(..64 << 10).unwrap_or(reach);
    if WINDOWS_SCRIPT.iter().any(|word| find_ignoring_case(beginning, word).is_some())
        || find_ignoring_case(beginning, b"<hta:application").is_some()
    {
        return Some(Format::WindowsScript);
    }
    None
}

fn begins(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A page saved as a mail (MHTML).
fn starts_like_mail_page(start: &[u8]) -> bool {
    let head = start.get(..4096).unwrap_or(start);
    let mime = find_ignoring_case(head, b"mime-version:").is_some();
    mime && find_ignoring_case(head, b"multipart/related").is_some()
        && find_ignoring_case(start, b"text/html").is_some()
}

/// Text that begins with `<`.
fn markup(start: &[u8]) -> Format {
    // Browsers take a comment for the beginning of a page, unless something else is declared.
    if begins(start, b"<!--")
        && !begins(behind_comments(start), b"<?xml")
        && !begins(behind_comments(start), b"<!doctype svg")
    {
        let is_svg = root(start).is_some_and(|root| local_name(root).eq_ignore_ascii_case(b"svg"));
        if !is_svg {
            return Format::Html;
        }
    }
    document(start)
}

/// What follows the comments that a text begins with.
fn behind_comments(mut text: &[u8]) -> &[u8] {
    while text.starts_with(b"<!--") {
        text = memmem::find(text, b"-->").and_then(|at| text.get(at + 3..)).unwrap_or_default().trim_ascii_start();
    }
    text
}

fn local_name(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b':').next().unwrap_or(name)
}

/// A page, or a document of XML.
fn document(start: &[u8]) -> Format {
    let reach = start.get(..REACH).unwrap_or(start);
    if is_page_tag(reach) {
        return Format::Html;
    }
    // A server includes what such a comment names.
    if begins(reach, b"<!--#") {
        return Format::Html;
    }
    let Some(root) = root(reach) else {
        if let Some(page) = xml::active(start) {
            return page;
        }
        // Browsers take a comment for the beginning of a page.
        return if begins(reach, b"<!--") { Format::Html } else { Format::Text };
    };
    let local = local_name(root);
    if local.eq_ignore_ascii_case(b"svg") {
        let active = is_active_svg(reach) || xml::has_script_url(start) || xml::active(start).is_some();
        return if active { Format::ActiveSvg } else { Format::Svg };
    }
    if local.eq_ignore_ascii_case(b"html") || is_page_tag_name(local) {
        return Format::Html;
    }
    // Elements of XHTML and SVG in any XML document are run like those of a page.
    if let Some(page) = xml::active(start) {
        return page;
    }
    let declared = begins(reach, b"<?xml") || find_ignoring_case(reach, b"xmlns").is_some();
    if is_office(start, local) {
        let has_macros = OFFICE_MACROS.iter().any(|word| find_ignoring_case(start, word).is_some());
        return if has_macros { Format::Macro } else { Format::Xml };
    }
    if begins(local, b"scriptlet")
        || (begins(local, b"job") || begins(local, b"package")) && find_ignoring_case(reach, b"<script").is_some()
    {
        return Format::WindowsScript;
    }
    if declared || reach.trim_ascii_end().ends_with(b">") { Format::Xml } else { Format::Text }
}

/// Whether a document of XML is one that office programs open: by its root, or as it says.
fn is_office(text: &[u8], root: &[u8]) -> bool {
    let says = |program: &[u8]| find_ignoring_case(text, program).is_some();
    [b"wordDocument".as_slice(), b"Workbook"].contains(&root)
        || root == b"package" && says(b"schemas.microsoft.com/office/2006/xmlpackage")
        || says(b"progid=\"word.document")
        || says(b"progid='word.document")
        || says(b"progid=\"excel.sheet")
        || says(b"progid='excel.sheet")
        || says(b"progid=\"powerpoint.show")
        || says(b"progid='powerpoint.show")
}

fn is_page_tag(text: &[u8]) -> bool {
    let Some(inside) = text.strip_prefix(b"<") else { return false };
    PAGE_TAGS.iter().any(|tag| {
        begins(inside, tag)
            && inside
                .get(tag.len())
                .is_none_or(|byte| matches!(byte, b' ' | b'>' | b'\t' | b'\n' | b'\r' | 0x0c | b'/'))
    })
}

fn is_page_tag_name(name: &[u8]) -> bool {
    PAGE_TAGS.iter().any(|tag| tag.len() > 2 && tag.eq_ignore_ascii_case(name))
}

/// The name of the first element: behind the declaration, comments, instructions and the document type. A page may have a document type
/// that no document of XML has.
fn root(text: &[u8]) -> Option<&[u8]> {
    root_behind(text, behind_doctype).or_else(|| root_behind(text, behind_any_doctype))
}

fn root_behind<'t>(mut text: &'t [u8], behind: impl Fn(&'t [u8]) -> Option<&'t [u8]>) -> Option<&'t [u8]> {
    loop {
        text = text.trim_ascii_start();
        let end: &[u8] = match text {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', ..] => {
                if begins(text, b"<!doctype svg") {
                    return Some(b"svg");
                }
                if begins(text, b"<!doctype html") {
                    return Some(b"html");
                }
                text = behind(text)?;
                continue;
            }
            [b'<', rest @ ..] => {
                let length =
                    rest.iter().take_while(|byte| !matches!(byte, b' ' | b'>' | b'/' | b'\t' | b'\n' | b'\r')).count();
                return rest.get(..length).filter(|name| !name.is_empty());
            }
            _ => return None,
        };
        let at = memmem::find(text, end)?;
        text = text.get(at + end.len()..)?;
    }
}

/// What follows a document type, whose internal part is in brackets. Brackets and `>` in quotes, comments and instructions are none of
/// it.
fn behind_doctype(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.get(2..)?;
    let mut inside = false;
    loop {
        let at = rest.iter().position(|byte| matches!(byte, b'[' | b']' | b'<' | b'>' | b'"' | b'\''))?;
        let (sign, behind) = rest.get(at..)?.split_first()?;
        let skipped: &[u8] = match (sign, behind) {
            (b'"', _) => b"\"",
            (b'\'', _) => b"'",
            (b'<', [b'!', b'-', b'-', ..]) => b"-->",
            (b'<', [b'?', ..]) => b"?>",
            (b'>', _) if !inside => return Some(behind),
            _ => b"",
        };
        inside = (inside || *sign == b'[') && *sign != b']';
        // The marks at the beginning of a comment are no part of its end.
        let behind = behind.get(if skipped == b"-->" { 3 } else { 0 }..)?;
        rest = match skipped {
            b"" => behind,
            end => behind.get(memmem::find(behind, end)? + end.len()..)?,
        };
    }
}

/// The same by the first signs, as lenient readers of pages take it.
fn behind_any_doctype(text: &[u8]) -> Option<&[u8]> {
    let bracket = memchr::memchr2(b'[', b'>', text)?;
    let close = match text.get(bracket) {
        Some(b'>') => bracket,
        _ => {
            let inner = bracket + memchr::memchr(b']', text.get(bracket..)?)?;
            inner + memchr::memchr(b'>', text.get(inner..)?)?
        }
    };
    text.get(close + 1..)
}

/// Whether an SVG image can run something: scripts, event handlers, elements of pages, references to scripts.
fn is_active_svg(text: &[u8]) -> bool {
    if ACTIVE_SVG.iter().any(|word| find_ignoring_case(text, word).is_some()) {
        return true;
    }
    // Characters may be written as references: `javas&#99;ript:`.
    if find_ignoring_case(text, b"href").is_some() && has_reference_to_letters(text) {
        return true;
    }
    let handlers = memchr::memchr2_iter(b'o', b'O', text).filter(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before)).copied().unwrap_or(b' ');
        matches!(before, b' ' | b'\t' | b'\n' | b'\r' | b'\'' | b'"' | b'/')
    });
    handlers.into_iter().any(|at| is_handler(text.get(at..).unwrap_or_default()))
}

/// `on`, letters, `=`.
fn is_handler(text: &[u8]) -> bool {
    let Some(rest) = text.get(2..).filter(|_| begins(text, b"on")) else { return false };
    let letters = rest.iter().take(24).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let behind = rest.get(letters..).unwrap_or_default();
    letters >= 3 && behind.trim_ascii_start().starts_with(b"=")
}

/// Whether a text writes a letter as a reference: `&#99;`.
pub(crate) fn has_reference_to_letters(text: &[u8]) -> bool {
    memmem::find_iter(text, b"&#").any(|at| {
        let digits = text.get(at + 2..).unwrap_or_default();
        let (hex, digits) = match digits {
            [b'x' | b'X', rest @ ..] => (true, rest),
            _ => (false, digits),
        };
        let radix = if hex { 16 } else { 10 };
        let value = digits.iter().take(8).map_while(|byte| char::from(*byte).to_digit(radix));
        let value = value.fold(0_u32, |value, digit| value.saturating_mul(radix).saturating_add(digit));
        matches!(value, 0x41..=0x5a | 0x61..=0x7a | 0x3a)
    })
}

/// The format of a text that holds what a server or a system runs, if it is data nevertheless: it does not begin with a tag of it.
pub(crate) fn of_data(text: &[u8]) -> Option<Format> {
    let start = text.trim_ascii_start();
    let runs =
        begins(start, b"<?php") || tags::begins_short(start) || start.starts_with(b"<%") || start.starts_with(b"#!");
    (!runs).then(|| match start.first() {
        Some(b'<') => in_both_readings(start, markup),
        _ => data(start),
    })
}

/// The format of a text that is XML by its name: servers say so, and a comment at the beginning makes no page of it.
pub(crate) fn of_xml(text: &[u8]) -> Option<Format> {
    let start = text.trim_ascii_start();
    (begins(start, b"<!--") && !begins(start, b"<!--#")).then(|| in_both_readings(start, document))
}

/// Whether a text is a mail with pages in it, or a page that is saved as one: both have the same form.
pub(crate) fn is_mail(text: &[u8]) -> bool {
    starts_like_mail_page(text.trim_ascii_start())
}

/// Whether a page begins as whole pages do, or runs something: by more than a tag that other texts have as well.
pub(crate) fn is_whole_page(text: &[u8]) -> bool {
    let start = text.trim_ascii_start();
    let strong: [&[u8]; 7] = [b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<iframe", b"<?xml"];
    strong.iter().any(|tag| begins(start, tag)) || find_ignoring_case(start, b"<script").is_some()
}
