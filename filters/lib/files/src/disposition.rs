//! The names that a `Content-Disposition` or a `Content-Type` gives to a file, in every reading of them.
//!
//! Parsers differ: some undo all backslashes of a quoted string and some only those in front of a quote, some decode `%2e`, RFC 2047
//! words or RFC 2231 continuations, some take the first of two parameters and some the last. A name that is refused in any reading is
//! refused.

use crate::base64::{base64, hex_pair};

/// The most names that are taken of one header.
const MAX_NAMES: usize = 32;
/// How many bytes of a name are kept: the last ones, where its extensions are.
const MAX_NAME: usize = 16 << 10;
/// Stands in front of a name that is not read: its character set does not have the letters of ASCII, or there are more readings than
/// are kept. It is U+FDD0, a code point of no text.
pub(crate) const UNREAD: &[u8] = b"\xef\xb7\x90";
/// The character sets whose ASCII characters are those of ASCII, without the signs in their names: how the names begin.
const READ: &[&[u8]] = &[
    b"ansi",
    b"ascii",
    b"big5",
    b"cp125",
    b"cp437",
    b"cp737",
    b"cp775",
    b"cp850",
    b"cp852",
    b"cp855",
    b"cp857",
    b"cp858",
    b"cp862",
    b"cp866",
    b"cp874",
    b"cp932",
    b"cp936",
    b"cp949",
    b"cp950",
    b"csiso",
    b"euc",
    b"gb",
    b"hz",
    b"ibm437",
    b"ibm850",
    b"ibm852",
    b"ibm855",
    b"ibm858",
    b"ibm866",
    b"iso2022",
    b"iso8859",
    b"isoir",
    b"johab",
    b"koi8",
    b"ks",
    b"latin",
    b"mac",
    b"ms9",
    b"shiftjis",
    b"sjis",
    b"tis620",
    b"uhc",
    b"usascii",
    b"utf8",
    b"viscii",
    b"windows",
    b"unknown8bit",
];

/// All readings of the parameter `name` (`filename` or `name`) of a header's value: of `name`, `name*`, `name*0` and the like. Each
/// reading once, none of them empty.
#[must_use]
pub fn names(value: &[u8], name: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut parts = Vec::new();
    for (key, text) in parameters(value) {
        let key = key.to_ascii_lowercase();
        let Some(rest) = key.strip_prefix(name.as_bytes()) else { continue };
        match rest {
            b"" => readings(text, &mut found),
            b"*" => extended(text, &mut found),
            [b'*', section @ ..] => parts.push((section.to_vec(), text)),
            _ => {}
        }
    }
    continued(parts, &mut found);
    found
}

/// The readings of the last segment of a path in a request target: as it was sent, and with percent escapes undone once and twice.
#[must_use]
pub fn path_names(path: &[u8]) -> Vec<Vec<u8>> {
    let segment = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let mut found = Vec::new();
    let once = percent(segment);
    add(&mut found, segment.to_vec());
    add(&mut found, percent(&once));
    add(&mut found, once);
    found
}

fn add(found: &mut Vec<Vec<u8>>, mut name: Vec<u8>) {
    if let Some(more) = name.len().checked_sub(MAX_NAME).filter(|more| *more > 0) {
        let unread = memchr::memmem::find(&name, UNREAD).is_some();
        name.drain(..more);
        if unread {
            add(found, UNREAD.to_vec());
        }
    }
    if name.is_empty() || found.contains(&name) {
        return;
    }
    match found.len() {
        0..MAX_NAMES => found.push(name),
        // A name that is not kept may be the one that counts.
        MAX_NAMES => found.push(UNREAD.to_vec()),
        _ => {}
    }
}

/// Adds a name that is written in a character set.
fn add_in(charset: &[u8], name: Vec<u8>, found: &mut Vec<Vec<u8>>) {
    if !is_read(charset) {
        add(found, [UNREAD, &name].concat());
        return;
    }
    if name.contains(&0x1b) {
        add(found, without_escapes(&name));
    }
    add(found, name);
}

