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
        return;
    };
    let delimiter = [b"--", boundary].concat();
    let mut rest = body;
    let mut at = memmem::find(rest, &delimiter);
    for _ in 0..MAX_PARTS {
        let Some(begin) = at else { return };
        rest = rest.get(begin.saturating_add(delimiter.len())..).unwrap_or_default();
        at = memmem::find(rest, &delimiter);
        let part = rest.get(..at.unwrap_or(rest.len())).unwrap_or_default();
        if let Some((name, value)) = field(part) {
            fields.take(name, value, found);
        }
    }
}

/// The name and the value of a part that is no file.
fn field(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memmem::find(part, b"\r\n\r\n")?;
    let (head, value) = (part.get(..end)?, part.get(end.saturating_add(4)..)?);
    let value = value.strip_suffix(b"\r\n").unwrap_or(value);
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let disposition =
        lines.find(|line| line.get(..20).is_some_and(|name| name.eq_ignore_ascii_case(b"content-disposition:")))?;
    if parameter(disposition, b"filename").is_some() {
        return None;
    }
    Some((parameter(disposition, b"name")?, value))
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
