//! Media types (RFC 9110, section 8.3.1).

use crate::record::MediaRecord;

/// The type of a form.
pub(crate) const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// A media type without its parameters, in lower case.
pub(crate) fn essence(text: &[u8]) -> Vec<u8> {
    let essence = text.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().to_ascii_lowercase()
}

/// Whether what has it is JSON (RFC 6839, section 3.1).
pub(crate) fn is_json(essence: &[u8]) -> bool {
    essence == b"application/json" || essence == b"text/json" || essence.ends_with(b"+json")
}

/// Whether backends agree on the type in a `content-type`: nothing, or a type and a subtype, without a `,` or a blank. Several headers are
/// joined by a `,`.
pub(crate) fn is_one_type(text: &[u8]) -> bool {
    let essence = essence(text);
    let is_token =
        |part: &[u8]| !part.is_empty() && part.iter().all(|byte| byte.is_ascii_graphic() && !OTHERS.contains(byte));
    match essence.iter().position(|byte| *byte == b'/') {
        Some(at) => {
            is_token(essence.get(..at).unwrap_or_default()) && is_token(essence.get(at + 1..).unwrap_or_default())
        }
        None => essence.is_empty(),
    }
}

/// Whether a `content-type` that is not JSON has JSON in its parameters: Laravel takes a body for JSON where `/json` or `+json` is anywhere
/// in the header. Of `multipart/related` the `type` does not count, which is that of its first part (RFC 2387).
pub(crate) fn hides_json(text: &[u8]) -> bool {
    let (lower, essence) = (text.to_ascii_lowercase(), essence(text));
    let is_type = |parameter: &[u8]| {
        let name = parameter.split(|byte| *byte == b'=').next().unwrap_or_default();
        essence == b"multipart/related" && name.trim_ascii() == b"type"
    };
    let has = |text: &[u8], part: &[u8]| memchr::memmem::find(text, part).is_some();
    let mut parameters = lower.split(|byte| *byte == b';').skip(1).filter(|parameter| !is_type(parameter));
    !is_json(&essence) && parameters.any(|parameter| has(parameter, b"/json") || has(parameter, b"+json"))
}

/// What a token has not (RFC 9110, section 5.6.2).
const OTHERS: &[u8] = b"\"(),/:;<=>?@[\\]{}";

/// The character sets of JSON that are read here: what is ASCII in one of them is so in all. Others are read by some backends.
const CHARSETS: [&[u8]; 6] = [b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1"];

/// The beginnings of the names of others in which what looks like ASCII is ASCII.
const ASCII_BASED: [&[u8]; 12] = [
    b"iso-8859-",
    b"iso8859-",
    b"windows-",
    b"cp125",
    b"koi8-",
    b"euc-",
    b"shift_jis",
    b"sjis",
    b"gb",
    b"big5",
    b"tis-620",
    b"macintosh",
];

/// Whether a media type names no other character set than those that JSON is read in.
pub(crate) fn is_readable(text: &[u8]) -> bool {
    has_charsets(text, |name| CHARSETS.contains(&name))
}

/// Whether a media type has no form in it in a character set in which names of fields are other bytes than those of ASCII (UTF-16, EBCDIC).
pub(crate) fn is_readable_form(text: &[u8]) -> bool {
    // Parsers cut a type at different bytes.
    let is_form = memchr::memmem::find(&text.to_ascii_lowercase(), FORM).is_some();
    let based = |name: &[u8]| CHARSETS.contains(&name) || ASCII_BASED.iter().any(|start| name.starts_with(start));
    !is_form || has_charsets(text, based)
}

/// Whether each character set of a media type is one of those. As parsers differ in what is a parameter, each `charset` counts that a
/// `=` or a `*` (RFC 2231) follows.
fn has_charsets(text: &[u8], is_one: impl Fn(&[u8]) -> bool) -> bool {
    const NAME: &[u8] = b"charset";
    let lower = text.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, NAME).all(|at| {
        let mark = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
        let behind = lower.get(at + NAME.len()..).unwrap_or_default();
        let blank = behind.iter().take_while(|byte| mark(byte)).count();
        match behind.get(blank..).and_then(<[u8]>::split_first) {
            Some((b'=', value)) => {
                let end = value.iter().position(|byte| matches!(byte, b';' | b',')).unwrap_or(value.len());
                let value = value.get(..end).unwrap_or_default().trim_ascii();
                let value = match value {
                    [b'"', inside @ .., b'"'] | [b'\'', inside @ .., b'\''] => inside.trim_ascii(),
                    other => other,
                };
                value.is_empty() || is_one(value)
            }
            Some((b'*', _)) => false,
            _ => true,
        }
    })
}

/// The entry that takes a media type: the most exact one. `ranges` are the texts of the entries.
pub(crate) fn find<'r>(essence: &[u8], media: &'r [MediaRecord], ranges: &[&[u8]]) -> Option<&'r MediaRecord> {
    let fit = |range: &[u8]| match range {
        b"*/*" | b"*" => 1,
        range if range == essence => 4,
        range => match range.strip_suffix(b"/*") {
            Some(kind) => usize::from(essence.strip_prefix(kind).is_some_and(|rest| rest.starts_with(b"/"))) * 2,
            // `application/*+json`
            None => match range.split(|byte| *byte == b'*').collect::<Vec<_>>().as_slice() {
                [before, behind] if range.contains(&b'*') => {
                    let long = essence.len() > before.len() + behind.len();
                    usize::from(long && essence.starts_with(before) && essence.ends_with(behind)) * 3
                }
                _ => 0,
            },
        },
    };
    let fits = media.iter().zip(ranges).map(|(entry, range)| (fit(range), entry));
    fits.filter(|(fit, _)| *fit > 0).max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry)
}
