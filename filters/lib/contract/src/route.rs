//! From a path to its operation: literal segments win over templates, with backtracking.

use std::borrow::Cow;

use crate::compiled::Contract;
use crate::percent::decode;
use crate::record::{PartialSegment, RouteRecord};

/// The most segments of a path.
const MAX_SEGMENTS: usize = 128;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// An operation.
    Operation(Matched<'p>),
    /// Nothing of the contract has this path.
    UnknownPath,
    /// The path is there, with other methods: these, for `Allow`.
    MethodNotAllowed(String),
    /// A preflight of CORS that the contract does not declare.
    Preflight,
}

/// An operation, and the values of its path's parameters.
#[derive(Debug, PartialEq, Eq)]
pub struct Matched<'p> {
    /// Its number.
    pub operation: u32,
    /// Raw, in the order of the path.
    pub(crate) values: Vec<Cow<'p, [u8]>>,
}

/// Whether a segment, of which the escapes are undone, is no value: backends read another path where it has a dot segment, also behind a
/// slash that was escaped, and a shorter one where it has a NUL.
fn leads_elsewhere(plain: &[u8]) -> bool {
    if !plain.iter().any(|byte| matches!(byte, b'.' | b'%' | 0)) {
        return false;
    }
    // Some undo escapes of escapes as well.
    let plain = decode(plain);
    let mut parts = plain.split(|byte| matches!(byte, b'/' | b'\\'));
    let is_dots = |part: &[u8]| matches!(part.split(|byte| *byte == b';').next(), Some(b"." | b".."));
    plain.contains(&0) || parts.any(is_dots)
}

impl Matched<'_> {
    /// The same path with another operation that it has.
    #[must_use]
    pub fn of(&self, operation: u32) -> Self {
        Self { operation, values: self.values.clone() }
    }
}

impl Contract {
    /// Finds the operation of a request. `path` has no query. `preflight` is whether an `OPTIONS` request is one of CORS.
    #[must_use]
    pub fn find<'p>(&self, method: &[u8], path: &'p [u8], preflight: bool) -> Found<'p> {
        let Some(path) = path.strip_prefix(b"/") else { return Found::UnknownPath };
        let mut values = Vec::new();
        let too_many = memchr::memchr_iter(b'/', path).nth(MAX_SEGMENTS - 1).is_some();
        let found = if too_many { None } else { self.walk(0, Some(path), &mut values) };
        let Some(node) = found else { return Found::UnknownPath };
        let of = |method: &[u8]| node.methods.iter().find(|entry| self.text(entry.name) == method);
        let found = of(method).or_else(|| if method == b"HEAD" { of(b"GET") } else { None });
        match found {
            Some(entry) => Found::Operation(Matched { operation: entry.schema, values }),
            None if method == b"OPTIONS" && preflight => Found::Preflight,
            None => {
                let mut methods: Vec<String> = node.methods.iter().map(|entry| self.shown(entry.name)).collect();
                if methods.iter().any(|method| method == "GET") && !methods.iter().any(|method| method == "HEAD") {
                    methods.push("HEAD".to_owned());
                }
                methods.sort();
                Found::MethodNotAllowed(methods.join(", "))
            }
        }
    }

    /// Walks from a node along a path; `None` is the end behind its last segment.
    fn walk<'c, 'p>(
        &'c self,
        node: u32,
        path: Option<&'p [u8]>,
        values: &mut Vec<Cow<'p, [u8]>>,
    ) -> Option<&'c RouteRecord> {
        let route = self.route(node)?;
        let Some(path) = path else {
            return (!route.methods.is_empty()).then_some(route);
        };
        let (segment, rest) = match memchr::memchr(b'/', path) {
            Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
            None => (path, None),
        };
        let plain = decode(segment);
        // Servlets leave out what is behind a `;` of a segment.
        let bare = memchr::memchr(b';', &plain).and_then(|at| plain.get(..at));
        for text in std::iter::once(plain.as_ref()).chain(bare) {
            let literal = route.literals.binary_search_by(|entry| self.text(entry.name).cmp(text));
            if let Some(entry) = literal.ok().and_then(|place| route.literals.get(place))
                && let Some(found) = self.walk(entry.schema, rest, values)
            {
                return Some(found);
            }
        }
        if segment.is_empty() || leads_elsewhere(&plain) {
            return None;
        }
        let before = values.len();
        for partial in &route.partials {
            if self.partial(partial, segment, values)
                && let Some(found) = self.walk(partial.child, rest, values)
            {
                return Some(found);
            }
            values.truncate(before);
        }
        values.push(Cow::Borrowed(segment));
        let found = route.parameter.and_then(|child| self.walk(child, rest, values));
        if found.is_none() {
            values.truncate(before);
        }
        found
    }

    /// Whether a segment has the texts, with something for each parameter: as it is, or without its escapes.
    fn partial<'p>(&self, partial: &PartialSegment, segment: &'p [u8], values: &mut Vec<Cow<'p, [u8]>>) -> bool {
        let before = values.len();
        if let Some(parts) = self.parts(partial, segment) {
            values.extend(parts.into_iter().map(Cow::Borrowed));
            return true;
        }
        if !segment.contains(&b'%') {
            return false;
        }
        let plain = decode(segment);
        let Some(parts) = self.parts(partial, &plain) else { return false };
        // Values are decoded later: what is decoded already is escaped again.
        let again = |part: &[u8]| {
            part.iter().flat_map(|byte| if *byte == b'%' { b"%25".to_vec() } else { vec![*byte] }).collect::<Vec<u8>>()
        };
        values.extend(parts.into_iter().map(|part| Cow::Owned(again(part))));
        values.len() > before
    }

    fn parts<'s>(&self, partial: &PartialSegment, segment: &'s [u8]) -> Option<Vec<&'s [u8]>> {
        let (first, others) = partial.texts.split_first()?;
        let (last, between) = others.split_last()?;
        let mut rest = segment.strip_prefix(self.text(*first))?.strip_suffix(self.text(*last))?;
        let mut parts = Vec::with_capacity(others.len());
        for text in between {
            let text = self.text(*text);
            // Nothing between two parameters: the first one takes a byte.
            let behind = rest.get(1..)?;
            let at = if text.is_empty() { 0 } else { memchr::memmem::find(behind, text)? };
            parts.push(rest.get(..at + 1)?);
            rest = rest.get(at + 1 + text.len()..)?;
        }
        parts.push(rest);
        (!rest.is_empty()).then_some(parts)
    }
}
