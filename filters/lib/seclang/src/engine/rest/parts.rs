//! The rest of a multipart body.
//!
//! Parts are not separated by the boundary, as parsers differ there. Whatever the boundary is, a field begins with a
//! head. The text behind the head of a file is content of the file, in which only texts are inspected; all other text
//! is inspected.

use super::{Escapes, Sink, Stream, Undo, texts, windows::Windows};
use crate::body::multipart::{Declared, is_file};

/// The longest line of a head, in bytes. A longer line is not part of a head.
const LONGEST: usize = 8192;
/// The beginning of the header lines that are evaluated.
const HEAD: &[u8] = b"content-";

/// The state of the parser at the begin of the rest.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct PartsStart {
    /// The boundary.
    pub(in crate::engine) boundary: Vec<u8>,
    /// Within the content of a file.
    pub(in crate::engine) file: bool,
    /// The transfer encoding of the part.
    pub(in crate::engine) encoding: Vec<u8>,
    /// Parts of any type, whose heads need not name a field: those that are neither text nor a message are files.
    pub(in crate::engine) any: bool,
    /// The number of base64 digits before it, modulo 4.
    pub(in crate::engine) digits: usize,
}

/// Undoes a transfer encoding.
enum Decoder {
    /// The bits of an incomplete group, and how many digits there are of it.
    Base64(u32, usize),
    Quoted(Undo),
}

/// The content of the head of a part so far.
#[derive(Default)]
struct Head {
    disposition: Option<bool>,
    encoding: Vec<u8>,
    /// The type is that of a message.
    message: bool,
    /// The type is neither text nor a message.
    other: bool,
}

/// The rest of a multipart body.
pub(in crate::engine) struct Parts {
    boundary: Vec<u8>,
    any: bool,
    /// Fields, heads and boundaries.
    fields: Stream,
    /// Fields whose encoding is undone.
    decoded: Stream,
    /// The content of files.
    files: Windows,
    file: bool,
    decoder: Option<Decoder>,
    head: Option<Head>,
    /// The beginning of a line that may belong to a head.
    line: Vec<u8>,
    /// The line cannot be of a head.
    other: bool,
    /// The line in `line` has ended, and may be folded.
    ended: bool,
    /// The last byte was a carriage return.
    after_return: bool,
    /// A buffer.
    plain: Vec<u8>,
}

impl Parts {
    pub(in crate::engine) fn new(start: PartsStart) -> Self {
        let stream = || Stream::new(None, &[Escapes::Json, Escapes::References]);
        Self {
            boundary: start.boundary,
            any: start.any,
            fields: stream(),
            decoded: stream(),
            files: Windows::new(true),
            file: start.file,
            decoder: decoder(&start.encoding, start.digits).filter(|_| !start.file),
            head: None,
            line: Vec::new(),
            // The cut may be anywhere in a line.
            other: true,
            ended: false,
            after_return: false,
            plain: Vec::new(),
        }
    }

    pub(in crate::engine) fn readings(&self) -> usize {
        self.fields.readings()
    }

    pub(in crate::engine) fn is_seen(&mut self) {
        self.fields.is_seen();
        self.decoded.is_seen();
        self.files.is_seen();
    }

    pub(in crate::engine) fn end(&mut self, sink: Sink<'_>) {
        self.flush(sink);
        self.fields.end(sink);
        self.decoded.end(sink);
        self.files.end(&mut |window| texts(window, &mut *sink));
    }

    pub(in crate::engine) fn feed(&mut self, bytes: &[u8], sink: Sink<'_>) {
        for &byte in bytes {
            let is_end = matches!(byte, b'\r' | b'\n');
            if self.after_return && byte == b'\n' {
                self.after_return = false;
                self.plain.push(byte);
                continue;
            }
            self.after_return = byte == b'\r';
            if std::mem::take(&mut self.ended) {
                if matches!(byte, b' ' | b'\t') {
                    self.line.push(b' ');
                    self.plain.push(b' ');
                    continue;
                }
                if self.head.is_none() {
                    self.flush(sink);
                }
                self.head_line();
            }
            self.plain.push(byte);
            if is_end {
                let blank = self.line.is_empty() && !self.other;
                self.ended = self.line.len() > HEAD.len() && begins_alike(&self.line, HEAD, true);
                self.other = false;
                if !self.ended {
                    let boundary = self.line.strip_prefix(b"--").is_some_and(|line| line.starts_with(&self.boundary));
                    self.line.clear();
                    if blank && self.head.is_some() || boundary {
                        self.flush(sink);
                        self.turn(boundary);
                    }
                }
                continue;
            }
            if self.other || self.line.len() >= LONGEST {
                continue;
            }
            self.line.push(byte);
            let of_head = begins_alike(&self.line, HEAD, true);
            let of_boundary = begins_alike(self.line.get(..2).unwrap_or(&self.line), b"--", false)
                && begins_alike(self.line.get(2..).unwrap_or_default(), &self.boundary, false);
            if !of_head && !of_boundary {
                self.other = true;
                self.line.clear();
            }
        }
        self.flush(sink);
    }

