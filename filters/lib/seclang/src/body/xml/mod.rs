//! XML bodies: the text for `XML:/*` and the attribute values for `XML://@*`.

mod doctype;
mod path;
mod tree;

use std::fmt;

pub use path::{Limits as PathLimits, MAX_STEPS, Path, PathError};
pub use tree::Shape;

use doctype::DocumentType;
use memchr::{memchr, memmem};

/// Limits of [`parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep elements may nest. Default 256.
    pub depth: usize,
    /// How many elements there may be. Default 100 000.
    pub elements: usize,
    /// How many attributes there may be. Default 10 000.
    pub attributes: usize,
    /// How many attributes one element may have: each is compared with the others. Default 256.
    pub attributes_per_element: usize,
    /// Whether a document type may declare something or refer to another file. Default false: such a document is an
    /// error, although it is read to its end.
    pub doctype: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 256, elements: 100_000, attributes: 10_000, attributes_per_element: 256, doctype: false }
    }
}

/// What rules see of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xml {
    /// The concatenated character data of the root element: `XML:/*`.
    pub text: Vec<u8>,
    /// The value of each attribute, in document order: `XML://@*`. Declarations of namespaces are no attributes.
    pub attributes: Vec<Vec<u8>>,
    /// The literals of the document type: values of entities, public and system identifiers, default values of
    /// attributes; its comments and processing instructions as well.
    pub literals: Vec<Vec<u8>>,
}

/// A limit that a document exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What it is a limit of.
    pub what: &'static str,
    /// How many of it there may be.
    pub most: usize,
}

/// Why a body is not well-formed XML, or not within the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlError {
    /// What is wrong.
    pub message: &'static str,
    /// The byte of the body the parser stopped at.
    pub offset: usize,
    /// The limit that is exceeded, if the document may be well-formed: what follows was not read.
    pub limit: Option<Limit>,
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for XmlError {}

/// Parses one document (XML 1.0). Nothing outside of it is ever read. A reference to an internal entity that the document
/// declares is expanded, within bounds; one to any other entity stays as it is written.
///
/// The encodings are UTF-8 and, if the document declares it, ISO-8859-1 (which is converted).
///
/// What was read before an error is returned with it: an application with a lenient parser reads that much as well.
pub fn parse(body: &[u8], limits: &Limits) -> (Xml, Option<XmlError>) {
    let (xml, _, error) = run(body, limits, None);
    (xml, error)
}

/// [`parse`], and the shape of the document, for [`Path`]s. After an error the shape lacks what was not closed.
pub fn parse_tree(body: &[u8], limits: &Limits) -> (Xml, Shape, Option<XmlError>) {
    let (xml, shape, error) = run(body, limits, Some(Shape::default()));
    (xml, shape.unwrap_or_default(), error)
}

fn run(body: &[u8], limits: &Limits, shape: Option<Shape>) -> (Xml, Option<Shape>, Option<XmlError>) {
    let latin1 = match is_latin1(body) {
        Ok(latin1) => latin1,
        Err(error) => return (Xml::default(), shape, Some(error)),
    };
    let invalid = std::str::from_utf8(body).err().filter(|_| !latin1).map(|error| error.valid_up_to());
    let body = invalid.and_then(|offset| body.get(..offset)).unwrap_or(body);
    let mut parser = Parser {
        body,
        at: 0,
        limits,
        latin1,
        xml: Xml::default(),
        open: Vec::new(),
        elements: 0,
        doctype: DocumentType::default(),
        shape,
    };
    let error = parser.document().err();
    let invalid = invalid.map(|offset| XmlError { message: "the document is not UTF-8", offset, limit: None });
    let refused = parser.doctype.refused.take();
    // A limit is told before anything else: what it leaves out is in front of no rule.
    let limited = error.clone().filter(|error| error.limit.is_some());
    (parser.xml, parser.shape, limited.or(refused).or(invalid).or(error))
}

