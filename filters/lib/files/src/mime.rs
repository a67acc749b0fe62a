//! Multipart bodies but `multipart/form-data` (RFC 2046, section 5.1): `multipart/mixed` within a form, `multipart/related`, `digest`.
//!
//! Forms have a stricter reader, which rules and this share (`seclang::body::multipart`). What these bodies have in common is the
//! boundary alone, and the parts have any headers.

use memchr::memmem;

use crate::base64::whole_base64;
use crate::{disposition, quoted_printable};

/// The most parts of a body.
const MAX_PARTS: usize = 1000;
/// The longest head of a part, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The most headers of a part.
const MAX_HEADERS: usize = 64;
/// The longest boundary, in bytes.
const MAX_BOUNDARY: usize = 256;
/// How many bytes behind the head of a part are compared, of a coded body with the decoded one.
const BEGINNING: usize = 256;
/// The name of the parameter with the boundary.
const PARAMETER: &[u8] = b"boundary";

/// A part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The names of its file, in every reading; empty if it has none.
    pub names: Vec<Vec<u8>>,
    /// The value of its `Content-Type`; empty if it has none.
    pub content_type: Vec<u8>,
    /// Its content, with the transfer encoding undone where that is possible.
    pub content: Vec<u8>,
    /// Its content as it was sent, where the transfer encoding was undone: some applications do not undo it.
    pub raw: Option<Vec<u8>>,
    /// The transfer encoding is not known, or the content is not what it says.
    pub undecodable: bool,
    /// The value of its `Content-Encoding`; empty if it has none.
    pub coding: Vec<u8>,
    /// Its `Content-Disposition` says that it is a file ([`is_attachment`]).
    pub attachment: bool,
    /// The boundary behind it is there.
    pub complete: bool,
}

/// Whether a media type is a multipart one.
#[must_use]
pub fn is_multipart(content_type: &[u8]) -> bool {
    content_type.trim_ascii_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

/// The boundary that a multipart type names, where all applications read the same one: a single parameter, directly behind a `;`,
/// with the characters of a boundary alone (RFC 2046, section 5.1.1). Some applications take the first of two parameters, others the
/// last one; some look for the parameter within quotes, and some end a value at a comma.
///
/// # Errors
/// Why there is none.
pub fn boundary(content_type: &[u8]) -> Result<&[u8], &'static str> {
    let lower = content_type.to_ascii_lowercase();
    let is_parameter = |at: &usize| {
        let behind = lower.get(at + PARAMETER.len()..).unwrap_or_default().trim_ascii_start();
        matches!(behind.first(), Some(b'=' | b'*'))
    };
    let mut places = memmem::find_iter(&lower, PARAMETER).filter(is_parameter);
    let place = places.next().ok_or("the type names no boundary")?;
    if places.next().is_some() {
        return Err("the type names more than one boundary");
    }
    let before = content_type.get(..place).unwrap_or_default().trim_ascii_end();
    let value = content_type.get(place + PARAMETER.len()..).and_then(|behind| behind.strip_prefix(b"="));
    let Some(value) = value.filter(|_| before.ends_with(b";")) else {
        return Err("the parameter with the boundary is malformed");
    };
    let (boundary, allowed): (_, fn(u8) -> bool) = match value.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = memchr::memchr(b'"', quoted).ok_or("the quotes of the boundary do not end")?;
            let behind = quoted.get(end + 1..).unwrap_or_default().trim_ascii_start();
            if !behind.is_empty() && !behind.starts_with(b";") {
                return Err("the parameter with the boundary is malformed");
            }
            (quoted.get(..end).unwrap_or_default(), is_quoted_byte)
        }
        None => (value.split(|byte| *byte == b';').next().unwrap_or_default(), is_boundary_byte),
    };
    if boundary.len() > MAX_BOUNDARY {
        return Err("the boundary is too long");
    }
    if boundary.is_empty() || boundary.ends_with(b" ") || !boundary.iter().all(|byte| allowed(*byte)) {
        return Err("the boundary is empty, or has characters that no boundary has");
    }
    Ok(boundary)
}

/// The characters of a boundary that no parser ends an unquoted value at.
fn is_boundary_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'+' | b'_' | b'-' | b'.' | b'/' | b':' | b'=')
}

