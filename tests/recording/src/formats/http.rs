//! One request as it is on the wire of HTTP/1.
//!
//! A reader of its own, since recorded attacks are malformed on purpose: a library would refuse most of them. What has no
//! place in a request is refused, with its line.

use std::io::Read;

use crate::json::unreadable;
use crate::shape::{self, Line};
use crate::traffic::{Exchange, Headers, Request};
use crate::{BadEntry, Entry, Input};

use super::too_long;

/// The request in a file.
pub(crate) fn read(mut input: Input) -> impl Iterator<Item = Result<Entry, BadEntry>> + Send {
    std::iter::once_with(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(input.limit).unwrap_or(u64::MAX);
        let read = (&mut input.bytes).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| input.bad(1, unreadable(&error)))?;
        if bytes.len() > input.limit {
            let rest = std::io::copy(&mut input.bytes, &mut std::io::sink()).unwrap_or(0);
            return Err(input.bad(1, too_long(limit.saturating_add(1).saturating_add(rest), input.limit)));
        }
        let mut notes = Vec::new();
        let request = request(bytes, &mut notes).map_err(|why| input.bad(1, why))?;
        let request = Request { peer: input.peer.clone(), ..request };
        let exchange = Exchange { request, ..Exchange::default() };
        Ok(Entry { place: input.place(1), at_millis: None, status: None, notes, exchange })
    })
}

/// The request that the bytes are. They are kept for engines with a socket where their lines end as on the wire.
fn request(bytes: Vec<u8>, notes: &mut Vec<String>) -> Result<Request, String> {
    let mut lines = Cut { rest: &bytes, line: 0, only_crlf: true };
    let mut first = lines.next_line().ok_or("line 1: there is no request line")?;
    while first.is_empty() {
        first = lines.next_line().ok_or("there is no request line, only empty lines")?;
    }
    let (method, target, version) = request_line(first).ok_or_else(|| {
        format!(
            "line {}: no request line: it needs a method, a target and a version, with blanks between them",
            lines.line
        )
    })?;
    let headers = headers(&mut lines, notes)?;
    let only_crlf = lines.only_crlf;
    let (body, trailers) = body(lines.rest, &headers, notes);
    let mut line = Line { method: method.to_vec(), ..Line::default() };
    let absolute = std::str::from_utf8(target).ok().and_then(shape::url);
    if method == b"CONNECT" {
        line.authority = Some(target.to_vec());
    } else if let Some(url) = absolute.filter(|_| !target.starts_with(b"/")) {
        line.authority = Some(url.authority.into());
        line.path = Some(url.path.into_bytes());
    } else {
        line.path = Some(target.to_vec());
    }
    let chunked = shape::value(&shape::lower(headers.clone()), "transfer-encoding").is_some();
    let mut headers = shape::request(line, headers);
    if !chunked && let Some(announced) = shape::fit_length(&mut headers, &body) {
        notes.push(format!("the body has {} bytes, {announced} were announced: the length is corrected", body.len()));
    }
    let wire = if only_crlf && notes.is_empty() { bytes.clone() } else { Vec::new() };
    let protocol = version.to_vec();
    Ok(Request { headers, body, trailers: shape::lower(trailers), protocol, wire, ..Request::default() })
}

/// Method, target and version. The target may have blanks. Without a version it is HTTP/0.9 where the target is a path: any
/// text of two words would be a request otherwise.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (method, rest) = split(line, |byte| byte == b' ' || byte == b'\t')?;
    let rest = rest.trim_ascii();
    let version_at = rest.iter().rposition(|&byte| byte == b' ').map(|at| at + 1);
    let (target, version) = match version_at.filter(|&at| rest[at..].starts_with(b"HTTP/")) {
        Some(at) => (rest[..at].trim_ascii_end(), &rest[at..]),
        None => (rest, b"HTTP/0.9".as_slice()),
    };
    let is_target = if version == b"HTTP/0.9" { target.starts_with(b"/") } else { !target.is_empty() };
    let whole = !method.is_empty() && is_target && !target.starts_with(b"HTTP/");
    whole.then_some((method, target, version))
}