/// Whether the document declares a Latin-1 encoding; an error if it declares one that is not known here.
fn is_latin1(body: &[u8]) -> Result<bool, XmlError> {
    const MESSAGE: &str = "the encoding of the document is not supported";
    if doctype::is_wide(body) {
        return Err(XmlError { message: MESSAGE, offset: 0, limit: None });
    }
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let Some(end) = body.strip_prefix(b"<?xml").and_then(|rest| memmem::find(rest, b"?>")) else {
        return Ok(false);
    };
    let declaration = body.get(..end + 5).unwrap_or_default();
    let Some(offset) = memmem::find(declaration, b"encoding") else {
        return Ok(false);
    };
    let value = declaration.get(offset + 8..).unwrap_or_default().trim_ascii_start();
    let value = value.strip_prefix(b"=").unwrap_or_default().trim_ascii_start();
    let name = value.get(1..).unwrap_or_default();
    let name = name.split(|byte| matches!(byte, b'"' | b'\'')).next().unwrap_or_default();
    match name.to_ascii_lowercase().as_slice() {
        b"utf-8" | b"us-ascii" | b"ascii" => Ok(false),
        b"iso-8859-1" | b"latin1" | b"latin-1" => Ok(true),
        _ => Err(XmlError { message: MESSAGE, offset, limit: None }),
    }
}