/// Whether the ASCII characters of a character set are those of ASCII; so they are where none is named.
fn is_read(charset: &[u8]) -> bool {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric();
    let charset: Vec<u8> = charset.iter().filter(is_letter).map(u8::to_ascii_lowercase).take(64).collect();
    let charset = charset.strip_prefix(b"x").filter(|rest| !rest.is_empty()).unwrap_or(&charset);
    charset.is_empty() || READ.iter().any(|known| charset.starts_with(known))
}

/// Without the sequences that change the character set (ISO 2022): an escape, bytes of 0x20 to 0x2f, and a last one.
fn without_escapes(name: &[u8]) -> Vec<u8> {
    let mut parts = name.split(|byte| *byte == 0x1b);
    let mut plain = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let length = part.iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
        plain.extend_from_slice(part.get(length + 1..).unwrap_or_default());
    }
    plain
}

/// The parameters behind the first `;`: names, and values with their quotes.
fn parameters(value: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut list = Vec::new();
    let mut rest = match memchr::memchr(b';', value) {
        Some(at) => value.get(at + 1..).unwrap_or_default(),
        None => return list,
    };
    while !rest.is_empty() {
        let Some(equals) = memchr::memchr2(b'=', b';', rest) else { break };
        let key = rest.get(..equals).unwrap_or_default().trim_ascii();
        let behind = rest.get(equals + 1..).unwrap_or_default();
        if rest.get(equals) == Some(&b';') {
            rest = behind;
            continue;
        }
        let text = behind.trim_ascii_start();
        let length = value_length(text);
        list.push((key, text.get(..length).unwrap_or_default().trim_ascii()));
        rest = text.get(length..).unwrap_or_default();
        rest = rest.strip_prefix(b";").unwrap_or(rest);
    }
    list
}

/// How long a value is: to the `;` that is not in quotes.
fn value_length(text: &[u8]) -> usize {
    let quote = text.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let Some(quote) = quote else {
        return memchr::memchr(b';', text).unwrap_or(text.len());
    };
    let mut escaped = false;
    let closing = text.iter().skip(1).position(|byte| {
        let closes = *byte == quote && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    });
    let end = closing.map_or(text.len(), |at| at + 2);
    let behind = text.get(end..).unwrap_or_default();
    end + memchr::memchr(b';', behind).unwrap_or(behind.len())
}

/// The readings of a value that is no extended one.
fn readings(text: &[u8], found: &mut Vec<Vec<u8>>) {
    let quote = text.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let inner = match quote {
        Some(quote) => {
            let inside = text.get(1..).unwrap_or_default();
            // The first quote that is not escaped; for others the first quote at all.
            let first = memchr::memchr(quote, inside).unwrap_or(inside.len());
            add_decoded(inside.get(..first).unwrap_or_default(), found);
            let last = value_length(text).saturating_sub(1).min(inside.len());
            let whole = inside.get(..last).unwrap_or_default();
            whole.strip_suffix(&[quote]).unwrap_or(whole)
        }
        None => text,
    };
    add_decoded(inner, found);
    add_decoded(&unescaped(inner, |_| true), found);
    add_decoded(&unescaped(inner, |byte| matches!(byte, b'"' | b'\\' | b'\'')), found);
}

/// A reading, and what decoders of percent escapes and of RFC 2047 make of it.
fn add_decoded(name: &[u8], found: &mut Vec<Vec<u8>>) {
    add(found, name.to_vec());
    if name.contains(&b'%') {
        add(found, percent(name));
    }
    if let Some(words) = encoded_words(name) {
        if words.contains(&0x1b) {
            add(found, without_escapes(&words));
        }
        add(found, words);
    }
}

/// Without the backslash in front of bytes that it escapes.
fn unescaped(text: &[u8], escapes: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match rest.split_first() {
            Some((next, after)) if *byte == b'\\' && escapes(*next) => {
                plain.push(*next);
                rest = after;
            }
            _ => plain.push(*byte),
        }
    }
    plain
}

