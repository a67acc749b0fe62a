//! The rest of a multipart body.
//!
//! Parts are not separated by the boundary, as parsers differ there. Whatever the boundary is, a field begins with a
//! head. The text behind the head of a file is content of the file, in which only texts are inspected; all other text
//! is inspected.

use super::{Escapes, STEP, Sink, Stream, texts, windows::Windows};
use crate::body::multipart::{Declared, Decoder, decoders, is_file};

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
    any: bool,
    /// Fields, heads and boundaries.
    fields: Stream,
    /// Fields whose encoding is undone, in each way that applications do: of all ways but the first what differs.
    decoded: [Stream; 3],
    /// The content of files.
    files: Windows,
    file: bool,
    /// What undoes the encoding of the part; none if it has none.
    decoders: Vec<Decoder>,
    /// What they have not taken yet: a line may be the boundary, which is none of the part.
    encoded: Vec<u8>,
    head: Option<Head>,
    /// The beginning of a line that may belong to a head.
    line: Vec<u8>,
    /// The line cannot be of a head.
    other: bool,
    /// The line in `line` has ended, and may be folded.
    ended: bool,
    /// The last byte was a carriage return.
    after_return: bool,
    /// Buffers.
    plain: Vec<u8>,
    text: Vec<u8>,
}

impl Parts {
    pub(in crate::engine) fn new(start: PartsStart) -> Self {
        let stream = || Stream::new(None, &[Escapes::Json, Escapes::References]);
        Self {
            boundary: start.boundary,
            like_boundary: false,
            any: start.any,
            fields: stream(),
            decoded: [stream(), stream(), stream()],
            files: Windows::new(true),
            file: start.file,
            decoders: if start.file { Vec::new() } else { decoders(&start.encoding, start.digits) },
            encoded: Vec::new(),
            head: None,
            line: Vec::new(),
            // The cut may be anywhere in a line.
            other: true,
            ended: false,
            after_return: false,
            plain: Vec::new(),
            text: Vec::new(),
        }
    }

    pub(in crate::engine) fn readings(&self) -> usize {
        self.fields.readings() * (1 + self.decoders.len())
    }

    pub(in crate::engine) fn is_seen(&mut self) {
        self.fields.is_seen();
        self.decoded.iter_mut().for_each(Stream::is_seen);
        self.files.is_seen();
    }

    pub(in crate::engine) fn end(&mut self, sink: Sink<'_>) {
        self.flush(sink);
        // The boundary is not complete.
        self.decode(0, sink);
        self.fields.end(sink);
        for stream in &mut self.decoded {
            stream.end(sink);
        }
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
                    self.line.clear();
                    if blank && self.head.is_some() {
                        self.flush(sink);
                        self.turn(false);
                    }
                }
                continue;
            }
            if self.other || self.line.len() >= LONGEST {
                continue;
            }
            self.like_boundary = (self.like_boundary || self.line.is_empty()) && self.is_of_boundary(byte);
            self.line.push(byte);
            if self.like_boundary && self.line.len() == self.boundary.len() + 2 {
                self.flush(sink);
                self.turn(true);
                self.like_boundary = false;
            }
            if !self.like_boundary && !begins_alike(&self.line, HEAD) {
                self.other = true;
                self.line.clear();
            }
        }
        self.flush(sink);
    }

    /// Whether a line that is a boundary so far may go on with this byte.
    fn is_of_boundary(&self, byte: u8) -> bool {
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
            self.decoders.clear();
            self.encoded.clear();
            return;
        }
        let file = match head.disposition {
            Some(file) => Some(file && !head.message),
            None => self.any.then_some(head.other),
        };
        let found = decoders(&head.encoding, [0; 2]);
        match file {
            Some(true) => self.decoders.clear(),
            Some(false) => self.decoders = found,
            // The head may be text of the part.
            None if !self.file && !found.is_empty() => self.decoders = found,
            None => {}
        }
        self.file = file.unwrap_or(self.file);
    }

    /// Passes the pending text on.
    fn flush(&mut self, sink: Sink<'_>) {
        let mut plain = std::mem::take(&mut self.plain);
        if self.file && self.head.is_none() {
            self.files.push(&plain, false, true, &mut |window| texts(window, &mut *sink));
        } else {
            if !self.decoders.is_empty() {
                self.encoded.extend_from_slice(&plain);
                self.decode(if self.like_boundary { self.line.len() } else { 0 }, sink);
            }
            // Lines are one text, as the header of a part is none of a message.
            plain.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
            self.fields.feed(&plain, sink);
        }
        plain.clear();
        self.plain = plain;
    }

    /// Decodes what was not decoded yet, but for so many bytes at its end.
    fn decode(&mut self, held: usize, sink: Sink<'_>) {
        let length = self.encoded.len().saturating_sub(held);
        for piece in self.encoded.get(..length).unwrap_or_default().chunks(STEP) {
            for (at, (decoder, stream)) in self.decoders.iter_mut().zip(&mut self.decoded).enumerate() {
                self.text.clear();
                let differs = decoder.feed(piece, &mut self.text);
                stream.feed_other(&self.text, differs || at == 0, sink);
            }
        }
        self.encoded.drain(..length);
    }
}