fn is_quoted_byte(byte: u8) -> bool {
    is_boundary_byte(byte) || matches!(byte, b' ' | b'(' | b')' | b',' | b'?')
}

/// The parts of a body.
///
/// # Errors
/// Why it cannot be read, or not in one way only: no boundary, none of the parts that it names, too many parts, lines in front of the
/// parts or behind them that may be another boundary, malformed headers. `complete` is false where the end of the body is missing.
pub fn parts(content_type: &[u8], body: &[u8], complete: bool) -> Result<Vec<Part>, &'static str> {
    let delimiter = [b"--", boundary(content_type)?].concat();
    let mut places = memmem::find_iter(body, &delimiter);
    let mut list = Vec::new();
    let first = places.next();
    foreign(body.get(..first.unwrap_or(body.len())).unwrap_or_default(), complete || first.is_some())?;
    let Some(mut start) = first else {
        return if complete { Err("the body has no part") } else { Ok(list) };
    };
    loop {
        if start > 0 && body.get(start - 1) != Some(&b'\n') {
            return Err("a boundary is not at the start of a line");
        }
        let behind = start + delimiter.len();
        let rest = body.get(behind..).unwrap_or_default();
        if let Some(epilogue) = rest.strip_prefix(b"--") {
            let ends = matches!(epilogue, [] | [b'\n', ..] | [b'\r', b'\n', ..]) || epilogue == b"\r" && !complete;
            if !ends {
                return Err("characters follow the last boundary");
            }
            foreign(epilogue, complete)?;
            return Ok(list);
        }
        if list.len() == MAX_PARTS {
            return Err("the body has more than 1000 parts");
        }
        let next = places.next();
        let inner = body.get(behind..next.unwrap_or(body.len())).unwrap_or_default();
        let cut = next.is_none() && !complete;
        match inner {
            [b'\n', ..] | [b'\r', b'\n', ..] => list.push(part(inner, next.is_some())?),
            // The body is cut off within the line.
            [] | [b'\r'] | [b'-'] if cut => return Ok(list),
            _ => return Err("characters follow a boundary"),
        }
        match next {
            Some(at) => start = at,
            None if complete => return Err("the body does not end with its boundary"),
            None => return Ok(list),
        }
    }
}

/// Lines outside of the parts that an application may take for a boundary. `whole` is false where the last line may be cut off.
fn foreign(text: &[u8], whole: bool) -> Result<(), &'static str> {
    let mut lines = text.split(|byte| matches!(byte, b'\r' | b'\n')).peekable();
    while let Some(line) = lines.next() {
        let cut = !whole && lines.peek().is_none();
        let like = line.strip_prefix(b"--").and_then(<[u8]>::first).is_some_and(|byte| is_boundary_byte(*byte));
        if like && !cut {
            return Err("a line outside of the parts looks like another boundary");
        }
    }
    Ok(())
}

/// A part: the end of the line with the boundary, its headers, an empty line, its content.
fn part(bytes: &[u8], complete: bool) -> Result<Part, &'static str> {
    let crlf = bytes.starts_with(b"\r\n");
    let text = bytes.get(if crlf { 2 } else { 1 }..).unwrap_or_default();
    let mut part = Part { complete, ..Part::default() };
    let Some((headers, content)) = head(text, crlf, complete)? else { return Ok(part) };
    let mut encoding = Vec::new();
    let mut seen: [bool; 4] = [false; 4];
    for (name, value) in headers {
        let [disposition, kind, transfer, coding] = &mut seen;
        let known = match name.as_slice() {
            b"content-disposition" => {
                part.attachment = is_attachment(&value);
                add(&mut part.names, disposition::names(&value, "filename"));
                disposition
            }
            b"content-type" => {
                add(&mut part.names, disposition::names(&value, "name"));
                part.content_type = value;
                kind
            }
            b"content-transfer-encoding" => {
                encoding = value.trim_ascii().to_ascii_lowercase();
                transfer
            }
            b"content-encoding" => {
                part.coding = value;
                coding
            }
            _ => continue,
        };
        if std::mem::replace(known, true) {
            return Err("a part has a header twice");
        }
    }
    let content = if complete { without_line_end(content) } else { content };
    match decoded(&encoding, content, complete) {
        Some(decoded) => (part.content, part.raw) = (decoded, Some(content.to_vec())),
        None => {
            part.undecodable = !is_plain(&encoding);
            part.content = content.to_vec();
        }
    }
    Ok(part)
}