/// With percent escapes undone.
pub(crate) fn percent(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match hex_pair(rest).filter(|_| *byte == b'%') {
            Some(value) => {
                plain.push(value);
                rest = rest.get(2..).unwrap_or_default();
            }
            None => plain.push(*byte),
        }
    }
    plain
}

/// An extended value (RFC 5987, section 3.2): `UTF-8'en'%e2%82%ac.txt`.
fn extended(text: &[u8], found: &mut Vec<Vec<u8>>) {
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    let (charset, value) = charset_and_value(text);
    add_in(charset, percent(value), found);
    add(found, value.to_vec());
}

/// The character set of an extended value, and the value behind the language; no character set if it has none.
fn charset_and_value(text: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = text.splitn(3, |byte| *byte == b'\'');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(charset), Some(_), Some(value)) => (charset, value),
        _ => (b"", text),
    }
}

/// Continuations (RFC 2231, section 3): `filename*0="a."; filename*1="php"`, in their order and by their numbers.
fn continued(parts: Vec<(Vec<u8>, &[u8])>, found: &mut Vec<Vec<u8>>) {
    if parts.is_empty() {
        return;
    }
    let text = |(section, text): &(Vec<u8>, &[u8])| {
        let inner = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
        match section.ends_with(b"*") {
            true => percent(inner.splitn(3, |byte| *byte == b'\'').last().unwrap_or(inner)),
            false => unescaped(inner, |_| true),
        }
    };
    // The first section names the character set of all.
    let charset = |(section, text): &(Vec<u8>, &[u8])| {
        let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
        if section.ends_with(b"*") { charset_and_value(text).0.to_vec() } else { Vec::new() }
    };
    let charset = parts.iter().map(charset).find(|charset| !is_read(charset)).unwrap_or_default();
    let as_sent: Vec<u8> = parts.iter().flat_map(text).collect();
    let number = |section: &[u8]| {
        let digits = section.strip_suffix(b"*").unwrap_or(section);
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(u32::MAX)
    };
    let mut sorted = parts;
    sorted.sort_by_key(|(section, _)| number(section));
    let in_order: Vec<u8> = sorted.iter().flat_map(text).collect();
    add_in(&charset, in_order, found);
    add_in(&charset, as_sent, found);
}

/// The characters of base64 alone: lenient decoders skip others.
fn only_base64(text: &[u8]) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    text.iter().copied().filter(is_digit).collect()
}

/// Encoded words (RFC 2047) of a name, decoded; `None` if there are none.
fn encoded_words(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let (mut rest, mut any) = (text, false);
    while let Some(at) = memchr::memmem::find(rest, b"=?") {
        let word = rest.get(at + 2..)?;
        let mut parts = word.splitn(3, |byte| *byte == b'?');
        let (Some(charset), Some(encoding), Some(behind)) = (parts.next(), parts.next(), parts.next()) else { break };
        let Some(end) = memchr::memmem::find(behind, b"?=") else { break };
        let content = behind.get(..end)?;
        decoded.extend_from_slice(rest.get(..at)?.trim_ascii());
        // A language may follow the character set (RFC 2231, section 5).
        let charset = charset.split(|byte| *byte == b'*').next().unwrap_or_default();
        if matches!(encoding, b"b" | b"B" | b"q" | b"Q") && !is_read(charset) {
            decoded.extend_from_slice(UNREAD);
        }
        match encoding {
            b"b" | b"B" => decoded.extend(base64(content).or_else(|| base64(&only_base64(content)))?),
            _ => {
                let spaced: Vec<u8> = content.iter().map(|byte| if *byte == b'_' { b' ' } else { *byte }).collect();
                decoded.extend(crate::base64::quoted_printable(&spaced));
            }
        }
        any = true;
        rest = behind.get(end + 2..)?;
    }
    decoded.extend_from_slice(rest);
    any.then_some(decoded)
}
