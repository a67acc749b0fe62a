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
    let mut at = memmem::find(rest, &delimiter);
    for _ in 0..MAX_PARTS {
        let Some(begin) = at else { return };
        let is_last = rest.get(begin.saturating_add(delimiter.len())..).is_some_and(|rest| rest.starts_with(b"--"));
        rest = rest.get(begin.saturating_add(delimiter.len())..).unwrap_or_default();
        at = memmem::find(rest, &delimiter);
        let part = rest.get(..at.unwrap_or(rest.len())).unwrap_or_default();
        if is_last {
            return;
        }
        match field(part) {
            Part::Field(name, value) => fields.take(name, value, found),
            Part::File => {}
            Part::Odd => found.odd = true,
        }
    }
    found.odd = true;
}

enum Part<'a> {
    Field(&'a [u8], &'a [u8]),
    File,
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
        _ if parameter(disposition, b"filename").is_some() => Part::File,
        Some(name) => Part::Field(name, value),
        None => Part::Odd,
    }
}

/// The value of a parameter, without quotes.
fn parameter<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    header.split(|byte| *byte == b';').skip(1).find_map(|parameter| {
        let mut halves = parameter.splitn(2, |byte| *byte == b'=');
        let (found, value) = (halves.next()?.trim_ascii(), halves.next()?.trim_ascii());
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        found.eq_ignore_ascii_case(name).then_some(unquoted)
    })
}
