//! Masks secrets in a request before anything of it is stored: values by the names they stand under, and numbers of cards.
//!
//! Each kind of text is read once from its beginning to its end, without a parser: what is cut, broken or of another kind than it says
//! is masked as far as names are found. What is masked is [`MASK`], in quotes where JSON needs them, so that the request still parses.

mod cookies;
mod digits;
mod json;
mod multipart;
mod pairs;
mod xml;

pub(super) use digits::cards;

use super::names::is_secret;
use super::target::{Input, Target};

/// What stands for a secret.
pub(super) const MASK: &[u8] = b"***";
/// The same for what stands without quotes in JSON.
const QUOTED_MASK: &[u8] = b"\"***\"";
/// How deep documents in values of documents are looked into.
const MAX_DEPTH: u8 = 3;

/// The masking of one request for one match. The input that matched stays as it is, unless its name is that of a secret or it is a
/// document that holds secrets.
pub(super) struct Mask<'m> {
    target: Target<'m>,
    /// Further names of secrets, in lower case.
    sanitised: &'m [Vec<u8>],
    /// Numbers of cards in the value that matched. They stay.
    matched_cards: &'m [Vec<u8>],
    /// The input that matched with secrets masked, where it holds some.
    changed: Option<Vec<u8>>,
    depth: u8,
}

/// How much of a text is read as names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Behind `?`, `&` and `#` alone: what matched stays as it is but for addresses with secrets in them.
    Addresses,
    /// Behind white space, quotes and the like as well.
    Words,
}

/// What a body is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Form,
    Json,
    Xml,
    /// With the boundary that the type names.
    Multipart(Vec<u8>),
    Other,
}

impl<'m> Mask<'m> {
    pub(super) fn new(target: Target<'m>, matched_cards: &'m [Vec<u8>], sanitised: &'m [Vec<u8>]) -> Self {
        Self { target, sanitised, matched_cards, changed: None, depth: 0 }
    }

    /// The target of a request.
    pub(super) fn uri(&mut self, uri: &[u8]) -> Vec<u8> {
        let at = uri.iter().position(|byte| *byte == b'?').unwrap_or(uri.len());
        let (path, query) = uri.split_at_checked(at).unwrap_or((uri, b""));
        let mut text = self.path_parameters(path);
        if let Some(query) = query.strip_prefix(b"?") {
            text.push(b'?');
            let query = self.form(query, false).unwrap_or_else(|| query.to_vec());
            text.extend(self.json(&query).unwrap_or(query));
        }
        self.digits(&text, false).unwrap_or(text)
    }

    /// The value of a header; its name in any case.
    pub(super) fn header(&mut self, name: &[u8], value: &[u8]) -> Vec<u8> {
        if name.eq_ignore_ascii_case(b"cookie") {
            return self.cookies(value);
        }
        if self.is_secret(name) {
            return if value.is_empty() { Vec::new() } else { MASK.to_vec() };
        }
        let matched = matches!(self.target.input, Input::Header(header) if header.eq_ignore_ascii_case(name));
        let text = self.text(value, matched);
        if matched && text.is_some() {
            self.changed.clone_from(&text);
        }
        let text = text.unwrap_or_else(|| value.to_vec());
        self.digits(&text, false).unwrap_or(text)
    }

    /// The body of a request; `content_type` is the value of that header.
    pub(super) fn body(&mut self, content_type: &[u8], body: &[u8]) -> Vec<u8> {
        let kind = Kind::of(content_type, body);
        let pass = |text: Vec<u8>, masked: Option<Vec<u8>>| masked.unwrap_or(text);
        let mut text = body.to_vec();
        match &kind {
            Kind::Multipart(boundary) => {
                let masked = self.multipart(&text, Some(boundary.as_slice()));
                text = pass(text, masked);
            }
            Kind::Form => {
                let masked = self.form(&text, false);
                text = pass(text, masked);
            }
            Kind::Other => {
                let masked = self.multipart(&text, None);
                text = pass(text, masked);
                let masked = self.form(&text, true);
                text = pass(text, masked);
            }
            Kind::Json | Kind::Xml => {}
        }
        if matches!(kind, Kind::Xml | Kind::Other) {
            let masked = self.xml(&text);
            text = pass(text, masked);
        }
        let masked = self.json(&text);
        text = pass(text, masked);
        let reading = if kind == Kind::Xml { Reading::Words } else { Reading::Addresses };
        if kind != Kind::Form {
            let masked = self.pairs(&text, reading);
            text = pass(text, masked);
        }
        let document = matches!(text.trim_ascii_start().first(), Some(b'{' | b'['));
        self.digits(&text, document).unwrap_or(text)
    }

