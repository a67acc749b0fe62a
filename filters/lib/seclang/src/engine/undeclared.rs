//! Bodies of a type that no processor reads: plain text, a vendor's type, none at all.
//!
//! Applications that ignore `Content-Type` may read a form or a document there, with lenient parsers. A document is
//! inspected as one, beside REQUEST_BODY; each pair of a form is inspected separately, whatever surrounds it; text that
//! resembles a document is inspected like the rest of a long body, in each reading. Nothing of it is a body error, as
//! the body does not claim to be a document.

use memchr::{memchr, memchr2_iter, memmem};

use super::declared::is_plain;
use super::oversize::RestOf;
use super::rest::{Escapes, PartsStart, is_text, texts, undone, without_noise};
use super::transaction::{ArgumentSource, Transaction};
use crate::body::{json, multipart, xml};
use crate::transform::decode_argument;

/// The longest name of a pair, in bytes.
const LONGEST_NAME: usize = 128;

/// The longest first line of a multipart body, in bytes: its boundary, and the hyphens before it.
const LONGEST_BOUNDARY: usize = 72;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Transaction {
    /// Inspects the body as the format that it resembles.
    pub(super) fn parse_undeclared(&mut self, body: &[u8]) {
        let kind = self.arena.get(self.content_type).to_vec();
        let trimmed = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
        if let Some(boundary) = boundary(&kind).or_else(|| first_boundary(body)) {
            self.multipart_undeclared(&boundary, body);
        }
        let is_document = match trimmed {
            [b'{' | b'[' | b'"', ..] => self.json_undeclared(trimmed) || self.json_documents(trimmed),
            [b'<', ..] => self.xml_undeclared(trimmed),
            _ => false,
        };
        if is_document {
            return;
        }
        self.pairs_undeclared(body);
        self.arena.budget.charge_search(body.len().saturating_mul(4));
        let json = is_like_json(body) || undone(body, Escapes::Json).is_some();
        if json {
            self.text_undeclared(RestOf::Json, body);
        }
        // The undecoded text was read before.
        if undone(body, Escapes::References).is_some() || !json && is_like_xml(body) {
            self.text_undeclared(RestOf::Xml, body);
        }
    }

    /// Inspects a body with the type of a form as the document that it resembles: programs send JSON with the default
    /// type of their library, and applications read it.
    pub(super) fn parse_document_in_form(&mut self, body: &[u8]) {
        let trimmed = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii();
        let (is_document, of, escapes) = match trimmed {
            [b'{' | b'[', ..] => {
                (self.json_undeclared(trimmed) || self.json_documents(trimmed), RestOf::Json, Escapes::Json)
            }
            [b'<', ..] => (self.xml_undeclared(trimmed), RestOf::Xml, Escapes::References),
            _ => return,
        };
        self.arena.budget.charge_search(body.len());
        if !is_document && undone(body, escapes).is_some() {
            self.text_undeclared(of, body);
        }
    }

    /// Inspects a text that resembles a document, or the texts in it if it is noise.
    fn text_undeclared(&mut self, of: RestOf, body: &[u8]) {
        self.arena.budget.charge_parsing(body.len());
        if is_text(body) {
            self.scan_unread(of, &without_noise(body));
            return;
        }
        let mut found = Vec::new();
        texts(body, |text| {
            found.extend_from_slice(text);
            found.push(b'\n');
        });
        self.scan_unread(of, &found);
    }

    /// Inspects the pairs of a form. Some parsers skip what they cannot read, so each pair counts whatever precedes it.
    fn pairs_undeclared(&mut self, body: &[u8]) {
        self.arena.budget.charge_parsing(body.len());
        let separator = self.engine.settings.argument_separator;
        // Honest texts have pairs as well, such as URLs in a log. Rules refuse a request with as many arguments as the
        // limit.
        let (mut room, mut rest) = (self.room() / 2, Vec::new());
        for piece in body.split(|byte| *byte == separator) {
            let Some(equals) = memchr(b'=', piece) else { continue };
            let name = piece.get(..equals).unwrap_or_default();
            let name = name.strip_prefix(BYTE_ORDER_MARK).unwrap_or(name).trim_ascii_start();
            if name.iter().any(|byte| byte.is_ascii_whitespace() || b"\"'<>{}()".contains(byte)) {
                continue;
            }
            let value = piece.get(equals + 1..).unwrap_or_default();
            if room == 0 || name.len() > LONGEST_NAME {
                if !is_plain(name) || !is_plain(value) {
                    rest.extend_from_slice(piece);
                    rest.push(separator);
                }
            } else if is_text(piece) {
                room -= 1;
                self.pair_undeclared(name, value);
            } else {
                texts(value, |text| {
                    if room > 0 {
                        room -= 1;
                        self.pair_undeclared(name, text);
                    } else {
                        rest.extend_from_slice(text);
                        rest.push(separator);
                    }
                });
            }
        }
        if !rest.is_empty() {
            self.text_undeclared(RestOf::Form, &rest);
        }
    }

    fn pair_undeclared(&mut self, name: &[u8], value: &[u8]) {
        let (name, value) = (decode_argument(name).0, decode_argument(value).0);
        self.arguments_to_add().add_named(ArgumentSource::Form, &name, &value);
    }

    /// Whether all of it is JSON.
    fn json_undeclared(&mut self, body: &[u8]) -> bool {
        let limits = json::Limits {
            depth: self.engine.settings.json_depth_limit as usize,
            arguments: self.room(),
            ..json::Limits::default()
        };
        // Arguments are added after all of it was parsed as JSON.
        let is_json = json::parse(body, &limits, |_| ()).is_ok();
        self.arena.budget.charge_parsing(body.len());
        if is_json {
            let mut arguments = self.arguments_to_add();
            let parsed = json::parse(body, &limits, |argument| arguments.add_json(argument));
            if parsed.is_ok_and(|outcome| outcome.limit_exceeded) {
                self.too_many_arguments("ARGS");
            }
        }
        is_json
    }

    /// Whether all of it is JSON documents in a row, as in logs and bulk requests. Their values are treated as those of
    /// one file: plain words and numbers are skipped, and values beyond half of the free arguments become one text.
    fn json_documents(&mut self, body: &[u8]) -> bool {
        let limits = self.json_limits_of_file();
        let mut rest = body;
        self.arena.budget.charge_parsing(body.len());
        while !rest.is_empty() {
            match json::parse(rest, &limits, |_| ()) {
                Ok(_) => break,
                Err(error) if error.message == json::TEXT_BEHIND => rest = rest.get(error.offset..).unwrap_or_default(),
                Err(_) => return false,
            }
        }
        self.arena.budget.charge_parsing(body.len());
        let (mut rest, mut room, mut lines) = (body, self.room() / 2, Vec::new());
        while !rest.is_empty() && !self.arena.budget.is_spent() {
            let parsed = self.odd_values(rest, &mut room, &mut lines);
            rest = parsed.err().and_then(|error| rest.get(error.offset..)).unwrap_or_default();
        }
        if !lines.is_empty() {
            self.scan_unread(RestOf::Json, &lines);
        }
        true
    }

    /// Whether all of it is XML.
    fn xml_undeclared(&mut self, body: &[u8]) -> bool {
        let (found, error) = xml::parse(body, &xml::Limits { doctype: true, ..xml::Limits::default() });
        self.arena.budget.charge_parsing(body.len());
        if error.is_some() {
            return false;
        }
        self.xml_texts(found);
        true
    }

    /// Inspects parts as those of a form, and in every other reading unless all of them are plain fields.
    fn multipart_undeclared(&mut self, boundary: &[u8], body: &[u8]) {
        let kind = [b"multipart/form-data; boundary=\"", boundary, b"\""].concat();
        let found = multipart::parse(&kind, body, &multipart::Limits::default());
        self.arena.budget.charge_parsing(body.len());
        // Parts beyond a limit are inspected as text.
        let whole = found.error.is_none() && found.limit.is_none();
        let is_form = whole && found.parts.iter().all(|part| part.declared.is_none());
        for part in found.parts.into_iter().filter(|part| !part.is_file()) {
            if self.room() == 0 {
                self.too_many_arguments("ARGS_POST");
                return;
            }
            let (name, value) = (&part.name, &part.value);
            self.arguments_to_add().add_named(ArgumentSource::Form, name, value);
            for decoded in &part.decoded {
                self.arguments_to_add().add_named(ArgumentSource::Form, name, decoded);
            }
        }
        // Without a line of the boundary there are no parts.
        if !is_form && memmem::find(body, &[b"--", boundary].concat()).is_some() {
            let start = PartsStart { boundary: boundary.to_vec(), any: true, ..PartsStart::default() };
            self.scan_unread(RestOf::Multipart(start), body);
        }
    }
}

