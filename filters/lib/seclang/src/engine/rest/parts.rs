//! The rest of a multipart body.
//!
//! Parts are not separated by the boundary, as parsers differ there. Whatever the boundary is, a field begins with a
//! head. The text behind the head of a file is content of the file, in which only texts are inspected; all other text
//! is inspected.

use super::{Escapes, Sink, Stream, Undo, texts, windows::Windows};
use crate::body::multipart::{Base64, Declared, TransferEncoding, has_second_alphabet, is_file};

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
    /// The number of base64 digits before it, modulo 4: those of one alphabet, and those of both.
    pub(in crate::engine) digits: [usize; 2],
}

/// Undoes a transfer encoding.
enum Decoder {
    /// As applications do that know one alphabet, and as those that know both.
    Base64 {
        one: Base64,
        both: Base64,
        /// There were digits of the second: from there on the groups differ.
        differ: bool,
    },
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
    /// The line may still be a boundary: each of its bytes was compared once.
    like_boundary: bool,
    /// How many bytes were compared with the boundary.
    #[cfg(test)]
    compared: usize,
    any: bool,
    /// Fields, heads and boundaries.
    fields: Stream,
    /// Fields whose encoding is undone.
    decoded: Stream,
    /// The same with the digits of both alphabets, where that is another text.
    also_decoded: Windows,
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
            like_boundary: false,
            #[cfg(test)]
            compared: 0,
            any: start.any,
            fields: stream(),
            decoded: stream(),
            also_decoded: Windows::new(false),
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
        self.also_decoded.is_seen();
        self.files.is_seen();
    }

    pub(in crate::engine) fn end(&mut self, sink: Sink<'_>) {
        self.flush(sink);
        self.fields.end(sink);
        self.decoded.end(sink);
        self.also_decoded.end(sink);
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
                    // What is folded is part of a head, whose line may have no end.
                    if self.line.len() < LONGEST {
                        self.line.push(b' ');
                    }
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
                self.ended = self.line.len() > HEAD.len() && begins_alike(&self.line, HEAD);
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
            self.like_boundary = (self.like_boundary || self.line.is_empty()) && self.is_of_boundary(byte);
            self.line.push(byte);
            if !self.like_boundary && !begins_alike(&self.line, HEAD) {
                self.other = true;
                self.line.clear();
            }
        }
        self.flush(sink);
    }

    /// Whether a line that is a boundary so far may go on with this byte.
    fn is_of_boundary(&mut self, byte: u8) -> bool {
        #[cfg(test)]
        {
            self.compared += 1;
        }
        match self.line.len().checked_sub(2) {
            None => byte == b'-',
            Some(at) => self.boundary.get(at).is_none_or(|wanted| *wanted == byte),
        }
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
            self.decoder = decoder(&head.encoding, [0; 2]).filter(|_| !self.file);
        } else if self.any {
            self.file = head.other;
            self.decoder = decoder(&head.encoding, [0; 2]).filter(|_| !self.file);
        } else if !self.file {
            self.decoder = decoder(&head.encoding, [0; 2]).or(self.decoder.take());
        }
    }

    /// Passes the pending text on.
    fn flush(&mut self, sink: Sink<'_>) {
        let mut plain = std::mem::take(&mut self.plain);
        if self.file && self.head.is_none() {
            self.files.push(&plain, false, &mut |window| texts(window, &mut *sink));
        } else {
            if let Some(decoder) = &mut self.decoder {
                let (decoded, also) = decoder.feed(&plain);
                self.decoded.feed(&decoded, sink);
                if let Some((also, differs)) = also {
                    self.also_decoded.push(&also, differs, sink);
                }
            }
            // Lines are one text, as the header of a part is none of a message.
            plain.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
            self.fields.feed(&plain, sink);
        }
        plain.clear();
        self.plain = plain;
    }
}