/// Whether a text may go on as, or goes on behind, what it has to begin with, in any case.
fn begins_alike(text: &[u8], wanted: &[u8]) -> bool {
    let length = text.len().min(wanted.len());
    text.get(..length).unwrap_or_default().eq_ignore_ascii_case(wanted.get(..length).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::Transform;

    fn each_window(body: &[u8], start: PartsStart, piece: usize) -> Vec<String> {
        let (mut parts, mut found) = (Parts::new(start), Vec::new());
        let mut sink = |window: &[u8]| found.push(String::from_utf8_lossy(window).into_owned());
        body.chunks(piece).for_each(|piece| parts.feed(piece, &mut sink));
        parts.end(&mut sink);
        found
    }

    fn windows(body: &[u8], start: PartsStart, piece: usize) -> String {
        each_window(body, start, piece).concat()
    }

    /// A field with a transfer encoding between two boundaries.
    fn encoded_field(encoding: &str, content: &str) -> (Vec<u8>, PartsStart) {
        let head = format!("Content-Disposition: form-data; name=q\r\nContent-Transfer-Encoding: {encoding}");
        let body = format!("\r\n--bound\r\n{head}\r\n\r\n{content}\r\n--bound--\r\n");
        (body.into_bytes(), PartsStart { boundary: b"bound".to_vec(), ..PartsStart::default() })
    }

    #[test]
    fn quoted_fields_are_read_in_each_way_that_applications_do() {
        let skipped = format!("uni=\r{}\non sel\\u0065ct", "x".repeat(3000));
        for (content, expected) in [
            ("=\r=27 or 1=3D1 -- \r\nx", "' or 1=1"),
            ("=6fnload= \n=61lert(1)", "onload= \nalert(1)"),
            ("<scr= \t\r\nipt>", "<script>"),
            ("<scr=\ript>", "<script>"),
            (skipped.as_str(), "union select"),
        ] {
            let (body, start) = encoded_field("quoted-printable", content);
            for piece in [1, 3, 100, 100_000] {
                let found = each_window(&body, start.clone(), piece);
                assert!(found.iter().any(|window| window.contains(expected)), "{expected} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_every_application_decodes_alike_is_one_text() {
        for (encoding, content) in
            [("base64", "PHNjcmlwdD4="), ("quoted-printable", "=3Cscr=\r\nipt>=0D=0A"), ("base64", "PHNj\r\ncmlwdD4=")]
        {
            let (body, start) = encoded_field(encoding, content);
            for piece in [1, 3, 100, 100_000] {
                let found = each_window(&body, start.clone(), piece);
                let decoded = found.iter().filter(|window| window.contains("<script>")).count();
                assert_eq!(decoded, 1, "{encoding} in pieces of {piece}: {found:?}");
            }
        }
    }

    #[test]
    fn the_second_reading_is_windowed_as_the_first() {
        for (text, expected) in [
            (format!("1 and sleep{}(5)", " ".repeat(6000)), ["sleep", "(5)"]),
            (format!("1 union/*{}*/select", "a".repeat(6000)), ["union", "select"]),
            (r"\u003cscript\u003e alert".to_owned(), ["<script>", "alert"]),
        ] {
            // With the second alphabet these are four digits, and three for those that skip them.
            let content = [b"Jz8-".as_slice(), &Transform::Base64Encode.apply(text.as_bytes())].concat();
            let (body, start) = encoded_field("base64", &String::from_utf8(content).unwrap());
            for piece in [1, 100, 100_000] {
                let found = each_window(&body, start.clone(), piece);
                let whole = found.iter().any(|window| expected.iter().all(|part| window.contains(*part)));
                assert!(whole, "{expected:?} in pieces of {piece}");
            }
        }
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
