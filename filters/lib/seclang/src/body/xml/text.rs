//! The content of elements: text, CDATA sections, and the references in them.

use memchr::{memchr, memmem};

use super::{Parser, XmlError, is_name};

impl Parser<'_> {
    /// One piece of the content of an element.
    pub(super) fn content(&mut self) -> Result<(), XmlError> {
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

    /// Marks the text since `before` as one piece.
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
    pub(super) fn characters(&mut self, start: usize, end: usize) -> Result<(), XmlError> {
        let raw = self.body.get(start..end).unwrap_or_default();
        if let Some(at) = raw.iter().position(|byte| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f)) {
            self.at = start + at;
            return self.fail("control characters are not allowed");
        }
        Ok(())
    }

    pub(super) fn plain(&self, raw: &[u8], attribute: bool, output: &mut Vec<u8>) {
        for &byte in raw {
            match byte {
                b'\t' | b'\n' | b'\r' if attribute => output.push(b' '),
                0x80.. if self.latin1 => output.extend_from_slice(char::from(byte).encode_utf8(&mut [0; 2]).as_bytes()),
                _ => output.push(byte),
            }
        }
    }

    /// Appends text with its references undone; `start` is where it is in the body.
    pub(super) fn text(
        &mut self,
        raw: &[u8],
        start: usize,
        attribute: bool,
        output: &mut Vec<u8>,
    ) -> Result<(), XmlError> {
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
                // External entities are not read.
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
pub(super) fn referenced(name: &[u8]) -> Option<char> {
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
