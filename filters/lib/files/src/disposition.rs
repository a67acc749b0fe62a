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
    let list = parameters(value, is_quote);
    // To some parsers an apostrophe quotes; in the grammar it is a character of tokens (RFC 9110, section 5.6.2).
    let strict = parameters(value, |byte| byte == b'"');
    add_parameters(&list, name, &mut found);
    if strict != list {
        add_parameters(&strict, name, &mut found);
    }
    found
}

/// All readings of a parameter among these.
fn add_parameters(list: &[(&[u8], &[u8])], name: &str, found: &mut Vec<Vec<u8>>) {
    let mut parts = Vec::new();
    for (key, text) in list {
        let key = key.to_ascii_lowercase();
        let Some(rest) = key.strip_prefix(name.as_bytes()) else { continue };
        match rest {
            b"" => readings(text, found),
            b"*" => extended(text, found),
            [b'*', section @ ..] => parts.push((section.to_vec(), *text)),
            _ => {}
        }
    }
    continued(parts, found);
}

/// The readings of the last segment of a path in a request target that names something: `/a.jsp/`, `/a.jsp/.` and `/a.jsp/;x=y` are
/// `/a.jsp` for some servers.
#[must_use]
pub fn path_names(path: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = path.rsplit(|byte| *byte == b'/').peekable();
    let last = segments.peek().copied().unwrap_or_default();
    let segment = segments.find(|segment| names_something(segment)).unwrap_or(last);
    let mut found = whole_names(segment);
    // Without its parameters.
    if let Some(end) = memchr::memchr(b';', segment) {
        whole_names(segment.get(..end).unwrap_or_default()).into_iter().for_each(|name| add(&mut found, name));
    }
    found
}

/// Whether a segment of a path is more than dots, blanks and parameters. `..` is another folder.
fn names_something(segment: &[u8]) -> bool {
    let plain = percent(&percent(segment));
    let name = plain.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    name == b".." || name.iter().any(|byte| !matches!(byte, 0..=b' ' | b'.' | b'/' | b'\\' | 0x7f))
}

/// The readings of a header that is a name, with its path: as it was sent, and with percent escapes undone once and twice.
#[must_use]
pub fn whole_names(name: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let once = percent(name);
    add(&mut found, name.to_vec());
    add(&mut found, percent(&once));
    add(&mut found, once);
    found
}

fn add(found: &mut Vec<Vec<u8>>, name: Vec<u8>) {
    add_within(MAX_NAMES, found, name);
}

/// Adds a name unless it is there, to at most so many; then one that is not read.
pub(crate) fn add_within(most: usize, found: &mut Vec<Vec<u8>>, mut name: Vec<u8>) {
    if let Some(more) = name.len().checked_sub(MAX_NAME).filter(|more| *more > 0) {
        let unread = memchr::memmem::find(&name, UNREAD).is_some();
        name.drain(..more);
        if unread {
            add_within(most, found, UNREAD.to_vec());
        }
    }
    if name.is_empty() || found.contains(&name) {
        return;
    }
    if found.len() < most {
        found.push(name);
    } else if found.len() == most && !found.iter().any(|name| name == UNREAD) {
        // A name that is not kept may be the one that counts.
        found.push(UNREAD.to_vec());
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
pub(crate) fn without_escapes(name: &[u8]) -> Vec<u8> {
    let mut parts = name.split(|byte| *byte == 0x1b);
    let mut plain = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let length = part.iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
        plain.extend_from_slice(part.get(length + 1..).unwrap_or_default());
    }
    plain
}

/// Whether a byte is a quote to any parser.
fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// The parameters behind the first `;`: names, and values with their quotes.
fn parameters(value: &[u8], quotes: impl Fn(u8) -> bool) -> Vec<(&[u8], &[u8])> {
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
        let length = value_length(text, &quotes);
        list.push((key, text.get(..length).unwrap_or_default().trim_ascii()));
        rest = text.get(length..).unwrap_or_default();
        rest = rest.strip_prefix(b";").unwrap_or(rest);
    }
    list
}