/// Whether a `Content-Transfer-Encoding` leaves the content as it is (RFC 2045, section 6.2).
#[must_use]
pub fn is_plain(encoding: &[u8]) -> bool {
    let plain: [&[u8]; 5] = [b"", b"7bit", b"8bit", b"binary", b"identity"];
    plain.iter().any(|known| encoding.trim_ascii().eq_ignore_ascii_case(known))
}

/// Whether a `Content-Disposition` says that a part is a file: `attachment` (RFC 2183), or `file` as the parts of old forms have it
/// (RFC 2388, section 4.2).
#[must_use]
pub fn is_attachment(disposition: &[u8]) -> bool {
    let kind = disposition.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"attachment") || kind.eq_ignore_ascii_case(b"file")
}

/// Undoes a `Content-Transfer-Encoding`; `None` if there is nothing to undo, or if it cannot be undone. `complete` is false where the
/// content may be cut off within a group of base64.
#[must_use]
pub fn decoded(encoding: &[u8], content: &[u8], complete: bool) -> Option<Vec<u8>> {
    match encoding {
        encoding if encoding.eq_ignore_ascii_case(b"base64") => match whole_base64(content) {
            None if !complete => whole_base64(content.split_last()?.1),
            decoded => decoded,
        },
        encoding if encoding.eq_ignore_ascii_case(b"quoted-printable") => Some(quoted_printable(content)),
        _ => None,
    }
}

/// Whether the bytes of a coded body hold parts with this boundary that are not in the decoded body: applications that do not undo codings
/// would take them. Parts that are in both, head and beginning, are stored in the coding as they are.
#[must_use]
pub fn hides_parts(boundary: &[u8], coded: &[u8], complete: bool, decoded: &[u8]) -> bool {
    let delimiter = [b"--", boundary].concat();
    let mut rest = decoded;
    let mut places = memmem::find_iter(coded, &delimiter).peekable();
    while let Some(at) = places.next() {
        let next = places.peek().copied();
        let text = coded.get(at..next.unwrap_or(coded.len())).unwrap_or_default();
        if text.get(delimiter.len()..).unwrap_or_default().starts_with(b"--") {
            continue;
        }
        let ends = [b"\r\n\r\n".as_slice(), b"\n\n"].into_iter().filter_map(|end| memmem::find(text, end));
        let head = ends.min().unwrap_or_default();
        let Some(start) = text.get(..head + BEGINNING).or_else(|| (next.is_some() || complete).then_some(text)) else {
            continue;
        };
        let Some(found) = memmem::find(rest, start) else { return true };
        rest = rest.get(found + start.len()..).unwrap_or_default();
    }
    false
}

fn add(names: &mut Vec<Vec<u8>>, more: Vec<Vec<u8>>) {
    names.extend(more.into_iter().filter(|name| !name.is_empty()));
}

/// Names in lower case, and values, unfolded.
type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// The headers, and what follows the empty line behind them; `None` where the part is cut off before that line, or has nothing at all.
/// All lines end as the line with the boundary does: applications differ in what ends a head of mixed lines.
fn head(text: &[u8], crlf: bool, complete: bool) -> Result<Option<(Headers, &[u8])>, &'static str> {
    let mut list: Headers = Vec::new();
    let mut rest = text;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, behind) = rest.split_at_checked(end).unwrap_or((rest, b""));
        rest = behind.get(1..).unwrap_or_default();
        let line = match line.strip_suffix(b"\r") {
            Some(line) if crlf => line,
            None if !crlf => line,
            _ => return Err("the lines of a part's head end in different ways"),
        };
        if line.is_empty() {
            return Ok(Some((list, rest)));
        }
        if text.len() - rest.len() > MAX_HEAD {
            return Err("the head of a part is too long");
        }
        header(line, &mut list)?;
    }
    match text.is_empty() || !complete && rest.len() <= MAX_HEAD {
        true => Ok(None),
        false => Err("the head of a part does not end"),
    }
}

