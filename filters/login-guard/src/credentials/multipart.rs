//! `multipart/form-data` (RFC 7578).
//!
//! Backends differ in what they take for the end of a line, a header or a part, and in which of several parameters they take. What ordinary
//! clients send is read in one way. In anything else all that some backend may see is taken, and the body is odd.

use memchr::memmem;

use super::charset::Charset;
use super::media::candidates;
use super::{Credentials, Fields, transfer};

/// The most parts that are read, for each boundary.
const MAX_PARTS: usize = 64;
/// The longest boundary, in bytes (RFC 2046, section 5.1.1), and the longest that is read.
const MAX_BOUNDARY: (usize, usize) = (70, 1024);
/// The most headers of one name that are read of a part.
const MAX_HEADERS: usize = 4;
/// The most boundaries that are tried.
const MAX_BOUNDARIES: usize = 4;
const BLANK_LINE: &[u8] = b"\r\n\r\n";

pub(super) fn read(content_type: &[u8], body: &[u8], fields: &Fields, found: &mut Credentials) {
    let boundaries = candidates(content_type, b"boundary", true);
    let mut values = boundaries.values.iter().filter(|value| (1..=MAX_BOUNDARY.1).contains(&value.len()));
    let mut is_read = false;
    for boundary in values.by_ref().take(MAX_BOUNDARIES) {
        is_read = true;
        found.odd |= boundary.len() > MAX_BOUNDARY.0;
        parts(&[b"--", boundary.as_slice()].concat(), body, fields, found);
    }
    found.odd |= !is_read || boundaries.is_odd;
    // No ordinary client has several boundaries.
    found.hides |= boundaries.values.len() > 1 || boundaries.has_more;
}

fn parts(delimiter: &[u8], body: &[u8], fields: &Fields, found: &mut Credentials) {
    let mut places = memmem::find_iter(body, delimiter).peekable();
    // In front of the first part there may be an end of a line.
    let preamble = places.peek().map_or(body, |first| body.get(..*first).unwrap_or_default());
    found.odd |= !matches!(preamble, b"" | b"\r\n");
    let mut number = 0;
    while let Some(at) = places.next() {
        let (before, behind) = body.split_at_checked(at).unwrap_or_default();
        let behind = behind.get(delimiter.len()..).unwrap_or_default();
        let end = places.peek().map(|next| next.saturating_sub(at).saturating_sub(delimiter.len()));
        if behind.starts_with(b"--") {
            if behind.get(2..).unwrap_or_default().trim_ascii().is_empty() {
                return;
            }
            // What is behind the end is read by some.
            found.odd = true;
        } else {
            found.odd |= !behind.starts_with(b"\r\n");
        }
        found.odd |= !(before.is_empty() || before.ends_with(b"\r\n"));
        number += 1;
        if number > MAX_PARTS {
            (found.odd, found.hides) = (true, true);
            return;
        }
        part(behind.get(..end.unwrap_or(behind.len())).unwrap_or_default(), fields, found);
    }
    // A form without its end.
    found.odd = true;
}

/// Takes the field of a part, which begins with the end of the delimiter's line. What is a file for some is a field for others.
fn part(part: &[u8], fields: &Fields, found: &mut Credentials) {
    let ordinary = memmem::find(part, BLANK_LINE).map(|at| (at, at.saturating_add(BLANK_LINE.len())));
    let first = blank_line(part);
    if first != ordinary {
        found.odd = true;
    }
    let ends = [ordinary, first.filter(|_| first != ordinary)];
    let mut is_read = false;
    for (end, begin) in ends.into_iter().flatten() {
        let (head, value) = (part.get(..end).unwrap_or_default(), part.get(begin..).unwrap_or_default());
        field(head, without_end(value), fields, found);
        is_read = true;
    }
    found.odd |= !is_read;
}

/// Where the first line without anything in it is, whatever ends a line: its beginning, with the end of the line before, and its end.
fn blank_line(text: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    // Where the end of the last line begins, if nothing else came since.
    let mut ended: Option<usize> = None;
    while let Some(byte) = text.get(at) {
        let length = match (byte, text.get(at.saturating_add(1))) {
            (b'\r', Some(b'\n')) => 2,
            (b'\r' | b'\n', _) => 1,
            _ => 0,
        };
        let next = at.saturating_add(length.max(1));
        match ended {
            Some(end) if length > 0 => return Some((end, next)),
            _ => ended = (length > 0).then_some(at),
        }
        at = next;
    }
    None
}

fn without_end(value: &[u8]) -> &[u8] {
    let ends: [&[u8]; 3] = [b"\r\n", b"\n", b"\r"];
    ends.iter().find_map(|end| value.strip_suffix(*end)).unwrap_or(value)
}

/// What the headers of a part say.
#[derive(Default)]
struct Head {
    /// What may be its name.
    names: Vec<Vec<u8>>,
    /// It is a file without a name, which is no field.
    is_nameless: bool,
    dispositions: usize,
    encodings: Vec<Vec<u8>>,
}

fn field(head: &[u8], value: &[u8], fields: &Fields, found: &mut Credentials) {
    let read = headers(head, found);
    if read.dispositions != 1 || (read.names.is_empty() && !read.is_nameless) {
        found.odd = true;
    }
    let mut values = vec![value.to_vec()];
    for encoding in &read.encodings {
        match transfer::values(encoding, value) {
            Some(more) => {
                found.odd |= !more.is_empty();
                values.extend(more);
            }
            None => (found.odd, found.hides) = (true, true),
        }
    }
    for name in &read.names {
        values.iter().for_each(|value| fields.take((b"part", head), name, value, found));
    }
}

/// Reads the headers of a part. Other backends than those that know RFC 5322 take a line for the rest of the one before if it has no colon.
fn headers(head: &[u8], found: &mut Credentials) -> Head {
    let mut read = Head::default();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    found.odd |= head.contains(&0);
    for line in head.split(|byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.trim_ascii().is_empty()) {
        let is_more = line.first().is_some_and(u8::is_ascii_whitespace) || !line.contains(&b':');
        match lines.last_mut().filter(|_| is_more) {
            Some(before) => {
                found.odd = true;
                before.extend_from_slice(line);
            }
            None => lines.push(line.to_vec()),
        }
    }
    for line in &lines {
        if read.dispositions.max(read.encodings.len()) > MAX_HEADERS {
            (found.odd, found.hides) = (true, true);
            break;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default().trim_ascii());
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"content-disposition" => {
                let names = candidates(value, b"name", false);
                found.odd |= names.is_odd;
                found.hides |= names.has_more;
                read.dispositions += 1;
                read.is_nameless |= memmem::find(&value.to_ascii_lowercase(), b"filename").is_some();
                read.names.extend(names.values);
            }
            b"content-transfer-encoding" => {
                let encoding = value.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next().unwrap_or_default();
                read.encodings.push(encoding.to_vec());
            }
            b"content-type" => {
                let is_parts = value.get(..10).is_some_and(|media| media.eq_ignore_ascii_case(b"multipart/"));
                if is_parts || Charset::of(value) != Charset::Usual {
                    (found.odd, found.hides) = (true, true);
                }
            }
            _ => {}
        }
    }
    read
}