fn headers(lines: &mut Cut<'_>, notes: &mut Vec<String>) -> Result<Headers, String> {
    let mut headers = Headers::new();
    while let Some(line) = lines.next_line().filter(|line| !line.is_empty()) {
        let number = lines.line;
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            let (_, value) = headers.last_mut().ok_or_else(|| format!("line {number}: it continues no header"))?;
            value.push(b' ');
            value.extend_from_slice(line.trim_ascii());
            notes.push(format!("line {number} continues a header; the two are joined"));
            continue;
        }
        let (name, value) = split(line, |byte| byte == b':')
            .ok_or_else(|| format!("line {number}: a header needs a colon; an empty line ends the headers"))?;
        if name.trim_ascii().is_empty() {
            return Err(format!("line {number}: a header needs a name before its colon"));
        }
        if name.trim_ascii().len() < name.len() {
            notes.push(format!("line {number} has blanks around the header's name, which are left out"));
        }
        headers.push((name.trim_ascii().to_vec(), value.trim_ascii().to_vec()));
    }
    Ok(headers)
}

/// The body and the trailers: chunks joined, cut to the length that is announced, or all that is left.
fn body(rest: &[u8], headers: &Headers, notes: &mut Vec<String>) -> (Vec<u8>, Headers) {
    let value = |wanted: &[u8]| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| String::from_utf8_lossy(value).trim().to_ascii_lowercase())
    };
    if value(b"transfer-encoding").is_some_and(|encoding| encoding.ends_with("chunked")) {
        return chunks(rest, notes);
    }
    match value(b"content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length < rest.len() => {
            if !rest[length..].iter().all(u8::is_ascii_whitespace) {
                notes.push(format!("{} bytes behind the body are left out", rest.len() - length));
            }
            (rest[..length].to_vec(), Headers::new())
        }
        // The line break that an editor leaves at the end of a file is no body.
        None if rest.iter().all(|byte| matches!(byte, b'\r' | b'\n')) => (Vec::new(), Headers::new()),
        _ => (rest.to_vec(), Headers::new()),
    }
}

/// What does not fit the grammar of chunks ends the body.
fn chunks(rest: &[u8], notes: &mut Vec<String>) -> (Vec<u8>, Headers) {
    let mut lines = Cut { rest, line: 0, only_crlf: true };
    let mut body = Vec::new();
    loop {
        let size = lines.next_line().and_then(|line| {
            let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
            usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        });
        match size {
            None => {
                notes.push("the last chunk is missing or none: what comes before it is the body".to_owned());
                return (body, Headers::new());
            }
            Some(0) => return (body, headers(&mut lines, notes).unwrap_or_default()),
            Some(size) if size > lines.rest.len() => {
                notes.push(format!("a chunk announces {size} bytes and has {}", lines.rest.len()));
                body.extend_from_slice(lines.rest);
                return (body, Headers::new());
            }
            Some(size) => {
                body.extend_from_slice(&lines.rest[..size]);
                lines.rest = &lines.rest[size..];
                let end = lines.next_line();
                if end.is_some_and(|end| !end.is_empty()) {
                    notes.push("a chunk is longer than it says: what is too much is left out".to_owned());
                }
            }
        }
    }
}

/// Cuts lines off, which end with LF or CRLF.
struct Cut<'a> {
    rest: &'a [u8],
    /// The number of the line that was cut off last.
    line: usize,
    /// No line ended with a mere LF.
    only_crlf: bool,
}

impl<'a> Cut<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let (line, rest) = split(self.rest, |byte| byte == b'\n').unwrap_or((self.rest, &[]));
        self.rest = rest;
        let bare = line.strip_suffix(b"\r");
        self.only_crlf &= bare.is_some();
        Some(bare.unwrap_or(line))
    }
}

fn split(bytes: &[u8], at: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let found = bytes.iter().position(|&byte| at(byte))?;
    Some((&bytes[..found], &bytes[found + 1..]))
}
