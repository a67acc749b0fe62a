//! XML bodies: the text for `XML:/*` and the attribute values for `XML://@*`.

mod doctype;
mod namespaces;
mod path;
mod text;
mod tree;

use std::collections::BTreeSet;
use std::fmt;

pub use path::{Limits as PathLimits, MAX_STEPS, Path, PathError};
pub use tree::{Shape, Tree};

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
    /// How many attributes one element may have. Default 256.
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

/// The content of a document, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xml {
    /// The concatenated character data of the root element: `XML:/*`.
    pub text: Vec<u8>,
    /// The value of each attribute, in document order: `XML://@*`. Declarations of namespaces are no attributes.
    pub attributes: Vec<Vec<u8>>,
    /// What is neither text nor an attribute, but may reach an application: the names of namespaces, processing
    /// instructions, and the literals of the document type (values of entities, public and system identifiers, default
    /// values of attributes; its comments as well).
    pub literals: Vec<Vec<u8>>,
}

/// A limit that a document exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The limited quantity.
    pub what: &'static str,
    /// The limit.
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

/// [`parse`], and the shape of the document, for its [`Tree`]. After an error the shape lacks unclosed elements.
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
    // An exceeded limit is reported before any other error: no rule inspects what it leaves out.
    let limited = error.clone().filter(|error| error.limit.is_some());
    (parser.xml, parser.shape, limited.or(refused).or(invalid).or(error))
}

/// Whether the document declares a Latin-1 encoding; an error for an unsupported one.
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
    /// `None` if the caller does not need the shape.
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

    /// The text before `end`, which is skipped too.
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

    /// Reads the XML declaration: each item at most once and in this order; the version is not optional.
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

    /// A processing instruction behind `<?`, a literal: with its delimiters if it is one for PHP, which rules know it by.
    fn instruction(&mut self) -> Result<(), XmlError> {
        let start = self.at;
        let target = self.name()?;
        if target.eq_ignore_ascii_case(b"xml") {
            return self.fail("an XML declaration must be at the start");
        }
        if !self.rest().starts_with(b"?>") && !self.space() {
            return self.fail("white space was expected");
        }
        self.until(b"?>", "a processing instruction is not closed")?;
        let delimiter = if target.eq_ignore_ascii_case(b"php") { 0 } else { 2 };
        let text = self.between(start + delimiter - 2, self.at.saturating_sub(delimiter));
        self.keep_literal(text.to_vec())
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
        let mut names: BTreeSet<&[u8]> = BTreeSet::new();
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
            names.insert(name);
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
                shape.declare(name, value.clone());
            }
            return self.keep_literal(value);
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

    fn element_ends(&mut self) {
        if let Some(shape) = &mut self.shape {
            shape.end(self.xml.text.len());
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-' | b'.' | 0x80..)
}

#[cfg(test)]
mod tests;
