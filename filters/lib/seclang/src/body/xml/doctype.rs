//! The document type: its declarations can read files, call servers and hide text, so it is refused unless
//! [`super::Limits::doctype`] allows it. Either way rules see its literals.

use std::collections::HashMap;
use std::rc::Rc;

use memchr::{memchr, memmem};

use super::text::referenced;
use super::{Limit, Parser, XmlError, is_name, is_space};

/// The most bytes that all references to declared entities expand to.
const EXPANSION: usize = 256 * 1024;
/// How deep entities may refer to one another.
const DEPTH: usize = 8;

/// The last literals that a further one is compared with.
const RECENT: usize = 8;

/// What the document type declares.
#[derive(Debug, Default)]
pub(super) struct DocumentType<'a> {
    /// The document has one.
    pub(super) seen: bool,
    /// The reason for a refusal, although the document is read to its end.
    pub(super) refused: Option<XmlError>,
    /// The internal entities by their names; numeric references in their values are resolved.
    entities: HashMap<&'a [u8], Rc<[u8]>>,
    /// The bytes that references have expanded to.
    expanded: usize,
}

impl<'a> Parser<'a> {
    /// Reads a document type behind `<!DOCTYPE`.
    pub(super) fn document_type(&mut self) -> Result<(), XmlError> {
        let start = self.at;
        self.doctype.seen = true;
        if !self.space() {
            return self.fail("white space was expected");
        }
        self.name()?;
        self.space();
        if !self.limits.doctype && self.rest().first() != Some(&b'>') {
            let message = "a document type with declarations or an external identifier is not allowed";
            self.doctype.refused = Some(XmlError { message, offset: start, limit: None });
        }
        let mut inside = false;
        let mut literals = Vec::new();
        loop {
            let rest = self.rest();
            let length =
                rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\'' | b'[' | b']' | b'<' | b'>' | b'%')).count();
            self.at += length;
            let start = self.at;
            if self.accept(b"<!--") {
                self.comment()?;
                let text = self.between(start + 4, self.at.saturating_sub(3));
                self.literal(text.to_vec(), &mut literals)?;
                continue;
            }
            if self.accept(b"<?") {
                self.instruction()?;
                continue;
            }
            if self.accept(b"<!ENTITY") {
                self.entity(&mut literals)?;
                continue;
            }
            let Some(&byte) = self.rest().first() else {
                return self.fail("the document type is not closed");
            };
            self.at += 1;
            match byte {
                b'"' | b'\'' => {
                    let value = self.quoted(byte)?;
                    self.literal(value, &mut literals)?;
                }
                // A parameter entity may declare anything.
                b'%' if self.rest().first().is_some_and(|byte| is_name(*byte)) => {
                    return self.fail("references to parameter entities are not resolved");
                }
                b'[' => inside = true,
                b']' => inside = false,
                b'>' if !inside => break,
                _ => {}
            }
        }
        // A literal may be put together from entities that are declared behind it.
        for literal in literals {
            if memchr(b'&', &literal).is_some() {
                let mut whole = Vec::new();
                self.expand(&literal, 0, start, &mut whole)?;
                if whole != literal {
                    self.keep_literal(whole)?;
                }
            }
            self.keep_literal(literal)?;
        }
        Ok(())
    }

    /// A declaration of an entity behind `<!ENTITY`: its literals, and what it stands for.
    fn entity(&mut self, literals: &mut Vec<Vec<u8>>) -> Result<(), XmlError> {
        self.space();
        let parameter = self.accept(b"%");
        self.space();
        let name = self.name()?;
        self.space();
        let internal = !parameter && matches!(self.rest().first(), Some(b'"' | b'\''));
        loop {
            let length = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\'' | b'>' | b'<')).count();
            self.at += length;
            match self.rest().first() {
                Some(&quote @ (b'"' | b'\'')) => {
                    self.at += 1;
                    let value = self.quoted(quote)?;
                    // Of several declarations the first one counts.
                    if internal {
                        self.doctype.entities.entry(name).or_insert_with(|| value.as_slice().into());
                    }
                    self.literal(value, literals)?;
                }
                Some(b'>') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail("the declaration of an entity is not closed"),
            }
        }
    }

    /// A quoted text behind its opening quote, its numeric references resolved.
    fn quoted(&mut self, quote: u8) -> Result<Vec<u8>, XmlError> {
        let start = self.at;
        let raw = self.until(&[quote], "a quoted text in the document type is not closed")?;
        self.characters(start, start + raw.len())?;
        let mut value = Vec::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(at) = memmem::find(rest, b"&#") {
            self.plain(rest.get(..at).unwrap_or_default(), false, &mut value);
            let reference = rest.get(at + 1..).unwrap_or_default();
            let length = memchr(b';', reference).unwrap_or(reference.len());
            match reference.get(..length).and_then(referenced) {
                Some(character) => value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return self.fail("there is no such character"),
            }
            rest = reference.get(length + 1..).unwrap_or_default();
        }
        self.plain(rest, false, &mut value);
        Ok(value)
    }

    fn literal(&self, value: Vec<u8>, literals: &mut Vec<Vec<u8>>) -> Result<(), XmlError> {
        if literals.len() >= self.limits.attributes {
            return self.beyond("the document type has too many literals", "literals", self.limits.attributes);
        }
        if !value.is_empty() {
            literals.push(value);
        }
        Ok(())
    }

    /// Keeps a literal of the document. Many elements declare the same namespaces.
    pub(super) fn keep_literal(&mut self, value: Vec<u8>) -> Result<(), XmlError> {
        if value.is_empty() || self.xml.literals.iter().rev().take(RECENT).any(|recent| *recent == value) {
            return Ok(());
        }
        if self.xml.literals.len() >= 2 * self.limits.attributes {
            let message = "there are too many namespaces, instructions and literals of the document type";
            return self.beyond(message, "literals", self.limits.attributes);
        }
        self.xml.literals.push(value);
        Ok(())
    }

    /// Appends what a reference to a declared entity stands for; `false` if there is no such internal entity.
    pub(super) fn declared(&mut self, name: &[u8], depth: usize, output: &mut Vec<u8>) -> Result<bool, XmlError> {
        let Some(value) = self.doctype.entities.get(name).map(Rc::clone) else {
            return Ok(false);
        };
        self.doctype.expanded = self.doctype.expanded.saturating_add(value.len()).saturating_add(1);
        if self.doctype.expanded > EXPANSION {
            return self.beyond("its entities stand for too much text", "bytes of expanded entities", EXPANSION);
        }
        self.expand(&value, depth + 1, self.at, output)?;
        Ok(true)
    }

    /// Appends a text with its references undone as far as they are declared here.
    fn expand(&mut self, text: &[u8], depth: usize, offset: usize, output: &mut Vec<u8>) -> Result<(), XmlError> {
        if depth > DEPTH {
            let message = "entities refer to one another too deep";
            return Err(XmlError { message, offset, limit: Some(Limit { what: "depth of entities", most: DEPTH }) });
        }
        let mut rest = text;
        while let Some(at) = memchr(b'&', rest) {
            output.extend_from_slice(rest.get(..at).unwrap_or_default());
            let reference = rest.get(at + 1..).unwrap_or_default();
            let length = reference.iter().take_while(|byte| is_name(**byte) || **byte == b'#').count();
            let name = reference.get(..length).unwrap_or_default();
            let closed = reference.get(length) == Some(&b';');
            let known = match (closed, referenced(name)) {
                (false, _) => false,
                (true, Some(character)) => {
                    output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    true
                }
                (true, None) => self.declared(name, depth, output)?,
            };
            if !known {
                output.push(b'&');
                output.extend_from_slice(name);
                if closed {
                    output.push(b';');
                }
            }
            rest = reference.get(length + usize::from(closed)..).unwrap_or_default();
        }
        output.extend_from_slice(rest);
        Ok(())
    }

    pub(super) fn between(&self, start: usize, end: usize) -> &'a [u8] {
        self.body.get(start..end).unwrap_or_default()
    }
}

/// Whether a body begins like a document in UTF-16 or UTF-32, which is not read here.
pub(super) fn is_wide(body: &[u8]) -> bool {
    matches!(body, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, b'<', ..] | [b'<', 0, ..] | [0, 0, 0, b'<', ..])
        || body.first().is_some_and(|byte| is_space(*byte)) && body.get(1) == Some(&0)
}