    /// What is shown in place of what the rule has seen: the input itself, masked, where it holds secrets. A transformed text may have
    /// lost the marks that they are found by. Called last; `uri` and `body` are both whole and masked.
    pub(super) fn shown(self, uri: [&[u8]; 2], body: [&[u8]; 2]) -> Option<Vec<u8>> {
        if self.target.is_secret(self.sanitised) {
            return Some(MASK.to_vec());
        }
        let instead = |[whole, masked]: [&[u8]; 2]| (whole != masked).then(|| masked.to_vec());
        match self.target.input {
            Input::Uri => instead(uri),
            Input::Body => instead(body),
            _ => self.changed,
        }
    }

    /// What a rule has seen of an input in which no secret was found.
    pub(super) fn value(&mut self, value: &[u8]) -> Vec<u8> {
        self.text(value, true).unwrap_or_else(|| value.to_vec())
    }

    /// The message of a rule in which no secret that matched is shown.
    pub(super) fn message(&mut self, msg: &[u8]) -> Vec<u8> {
        self.text(msg, false).unwrap_or_else(|| msg.to_vec())
    }

    /// Text within a value: documents in it, and names and values. `None` if nothing is masked. If it `matched`, it stays as far as it can.
    fn text(&mut self, text: &[u8], matched: bool) -> Option<Vec<u8>> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth = self.depth.saturating_add(1);
        let json = self.json(text);
        let reading = if matched { Reading::Addresses } else { Reading::Words };
        let pairs = self.pairs(json.as_deref().unwrap_or(text), reading);
        self.depth = self.depth.saturating_sub(1);
        pairs.or(json)
    }

    fn is_secret(&self, name: &[u8]) -> bool {
        is_secret(name) || self.sanitised.iter().any(|other| other.eq_ignore_ascii_case(name))
    }
}

impl Kind {
    fn of(content_type: &[u8], body: &[u8]) -> Self {
        let lower = content_type.to_ascii_lowercase();
        let names = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
        match body.trim_ascii_start().first() {
            _ if names(b"multipart/") && body.windows(2).any(|two| two == b"--") => {
                Self::Multipart(multipart::boundary(content_type).to_vec())
            }
            _ if names(b"x-www-form-urlencoded") => Self::Form,
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') => Self::Xml,
            _ => Self::Other,
        }
    }
}

/// A copy of a text with parts replaced.
struct Edited<'t> {
    text: &'t [u8],
    out: Vec<u8>,
    /// How much of the text is in the copy.
    copied: usize,
    changed: bool,
}

impl<'t> Edited<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, out: Vec::new(), copied: 0, changed: false }
    }

    /// Puts a text in the place of the bytes from `start` to `end`. Places come in order.
    fn replace(&mut self, start: usize, end: usize, by: &[u8]) {
        self.out.extend_from_slice(self.text.get(self.copied..start).unwrap_or_default());
        self.out.extend_from_slice(by);
        self.copied = end;
        self.changed = true;
    }

    /// Puts [`MASK`] in the place of the bytes, if there are any.
    fn mask(&mut self, start: usize, end: usize) {
        if start < end {
            self.replace(start, end, MASK);
        }
    }

    /// `None` if nothing was replaced.
    fn finish(mut self) -> Option<Vec<u8>> {
        self.out.extend_from_slice(self.text.get(self.copied..).unwrap_or_default());
        self.changed.then_some(self.out)
    }
}

/// Where a byte is, from a place on.
fn find(text: &[u8], byte: u8, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.iter().position(|other| *other == byte).map(|at| from.saturating_add(at))
}

#[cfg(test)]
mod tests;
