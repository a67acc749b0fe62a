//! `multipart/form-data` (RFC 7578).

use memchr::memmem;

use super::{Credentials, Fields};

/// The most parts that are read.
const MAX_PARTS: usize = 64;
/// The longest boundary, in bytes (RFC 2046, section 5.1.1).
const MAX_BOUNDARY: usize = 70;

pub(super) fn read(content_type: &[u8], body: &[u8], fields: &Fields, found: &mut Credentials) {
    let Some(boundary) = parameter(content_type, b"boundary").filter(|found| (1..=MAX_BOUNDARY).contains(&found.len()))
    else {
        found.odd = true;
        return;
    };
    let delimiter = [b"--", boundary].concat();
    let mut rest = body;
    let mut at = begin_of(rest, &delimiter, true);
    for _ in 0..MAX_PARTS {
        let Some(begin) = at else {
            // A form without its end.
            found.odd = true;
            return;
        };
        rest = rest.get(begin.saturating_add(delimiter.len())..).unwrap_or_default();
        if let Some(behind) = rest.strip_prefix(b"--") {
            found.odd |= !behind.trim_ascii().is_empty();
            return;
        }
        at = begin_of(rest, &delimiter, false);
        match field(rest.get(..at.unwrap_or(rest.len())).unwrap_or_default()) {
            // What is a file for some is a field for others.
            Part::Field(head, name, value) => fields.take((b"part", head), name, value, found),
            Part::Nameless => {}
            Part::Odd => found.odd = true,
        }
    }
    (found.odd, found.hides) = (true, true);
}

/// Where a delimiter begins: at the start of a line, `first` also at the start of the body.
fn begin_of(text: &[u8], delimiter: &[u8], first: bool) -> Option<usize> {
    memmem::find_iter(text, delimiter).find(|at| match at.checked_sub(1) {
        Some(before) => text.get(before) == Some(&b'\n'),
        None => first,
    })
}

enum Part<'a> {
    /// Its headers, its name and its value; also of a file.
    Field(&'a [u8], &'a [u8], &'a [u8]),
    /// A file without a name.
    Nameless,
    /// It has no name that can be read.
    Odd,
}

fn field(part: &[u8]) -> Part<'_> {
    let Some(end) = memmem::find(part, b"\r\n\r\n") else { return Part::Odd };
    let (head, value) = (part.get(..end).unwrap_or_default(), part.get(end.saturating_add(4)..).unwrap_or_default());
    let value = value.strip_suffix(b"\r\n").unwrap_or(value);
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let is_disposition =
        |line: &&[u8]| line.get(..20).is_some_and(|name| name.eq_ignore_ascii_case(b"content-disposition:"));
    let Some(disposition) = lines.find(is_disposition) else { return Part::Odd };
    match parameter(disposition, b"name") {
        Some(name) => Part::Field(head, name, value),
        None if parameter(disposition, b"filename").is_some() => Part::Nameless,
        None => Part::Odd,
    }
}

/// The value of a parameter, without quotes. What is in quotes has no meaning of its own.
fn parameter<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let ends = |byte: &u8| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b';' => return !quoted,
            _ => {}
        }
        false
    };
    header.split(ends).skip(1).find_map(|parameter| {
        let mut halves = parameter.splitn(2, |byte| *byte == b'=');
        let (found, value) = (halves.next()?.trim_ascii(), halves.next()?.trim_ascii());
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        found.eq_ignore_ascii_case(name).then_some(unquoted)
    })
}