/// How long a value is: to the `;` that is not in quotes.
fn value_length(text: &[u8], quotes: impl Fn(u8) -> bool) -> usize {
    let quote = text.first().copied().filter(|byte| quotes(*byte));
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
    let quote = text.first().copied().filter(|byte| is_quote(*byte));
    let inner = match quote {
        Some(quote) => {
            let inside = text.get(1..).unwrap_or_default();
            // The first quote that is not escaped; for others the first quote at all.
            let first = memchr::memchr(quote, inside).unwrap_or(inside.len());
            add_decoded(inside.get(..first).unwrap_or_default(), found);
            let last = value_length(text, is_quote).saturating_sub(1).min(inside.len());
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
    for (whole, padded) in [(true, true), (true, false), (false, true), (false, false)] {
        // Without words, there are none in any reading.
        let Some(words) = encoded_words(name, whole, padded) else { continue };
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

/// An encoded word.
struct Word {
    /// How long it is, with the marks around it.
    length: usize,
    /// What it stands for; `None` if that cannot be decoded.
    text: Option<Vec<u8>>,
}

/// The encoded word (RFC 2047) that a text begins with behind its `=?`. With `whole`, it has no `?` in it, as the RFC has it; some decoders
/// read it to the next `?=`. With `padded`, `=` ends base64 and a digit too many spoils it; some decoders read on.
fn word(text: &[u8], whole: bool, padded: bool) -> Option<Word> {
    let end = memchr::memchr(b'?', text)?;
    // A language may follow the character set (RFC 2231, section 5).
    let charset = text.get(..end)?.split(|byte| *byte == b'*').next().unwrap_or_default();
    let [encoding @ (b'b' | b'B' | b'q' | b'Q'), b'?', behind @ ..] = text.get(end + 1..)? else { return None };
    let length = match whole {
        true => memchr::memchr(b'?', behind).filter(|at| behind.get(at + 1) == Some(&b'=')),
        false => memchr::memmem::find(behind, b"?="),
    }?;
    let content = behind.get(..length)?;
    let decoded = match encoding {
        b'b' | b'B' if padded => base64(content).or_else(|| base64(&only_base64(content))),
        b'b' | b'B' => {
            let mut digits = only_base64(content);
            digits.retain(|byte| *byte != b'=');
            base64(&digits).or_else(|| base64(digits.split_last().map(|(_, whole)| whole)?))
        }
        _ => {
            let spaced: Vec<u8> = content.iter().map(|byte| if *byte == b'_' { b' ' } else { *byte }).collect();
            Some(crate::base64::quoted_printable(&spaced))
        }
    };
    let unread = if is_read(charset) { b"".as_slice() } else { UNREAD };
    Some(Word { length: 2 + end + 3 + length + 2, text: decoded.map(|decoded| [unread, &decoded].concat()) })
}

/// A name with its encoded words decoded; `None` if there are none. What is no word, and what cannot be decoded, stays as it is.
fn encoded_words(text: &[u8], whole: bool, padded: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    // What is not decoded begins at `from`, and the next word is looked for from `at` on.
    let (mut from, mut at, mut any) = (0, 0, false);
    // Where no word ends any more, none is looked for to the end of the text once more.
    let last = if whole { text.len() } else { memchr::memmem::rfind(text, b"?=").unwrap_or(0) };
    while let Some(start) = memchr::memmem::find(text.get(at..).unwrap_or_default(), b"=?") {
        let start = at + start;
        at = start + 2;
        if start > last {
            break;
        }
        match word(text.get(at..).unwrap_or_default(), whole, padded) {
            Some(Word { length, text: Some(word) }) => {
                decoded.extend_from_slice(text.get(from..start).unwrap_or_default().trim_ascii());
                decoded.extend(word);
                (from, at, any) = (start + length, start + length, true);
            }
            // Words within it are found in the other reading.
            Some(Word { length, .. }) if !whole => at = start + length,
            _ => {}
        }
    }
    decoded.extend_from_slice(text.get(from..).unwrap_or_default());
    any.then_some(decoded)
}