    /// A line of a head has ended.
    fn head_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Some(colon) = memchr::memchr(b':', &line) else { return };
        let (name, value) = line.split_at_checked(colon).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let head = self.head.get_or_insert_default();
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"content-disposition" => head.disposition = Some(is_file(value)),
            b"content-transfer-encoding" => head.encoding = value.to_vec(),
            b"content-type" => {
                let is_text = value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"text/"));
                head.message = Declared::of(value).is_some();
                head.other = !head.message && !is_text;
            }
            _ => {}
        }
    }

    /// A head has ended, or a part.
    fn turn(&mut self, boundary: bool) {
        let head = self.head.take().unwrap_or_default();
        if boundary {
            self.decoder = None;
        } else if let Some(file) = head.disposition {
            self.file = file && !head.message;
            self.decoder = decoder(&head.encoding, 0).filter(|_| !self.file);
        } else if self.any {
            self.file = head.other;
            self.decoder = decoder(&head.encoding, 0).filter(|_| !self.file);
        } else if !self.file {
            self.decoder = decoder(&head.encoding, 0).or(self.decoder.take());
        }
    }

    /// Passes the pending text on.
    fn flush(&mut self, sink: Sink<'_>) {
        let mut plain = std::mem::take(&mut self.plain);
        if self.file && self.head.is_none() {
            self.files.push(&plain, false, &mut |window| texts(window, &mut *sink));
        } else {
            if let Some(decoder) = &mut self.decoder {
                let decoded = decoder.feed(&plain);
                self.decoded.feed(&decoded, sink);
            }
            // Lines are one text, as the header of a part is none of a message.
            plain.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
            self.fields.feed(&plain, sink);
        }
        plain.clear();
        self.plain = plain;
    }
}

/// Whether a text may go on as, or goes on behind, what it has to begin with.
fn begins_alike(text: &[u8], wanted: &[u8], any_case: bool) -> bool {
    let length = text.len().min(wanted.len());
    let (text, wanted) = (text.get(..length).unwrap_or_default(), wanted.get(..length).unwrap_or_default());
    if any_case { text.eq_ignore_ascii_case(wanted) } else { text == wanted }
}

fn decoder(encoding: &[u8], digits: usize) -> Option<Decoder> {
    match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"base64" => Some(Decoder::Base64(0, digits % 4)),
        b"quoted-printable" => Some(Decoder::Quoted(Undo::new(Escapes::Quoted))),
        _ => None,
    }
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut output = Vec::with_capacity(bytes.len());
        match self {
            Self::Quoted(undo) => _ = undo.feed(bytes, &mut output),
            Self::Base64(bits, count) => {
                for digit in bytes.iter().filter_map(|byte| base64_digit(*byte)) {
                    *bits = *bits << 6 | digit;
                    *count += 1;
                    // Each digit but the first of a group completes a byte.
                    let left = match *count {
                        2 => 4,
                        3 => 2,
                        4 => 0,
                        _ => continue,
                    };
                    output.push(u8::try_from(*bits >> left & 0xff).unwrap_or_default());
                    *count %= 4;
                }
            }
        }
        output
    }
}

/// The value of a digit of base64, in both alphabets.
pub(in crate::engine) fn base64_digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(body: &[u8], start: PartsStart, piece: usize) -> String {
        let (mut parts, mut found) = (Parts::new(start), Vec::new());
        let mut sink = |window: &[u8]| found.extend_from_slice(window);
        body.chunks(piece).for_each(|piece| parts.feed(piece, &mut sink));
        parts.end(&mut sink);
        String::from_utf8_lossy(&found).into_owned()
    }

    #[test]
    fn fields_are_text_and_files_are_not() {
        let start = || PartsStart { boundary: b"b".to_vec(), file: true, ..PartsStart::default() };
        let noise: Vec<u8> = (0..3000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (head, content, expected) in [
            ("Content-Disposition: form-data; name=\"q\"", "1'\x0b or\x01 1=1", "1'\x0b or\x01 1=1"),
            ("content-disposition: form-data; name=\"q; filename=x\"", "\x01' or 1=1#\x01", "\x01' or 1=1#\x01"),
            ("Content-Disposition: form-data;\r\n name=q", "\x01x\x01", "\x01x\x01"),
            (
                "Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name=q",
                "PHNj\r\ncmlwdD4=",
                "<script>",
            ),
            (
                "Content-Disposition: form-data; name=q\r\nContent-Transfer-Encoding: Quoted-Printable",
                "=3Cscr=\r\nipt=3e",
                "<script>",
            ),
            (
                "Content-Disposition: form-data; name=q; filename=\"blob\"\r\nContent-Type: application/json",
                r#""\u003cscript\u003e""#,
                "<script>",
            ),
        ] {
            let field = format!("\r\n--b\r\n{head}\r\n\r\n{content}\r\n--b\r\n");
            let file = "Content-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";
            let body = [noise.as_slice(), field.as_bytes(), file.as_bytes(), &noise, b"\r\n--b--\r\n"].concat();
            for piece in [1, 3, 100, 100_000] {
                let found = windows(&body, start(), piece);
                assert!(found.contains(expected), "{head} in pieces of {piece}: {found:?}");
                assert!(found.len() < 2000, "{head} {}", found.len());
            }
        }
    }

    #[test]
    fn an_encoded_field_goes_on_where_its_beginning_was_read() {
        let encoded = "bG9yZW0gaXBzdW0gPHNjcmlwdD4=";
        for cut in 0..12 {
            let start = PartsStart {
                boundary: b"b".to_vec(),
                encoding: b"base64".to_vec(),
                digits: cut,
                ..PartsStart::default()
            };
            assert!(windows(&encoded.as_bytes()[cut..], start, 5).contains("<script>"), "{cut}");
        }
    }
}