struct Parser<'a> {
    body: &'a [u8],
    at: usize,
    limits: &'a Limits,
    latin1: bool,
    xml: Xml,
    /// The names of the open elements.
    open: Vec<&'a [u8]>,
    elements: usize,
    doctype: DocumentType<'a>,
    /// Noted only if someone asks for it.
    shape: Option<Shape>,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, message: &'static str) -> Result<T, XmlError> {
        Err(XmlError { message, offset: self.at.min(self.body.len()), limit: None })
    }

    fn beyond<T>(&self, message: &'static str, what: &'static str, most: usize) -> Result<T, XmlError> {
        Err(XmlError { message, offset: self.at.min(self.body.len()), limit: Some(Limit { what, most }) })
    }

    fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    fn accept(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn expect(&mut self, text: &[u8], message: &'static str) -> Result<(), XmlError> {
        if self.accept(text) { Ok(()) } else { self.fail(message) }
    }

    /// Skips white space; whether there was any.
    fn space(&mut self) -> bool {
        let length = self.rest().iter().take_while(|byte| is_space(**byte)).count();
        self.at += length;
        length > 0
    }

    /// What is before `end`, which is skipped too.
    fn until(&mut self, end: &[u8], message: &'static str) -> Result<&'a [u8], XmlError> {
        let rest = self.rest();
        let Some(length) = memmem::find(rest, end) else {
            return self.fail(message);
        };
        self.at += length + end.len();
        Ok(rest.get(..length).unwrap_or_default())
    }

    fn name(&mut self) -> Result<&'a [u8], XmlError> {
        let rest = self.rest();
        let length = rest.iter().take_while(|byte| is_name(**byte)).count();
        let name = rest.get(..length).unwrap_or_default();
        if matches!(name.first(), None | Some(b'-' | b'.' | b'0'..=b'9')) {
            return self.fail("a name was expected");
        }
        self.at += length;
        Ok(name)
    }

    fn document(&mut self) -> Result<(), XmlError> {
        self.accept(b"\xef\xbb\xbf");
        if self.rest().starts_with(b"<?xml") && self.rest().get(5).is_some_and(|byte| is_space(*byte)) {
            self.at += 5;
            self.declaration()?;
        }
        self.miscellaneous(true)?;
        self.expect(b"<", "the root element was expected")?;
        self.start_tag()?;
        while !self.open.is_empty() {
            self.content()?;
        }
        self.miscellaneous(false)?;
        if self.at < self.body.len() { self.fail("text after the root element") } else { Ok(()) }
    }

    /// What the XML declaration says, each at most once and in this order; the version is not optional.
    fn declaration(&mut self) -> Result<(), XmlError> {
        const MESSAGE: &str = "the XML declaration is not one";
        for word in [&b"version"[..], b"encoding", b"standalone"] {
            let start = self.at;
            if !(self.space() && self.accept(word)) {
                self.at = start;
                if word == b"version" {
                    return self.fail(MESSAGE);
                }
                continue;
            }
            self.space();
            self.expect(b"=", MESSAGE)?;
            self.space();
            let quote = if self.accept(b"\"") { b"\"" } else { b"'" };
            if quote == b"'" {
                self.expect(quote, MESSAGE)?;
            }
            let value = self.until(quote, MESSAGE)?;
            if !value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':')) {
                return self.fail(MESSAGE);
            }
            if word == b"version" && !value.starts_with(b"1.") {
                return self.fail("the version of XML is not supported");
            }
        }
        self.space();
        self.expect(b"?>", MESSAGE)
    }

    /// Comments, processing instructions and the document type, before or after the root element.
    fn miscellaneous(&mut self, before: bool) -> Result<(), XmlError> {
        loop {
            self.space();
            if self.accept(b"<!--") {
                self.comment()?;
            } else if self.accept(b"<?") {
                self.instruction()?;
            } else if before && !self.doctype.seen && self.accept(b"<!DOCTYPE") {
                self.document_type()?;
            } else {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) -> Result<(), XmlError> {
        let start = self.at;
        self.until(b"--", "a comment is not closed")?;
        if self.accept(b">") {
            return self.characters(start, self.at);
        }
        self.fail("a comment must not contain two hyphens")
    }

    fn instruction(&mut self) -> Result<(), XmlError> {
        let target = self.name()?;
        if target.eq_ignore_ascii_case(b"xml") {
            return self.fail("an XML declaration must be at the start");
        }
        if !self.rest().starts_with(b"?>") && !self.space() {
            return self.fail("white space was expected");
        }
        self.until(b"?>", "a processing instruction is not closed").map(|_| ())
    }

    fn start_tag(&mut self) -> Result<(), XmlError> {
        self.elements += 1;
        if self.elements > self.limits.elements {
            return self.beyond("there are too many elements", "elements", self.limits.elements);
        }
        let element = self.name()?;
        if let Some(shape) = &mut self.shape {
            shape.begin(element, self.xml.text.len());
        }
        let mut names: Vec<&[u8]> = Vec::new();
        loop {
            let spaced = self.space();
            if self.accept(b"/>") {
                self.element_ends();
                return Ok(());
            }
            if self.accept(b">") {
                if self.open.len() == self.limits.depth {
                    return self.beyond("elements are nested too deep", "depth of elements", self.limits.depth);
                }
                self.open.push(element);
                return Ok(());
            }
            if !spaced {
                return self.fail("white space or the end of the tag was expected");
            }
            let name = self.name()?;
            if names.contains(&name) {
                return self.fail("an attribute is given twice");
            }
            if names.len() == self.limits.attributes_per_element {
                let most = self.limits.attributes_per_element;
                return self.beyond("an element has too many attributes", "attributes of an element", most);
            }
            names.push(name);
            self.attribute(name)?;
        }
    }

    fn attribute(&mut self, name: &[u8]) -> Result<(), XmlError> {
        self.space();
        self.expect(b"=", "a = was expected after the name of an attribute")?;
        self.space();
        let quote = match self.rest().first() {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return self.fail("the value of an attribute must be quoted"),
        };
        self.at += 1;
        let start = self.at;
        let raw = self.until(&[quote], "the value of an attribute is not closed")?;
        if let Some(at) = memchr(b'<', raw) {
            self.at = start + at;
            return self.fail("< must be escaped in the value of an attribute");
        }
        let mut value = Vec::new();
        self.text(raw, start, true, &mut value)?;
        if name == b"xmlns" || name.starts_with(b"xmlns:") {
            if let Some(shape) = &mut self.shape {
                shape.declare(name, value);
            }
            return Ok(());
        }
        if self.xml.attributes.len() == self.limits.attributes {
            return self.beyond("there are too many attributes", "attributes", self.limits.attributes);
        }
        if let Some(shape) = &mut self.shape {
            shape.attribute(name, self.xml.attributes.len());
        }
        self.xml.attributes.push(value);
        Ok(())
    }

    /// One piece of what an element contains.
    fn content(&mut self) -> Result<(), XmlError> {
        let start = self.at;
        let rest = self.rest();
        let length = memchr(b'<', rest);
        let raw = length.and_then(|length| rest.get(..length)).unwrap_or(rest);
        if let Some(at) = memmem::find(raw, b"]]>") {
            self.at += at;
            return self.fail("]]> must be escaped in text");
        }
        let mut text = std::mem::take(&mut self.xml.text);
        let before = text.len();
        let result = self.text(raw, start, false, &mut text);
        self.xml.text = text;
        result?;
        self.piece_since(before);
        self.at += raw.len();
        if length.is_none() {
            return self.fail("an element is not closed");
        }
        self.at += 1;
        if self.accept(b"/") {
            let name = self.name()?;
            if self.open.pop() != Some(name) {
                return self.fail("this end tag is not that of the open element");
            }
            self.space();
            self.element_ends();
            return self.expect(b">", "the end of the tag was expected");
        }
        if self.accept(b"!--") {
            return self.comment();
        }
        if self.accept(b"![CDATA[") {
            let start = self.at;
            let raw = self.until(b"]]>", "a CDATA section is not closed")?;
            self.characters(start, start + raw.len())?;
            let before = self.xml.text.len();
            self.latin1_or_utf8(raw, false);
            self.piece_since(before);
            return Ok(());
        }
        if self.accept(b"?") {
            return self.instruction();
        }
        self.start_tag()
    }

    fn element_ends(&mut self) {
        if let Some(shape) = &mut self.shape {
            shape.end(self.xml.text.len());
        }
    }

    /// The text that came last is one piece.
    fn piece_since(&mut self, before: usize) {
        if let Some(shape) = &mut self.shape {
            shape.piece(before..self.xml.text.len());
        }
    }

    fn latin1_or_utf8(&mut self, raw: &[u8], attribute: bool) {
        let mut text = std::mem::take(&mut self.xml.text);
        self.plain(raw, attribute, &mut text);
        self.xml.text = text;
    }

    /// Refuses control characters.
    fn characters(&mut self, start: usize, end: usize) -> Result<(), XmlError> {
        let raw = self.body.get(start..end).unwrap_or_default();
        if let Some(at) = raw.iter().position(|byte| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f)) {
            self.at = start + at;
            return self.fail("control characters are not allowed");
        }
        Ok(())
    }

    fn plain(&self, raw: &[u8], attribute: bool, output: &mut Vec<u8>) {
        for &byte in raw {
            match byte {
                b'\t' | b'\n' | b'\r' if attribute => output.push(b' '),
                0x80.. if self.latin1 => output.extend_from_slice(char::from(byte).encode_utf8(&mut [0; 2]).as_bytes()),
                _ => output.push(byte),
            }
        }
    }

    /// Appends text with its references undone; `start` is where it is in the body.
    fn text(&mut self, raw: &[u8], start: usize, attribute: bool, output: &mut Vec<u8>) -> Result<(), XmlError> {
        self.characters(start, start + raw.len())?;
        let mut rest = raw;
        while let Some(ampersand) = memchr(b'&', rest) {
            self.plain(rest.get(..ampersand).unwrap_or_default(), attribute, output);
            let reference = rest.get(ampersand + 1..).unwrap_or_default();
            let offset = start + raw.len() - reference.len() - 1;
            let Some(length) = memchr(b';', reference) else {
                return Err(XmlError { message: "a reference is not closed", offset, limit: None });
            };
            let name = reference.get(..length).unwrap_or_default();
            match referenced(name) {
                Some(character) => output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                // What the document type declares elsewhere is not looked up.
                None if self.doctype.seen && !name.starts_with(b"#") && name.iter().all(|&byte| is_name(byte)) => {
                    if !self.declared(name, 0, output)? {
                        output.push(b'&');
                        output.extend_from_slice(name);
                        output.push(b';');
                    }
                }
                None => {
                    let message = "there is no such entity or character";
                    return Err(XmlError { message, offset, limit: None });
                }
            }
            rest = reference.get(length + 1..).unwrap_or_default();
        }
        self.plain(rest, attribute, output);
        Ok(())
    }
}

/// The character of a reference, without `&` and `;`.
fn referenced(name: &[u8]) -> Option<char> {
    let number = match name {
        b"lt" => return Some('<'),
        b"gt" => return Some('>'),
        b"amp" => return Some('&'),
        b"quot" => return Some('"'),
        b"apos" => return Some('\''),
        _ => std::str::from_utf8(name.strip_prefix(b"#")?).ok()?,
    };
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok()?;
    char::from_u32(code).filter(|character| matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-' | b'.' | 0x80..)
}

#[cfg(test)]
mod tests;
