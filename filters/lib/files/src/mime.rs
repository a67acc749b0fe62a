//! Multipart bodies but `multipart/form-data` (RFC 2046, section 5.1): `multipart/mixed` within a form, `multipart/related`, `digest`.
//!
//! Forms have a stricter reader, which rules and this share (`seclang::body::multipart`). What these bodies have in common is the
//! boundary alone, and the parts have any headers.

use memchr::memmem;

use crate::{base64, disposition, quoted_printable};

/// The most parts of a body.
const MAX_PARTS: usize = 1000;
/// The longest head of a part, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// A part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The names of its file, in every reading; empty if it has none.
    pub names: Vec<Vec<u8>>,
    /// The value of its `Content-Type`; empty if it has none.
    pub content_type: Vec<u8>,
    /// Its content, with the transfer encoding undone.
    pub content: Vec<u8>,
    /// The boundary behind it is there.
    pub complete: bool,
}

/// Whether a media type is a multipart one.
#[must_use]
pub fn is_multipart(content_type: &[u8]) -> bool {
    content_type.trim_ascii_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

/// The parts of a body.
///
/// # Errors
/// Why it cannot be read: no boundary, none of the parts that it names, too many parts. `complete` is false where the end of the body
/// is missing.
pub fn parts(content_type: &[u8], body: &[u8], complete: bool) -> Result<Vec<Part>, &'static str> {
    let boundary =
        disposition::names(content_type, "boundary").into_iter().next().ok_or("the type names no boundary")?;
    if boundary.len() > 256 {
        return Err("the boundary is too long");
    }
    let delimiter = [b"--", boundary.as_slice()].concat();
    let mut places = memmem::find_iter(body, &delimiter).filter(|at| *at == 0 || body.get(at - 1) == Some(&b'\n'));
    let mut list = Vec::new();
    let Some(first) = places.next() else {
        return if complete { Err("the body has no part") } else { Ok(list) };
    };
    let mut start = first;
    let mut ended = false;
    loop {
        let behind = start + delimiter.len();
        if body.get(behind..).unwrap_or_default().starts_with(b"--") {
            ended = true;
            break;
        }
        if list.len() == MAX_PARTS {
            return Err("the body has more than 1000 parts");
        }
        let next = places.next();
        let inner = body.get(behind..next.unwrap_or(body.len())).unwrap_or_default();
        list.push(part(inner, next.is_some()));
        match next {
            Some(at) => start = at,
            None => break,
        }
    }
    if complete && !ended {
        return Err("the body does not end with its boundary");
    }
    Ok(list)
}

/// A part: the rest of the line with the boundary, its headers, an empty line, its content.
fn part(bytes: &[u8], complete: bool) -> Part {
    let line = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    let text = bytes.get(line..).unwrap_or_default();
    let (head, content) = head(text);
    let mut part = Part { complete, ..Part::default() };
    let mut encoding = Vec::new();
    for (name, value) in headers(head) {
        match name.as_slice() {
            b"content-disposition" => add(&mut part.names, disposition::names(&value, "filename")),
            b"content-type" => {
                add(&mut part.names, disposition::names(&value, "name"));
                part.content_type = value;
            }
            b"content-transfer-encoding" => encoding = value.trim_ascii().to_ascii_lowercase(),
            _ => {}
        }
    }
    let content = if complete { without_line_end(content) } else { content };
    part.content = decoded(&encoding, content).unwrap_or_else(|| content.to_vec());
    part
}

/// Undoes a `Content-Transfer-Encoding`; `None` if there is nothing to undo, or if it cannot be undone.
#[must_use]
pub fn decoded(encoding: &[u8], content: &[u8]) -> Option<Vec<u8>> {
    match encoding {
        encoding if encoding.eq_ignore_ascii_case(b"base64") => base64(content),
        encoding if encoding.eq_ignore_ascii_case(b"quoted-printable") => Some(quoted_printable(content)),
        _ => None,
    }
}

fn add(names: &mut Vec<Vec<u8>>, more: Vec<Vec<u8>>) {
    names.extend(more.into_iter().filter(|name| !name.is_empty()));
}

/// The headers, and what follows the empty line behind them.
fn head(text: &[u8]) -> (&[u8], &[u8]) {
    for empty in [b"\r\n".as_slice(), b"\n"] {
        if let Some(content) = text.strip_prefix(empty) {
            return (b"", content);
        }
    }
    let reach = text.get(..MAX_HEAD).unwrap_or(text);
    let ends =
        [b"\r\n\r\n".as_slice(), b"\n\n"].into_iter().filter_map(|end| Some((memmem::find(reach, end)?, end.len())));
    match ends.min_by_key(|(at, _)| *at) {
        Some((at, length)) => text.split_at_checked(at + length).unwrap_or((text, b"")),
        None => (b"", text),
    }
}

/// Names in lower case, and values, unfolded.
fn headers(head: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in head.split(|byte| *byte == b'\n').take(64) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            if let Some((_, value)) = list.last_mut() {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        if let Some(colon) = memchr::memchr(b':', line) {
            let (name, value) = line.split_at_checked(colon).unwrap_or((line, b""));
            list.push((
                name.trim_ascii().to_ascii_lowercase(),
                value.get(1..).unwrap_or_default().trim_ascii().to_vec(),
            ));
        }
    }
    list
}

fn without_line_end(content: &[u8]) -> &[u8] {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    content.strip_suffix(b"\r").unwrap_or(content)
}