/// The boundary that a multipart type names.
pub(super) fn boundary(media_type: &[u8]) -> Option<Vec<u8>> {
    const PARAMETER: &[u8] = b"boundary=";
    let lower = media_type.trim_ascii().to_ascii_lowercase();
    let at = lower.starts_with(b"multipart/").then(|| memmem::find(&lower, PARAMETER)).flatten()?;
    let value = media_type.trim_ascii().get(at + PARAMETER.len()..)?;
    let (quoted, value) = value.strip_prefix(b"\"").map_or((false, value), |value| (true, value));
    let end = value.iter().position(|byte| *byte == b'"' || !quoted && matches!(byte, b';' | b',' | b' '));
    value.get(..end.unwrap_or(value.len())).filter(|value| !value.is_empty()).map(<[u8]>::to_vec)
}

/// The boundary of what looks like parts: a line that begins with two hyphens, in front of a head.
fn first_boundary(body: &[u8]) -> Option<Vec<u8>> {
    const HEAD: &[u8] = b"content-";
    let mut line = 0;
    for end in memchr2_iter(b'\r', b'\n', body) {
        let boundary = body.get(line..end).and_then(|line| line.strip_prefix(b"--"));
        line = end + 1;
        let next = body.get(line..).unwrap_or_default();
        let next = next.strip_prefix(b"\n").unwrap_or(next);
        let is_head = next.get(..HEAD.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEAD));
        if let Some(boundary) = boundary.filter(|it| is_head && !it.is_empty() && it.len() < LONGEST_BOUNDARY) {
            return Some(boundary.trim_ascii_end().to_vec());
        }
    }
    None
}

/// Whether there are strings in an object or an array, or an object in an array.
fn is_like_json(text: &[u8]) -> bool {
    memchr2_iter(b'{', b'[', text).any(|at| {
        let inside = text.get(at + 1..).unwrap_or_default();
        let blank = inside.iter().take(64).take_while(|byte| byte.is_ascii_whitespace()).count();
        matches!(inside.get(blank), Some(b'"' | b'\''))
    })
}

/// Whether there are the ends of elements, or of an empty one.
fn is_like_xml(text: &[u8]) -> bool {
    memmem::find(text, b"</").is_some()
        || memmem::find(text, b"/>").is_some()
        || memmem::find(text, b"<![CDATA[").is_some()
}