/// Takes a line of a head.
fn header(line: &[u8], list: &mut Headers) -> Result<(), &'static str> {
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("a header of a part has control characters");
    }
    if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        let (_, value) = list.last_mut().ok_or("the head of a part begins with a folded line")?;
        value.push(b' ');
        value.extend_from_slice(line.trim_ascii());
        return Ok(());
    }
    if list.len() == MAX_HEADERS {
        return Err("a part has more than 64 headers");
    }
    let colon = memchr::memchr(b':', line).ok_or("a header of a part has no colon")?;
    let (name, value) = line.split_at_checked(colon).unwrap_or((line, b""));
    // Some applications take a name with blanks around it for the same name, others for another one.
    if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
        return Err("the name of a part's header has characters that no name has");
    }
    list.push((name.to_ascii_lowercase(), value.get(1..).unwrap_or_default().trim_ascii().to_vec()));
    Ok(())
}

fn without_line_end(content: &[u8]) -> &[u8] {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    content.strip_suffix(b"\r").unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &[u8] = b"multipart/mixed; boundary=cut";

    fn fails(body: &str) -> bool {
        parts(KIND, body.as_bytes(), true).is_err()
    }

    #[test]
    fn one_boundary_is_read_in_one_way() {
        for (kind, expected) in [
            ("multipart/mixed; boundary=a", Some("a")),
            ("Multipart/Mixed; type=\"text/xml\";Boundary=\"uuid:1+id=2\"; start=\"<x>\"", Some("uuid:1+id=2")),
            ("multipart/related; boundary=----=_Part_1_2.3; type=\"text/xml\"", Some("----=_Part_1_2.3")),
            ("multipart/related; boundary=MIME_boundary; type=x", Some("MIME_boundary")),
            ("multipart/related; boundary=\"===============7==\"", Some("===============7==")),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=zz; boundary=a", None),
            ("multipart/mixed; type=\"x; boundary=zz\"; boundary=a", None),
            ("multipart/mixed; boundary=zz; BOUNDARY*=a", None),
            ("multipart/mixed; boundary*0=z; boundary*1=a", None),
            ("multipart/mixed,; boundary=a,b", None),
            ("multipart/mixed, boundary=a", None),
            ("multipart/mixed; xboundary=a", None),
            ("multipart/mixed; boundary =a", None),
            ("multipart/mixed; boundary= a", None),
            ("multipart/mixed; boundary=a b", None),
            ("multipart/mixed; boundary=\"a\"b", None),
            ("multipart/mixed; boundary=\"a", None),
            ("multipart/mixed; boundary=a\\b", None),
            ("multipart/mixed; boundary=", None),
        ] {
            assert_eq!(boundary(kind.as_bytes()).ok(), expected.map(str::as_bytes), "{kind}");
        }
    }

    #[test]
    fn bodies_that_can_be_read_in_two_ways_are_not_read() {
        let whole = "\r\n--cut\r\nA: b\r\n\r\nx\r\n--cut--\r\n";
        assert!(!fails(whole) && !fails(&format!("This is a message.\r\n-- \r\n{whole}end\r\n")));
        assert!(!fails("--cut\nA: b\n\nx\n--cut--") && !fails("--cut\r\n\r\n--cut--\r\n"));
        assert!(fails(&format!("--zz\r\n{whole}")), "another boundary in front of the parts");
        assert!(fails(&format!("a\r--zz{whole}")));
        assert!(fails(&format!("{whole}--zz\r\n")), "another boundary behind the parts");
        assert!(fails(&format!("{whole}--cut\r\n")));
        for body in [
            "--cut\r\nA: b\r\n\r\nx\r\n--cut1\r\n\r\n\r\n--cut--",
            "--cut\r\nA: b\r\n\r\nx\r\n--cut--x",
            "--cut \r\nA: b\r\n\r\nx\r\n--cut--",
            "--cut\r\nA: b\r\n\r\nx\r--cut\r\n\r\n--cut--",
            "--cut\r\nA: b\r\n\r\nx --cut--",
            "--cut\r\nA: b\n\nContent-Disposition: form-data; filename=\"a.php\"\r\n\r\nx\r\n--cut--",
            "--cut\r\nA: b\rC: d\r\n\r\nx\r\n--cut--",
            "--cut\r\nA: b\r\n--cut--",
            "--cut\r\nno colon\r\n\r\nx\r\n--cut--",
            "--cut\r\n folded: b\r\n\r\nx\r\n--cut--",
            "--cut\r\nContent-Type : a/b\r\n\r\nx\r\n--cut--",
            "--cut\r\nContent-Type\u{a0}: a/b\r\n\r\nx\r\n--cut--",
            "--cut\r\n: a/b\r\n\r\nx\r\n--cut--",
            "--cut\r\nContent-Encoding: gzip\r\ncontent-encoding: identity\r\n\r\nx\r\n--cut--",
            "--cut\r\nContent-Type: a/b\r\ncontent-type: c/d\r\n\r\nx\r\n--cut--",
        ] {
            assert!(fails(body), "{body:?}");
        }
        let many = |count: usize| format!("--cut\r\n{}\r\nx\r\n--cut--", "A: b\r\n".repeat(count));
        assert!(!fails(&many(64)) && fails(&many(65)));
        assert!(fails(&format!("--cut\r\nA: {}\r\n\r\nx\r\n--cut--", "b".repeat(MAX_HEAD))));
    }

    #[test]
    fn a_body_may_be_cut_off_anywhere() {
        let body = b"text\r\n--cut\r\nA: b\r\n c\r\n\r\nx\r\n--cut\r\n\r\ny\r\n--cut--\r\nend";
        for length in 0..body.len() {
            assert!(parts(KIND, &body[..length], false).is_ok(), "{length}");
        }
    }

    #[test]
    fn encoded_content_is_there_in_both_forms() {
        let of = |encoding: &str, content: &str| {
            let body = format!("--cut\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{content}\r\n--cut--");
            parts(KIND, body.as_bytes(), true).unwrap().remove(0)
        };
        let part = of("base64", "aGVsbG8=");
        assert_eq!((part.content.as_slice(), part.raw.as_deref()), (b"hello".as_slice(), Some(b"aGVsbG8=".as_slice())));
        let part = of("quoted-printable", "=41");
        assert_eq!((part.content.as_slice(), part.raw.as_deref()), (b"A".as_slice(), Some(b"=41".as_slice())));
        let part = of("8bit", "x");
        assert_eq!((part.content.as_slice(), part.raw, part.undecodable), (b"x".as_slice(), None, false));
        assert_eq!(decoded(b"base64", b"aGVsb", false).as_deref(), Some(b"hel".as_slice()));
        assert_eq!((decoded(b"base64", b"aGVsb", true), decoded(b"base64", b"", false)), (None, Some(Vec::new())));
        assert!(of("base64", "<?php").undecodable && of("base64", "QQ==QQ==").undecodable);
        for encoding in ["x-uuencode", "uue", "gzip", "base64;", "base64 (x)", "utf-8"] {
            assert!(of(encoding, "aGVsbG8=").undecodable, "{encoding}");
        }
        assert!(!of("7BIT", "x").undecodable && !of("Binary", "x").undecodable && !of("", "x").undecodable);
    }

    #[test]
    fn coded_bodies_may_store_parts_but_hide_none() {
        let body = |name: &str, content: &str| {
            format!(
                "--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{content}\r\n--cut--\r\n"
            )
        };
        let honest = body("a.txt", &"x".repeat(300));
        let hides = |coded: &str, complete| hides_parts(b"cut", coded.as_bytes(), complete, honest.as_bytes());
        assert!(!hides("compressed", true));
        assert!(!hides(&format!("stored: {honest} and a sum"), true));
        assert!(!hides("compressed\r\n--cut--\r\n", true));
        assert!(hides(&body("a.php", "x"), true), "another name");
        assert!(hides(&body("a.txt", "<?php"), true), "another content");
        assert!(hides(&format!("{honest}{honest}"), true), "twice, where the body has it once");
        assert!(!hides(&honest[..20], false) && hides(&honest[..20].replace("Con", "con"), true));
        assert!(!hides_parts(b"cut", &b"--cut".repeat(100_000), true, &b"--cut".repeat(100_000)));
    }
}