/// Whether a text may go on as, or goes on behind, what it has to begin with, in any case.
fn begins_alike(text: &[u8], wanted: &[u8]) -> bool {
    let length = text.len().min(wanted.len());
    text.get(..length).unwrap_or_default().eq_ignore_ascii_case(wanted.get(..length).unwrap_or_default())
}

fn decoder(encoding: &[u8], digits: [usize; 2]) -> Option<Decoder> {
    Some(match TransferEncoding::of(encoding)? {
        TransferEncoding::Base64 => {
            let [one, both] = digits;
            let (one, both, differ) = (Base64::behind(one, false), Base64::behind(both, true), one != both);
            Decoder::Base64 { one, both, differ }
        }
        TransferEncoding::QuotedPrintable => Decoder::Quoted(Undo::new(Escapes::Quoted)),
    })
}

impl Decoder {
    /// What these bytes stand for; and of base64 what they do with both alphabets, and whether that is something else.
    fn feed(&mut self, bytes: &[u8]) -> (Vec<u8>, Option<(Vec<u8>, bool)>) {
        let mut output = Vec::with_capacity(bytes.len());
        match self {
            Self::Quoted(undo) => {
                undo.feed(bytes, &mut output);
                (output, None)
            }
            Self::Base64 { one, both, differ } => {
                let mut also = Vec::with_capacity(bytes.len());
                one.feed(bytes, &mut output);
                both.feed(bytes, &mut also);
                *differ |= has_second_alphabet(bytes);
                (output, Some((also, *differ)))
            }
        }
    }
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
                "Content-Transfer-Encoding: base64; x=y\r\nContent-Disposition: form-data; name=q",
                "P=HNjcmlwdD4=",
                "<script>",
            ),
            (
                "Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name=q",
                "PHNj-cmlwdD4=",
                "<script>",
            ),
            ("Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name=q", "Jz8-Jz8-", "'?>'?>"),
            (
                "Content-Disposition: form-data; name=q\r\nContent-Transfer-Encoding: Quoted-Printable; x=y",
                "=3Cscr= \r\nipt=3e",
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
                digits: [cut; 2],
                ..PartsStart::default()
            };
            assert!(windows(&encoded.as_bytes()[cut..], start, 5).contains("<script>"), "{cut}");
        }
    }

    #[test]
    fn a_line_is_compared_with_the_boundary_byte_by_byte() {
        for length in [70, 8000] {
            let boundary = vec![b'a'; length];
            let line = [b"--".as_slice(), &boundary, b"\n"].concat();
            let body = line.repeat((1 << 20) / line.len());
            let start = PartsStart { boundary, any: true, ..PartsStart::default() };
            let mut parts = Parts::new(start);
            parts.feed(&body, &mut |_| ());
            assert!(parts.compared <= body.len(), "{} for {} bytes", parts.compared, body.len());
        }
    }

    #[test]
    fn boundaries_of_any_length_end_a_part() {
        for length in [1, 70, 8000] {
            let boundary = vec![b'a'; length];
            let text = |part: &str| format!("\r\n--{}\r\n{part}", "a".repeat(length)).into_bytes();
            let encoded = text("Content-Transfer-Encoding: base64\r\n\r\nPHNjcmlwdD4=");
            let body = [encoded, text("Content-Type: text/plain\r\n\r\nPGlmcmFtZT4="), text("")].concat();
            let found = windows(&body, PartsStart { boundary, any: true, ..PartsStart::default() }, 1000);
            assert!(found.contains("<script>") && !found.contains("<iframe>"), "{length}");
        }
    }

    #[test]
    fn a_head_without_an_end_takes_no_memory() {
        let mut parts = Parts::new(PartsStart { any: true, ..PartsStart::default() });
        parts.feed(b"\r\nContent-Type: a\r\n", &mut |_| ());
        for _ in 0..1000 {
            parts.feed(&b" \r\n".repeat(1000), &mut |_| ());
        }
        assert!(parts.line.len() <= LONGEST, "{}", parts.line.len());
    }
}
