//! Methods that a request names beside its own: Symfony, Laravel, Rack, Spring, Slim and others take them in place of `POST`.

pub use names::{METHOD_HEADERS, is_preflight};

use crate::check::Head;
use crate::compiled::Contract;
use crate::json::{Document, Kind};
use crate::param::{Place, unescape};
use crate::percent::decode;
use crate::query::pair;
use crate::route::{Found, Matched};

/// The parameter or field that names one.
const PARAMETER: &[u8] = b"_method";
/// The methods that it may name. An application may have given it another meaning, as it may not to the headers.
pub(crate) const METHODS: [&[u8]; 14] = [
    b"GET", b"HEAD", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"LINK", b"UNLINK", b"PURGE",
    b"COPY", b"MOVE", b"QUERY",
];

/// The most methods that are taken of one request: more than any path has, so that with as many one of them is not declared.
const MAX_NAMED: usize = 16;

/// The forms in which a backend may read fields of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms {
    /// As pairs (`application/x-www-form-urlencoded`).
    pub pairs: bool,
    /// The media type says nothing: it may be something else as well.
    pub untyped: bool,
    /// As parts (`multipart/form-data`).
    pub parts: bool,
    /// As the members of a JSON object, which Laravel takes for fields.
    pub members: bool,
}

impl Forms {
    /// The forms of a media type, which is the whole header. Parsers cut it at different bytes, so a type counts anywhere in it. Without
    /// one a body is pairs: Rack reads it so.
    #[must_use]
    pub fn of(content_type: &[u8]) -> Self {
        let lower = content_type.to_ascii_lowercase();
        let has = |part: &[u8]| memchr::memmem::find(&lower, part).is_some();
        let untyped = lower.trim_ascii().is_empty();
        let pairs = untyped || has(b"x-www-form-urlencoded");
        Self { pairs, untyped, parts: has(b"multipart/"), members: has(b"json") }
    }

    /// Whether a body is said to be pairs.
    #[must_use]
    pub fn typed_pairs(self) -> bool {
        self.pairs && !self.untyped
    }

    /// Whether a body has none of them.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Methods that a request names beside its own, each once, at most [`MAX_NAMED`].
struct Named<'m> {
    own: &'m [u8],
    methods: Vec<Vec<u8>>,
}

impl<'m> Named<'m> {
    fn beside(own: &'m [u8]) -> Self {
        Self { own, methods: Vec::new() }
    }

    fn add(&mut self, value: &[u8]) {
        if self.methods.len() >= MAX_NAMED {
            return;
        }
        let value = value.trim_ascii().to_ascii_uppercase();
        if !value.is_empty() && value != self.own && !self.methods.contains(&value) {
            self.methods.push(value);
        }
    }

    /// Adds the value of a field if it is a common method.
    fn add_common(&mut self, value: &[u8]) {
        let value = value.trim_ascii();
        if METHODS.iter().any(|method| value.eq_ignore_ascii_case(method)) {
            self.add(value);
        }
    }

    /// Adds what the fields of a query or a form name.
    fn add_pairs(&mut self, text: &[u8]) {
        methods_of_query(text).for_each(|value| self.add_common(&value));
    }

    /// Adds what the parts of a multipart body name. As parsers differ in what is a part, each `Content-Disposition` in it counts, with
    /// the line behind the next empty one as its value.
    fn add_parts(&mut self, body: &[u8]) {
        let (mut in_head, mut is_named, mut is_value) = (false, false, false);
        for line in body.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if is_value {
                self.add_common(line);
                is_value = false;
            }
            in_head |= starts_part(line);
            if in_head && line.is_empty() {
                (in_head, is_named, is_value) = (false, false, is_named);
            } else if in_head {
                is_named |= has_method_name(line);
            }
        }
    }

    /// Adds what the members of a JSON object name. What is no JSON names nothing.
    fn add_members(&mut self, body: &[u8]) {
        if !may_have_member(body) {
            return;
        }
        let Ok(document) = Document::read(body) else { return };
        for (name, value) in document.root().members() {
            if value.kind() == Kind::String && name.string().eq_ignore_ascii_case(PARAMETER) {
                self.add_common(&value.string());
            }
        }
    }
}

/// What the methods lead to that a request names beside its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// The methods of the path, for `Allow`, if it does not have one of those that are named.
    pub allow: Option<String>,
    /// The operations of the path that are named in front of such a method, beside its own.
    pub operations: Vec<u32>,
}

impl Contract {
    /// What the head of a request names: headers, which Yii and CakePHP take whatever its method is, and of `POST` the query. A header or a
    /// parameter that the operation declares is checked by its schema alone.
    #[must_use]
    pub fn named_in_head(&self, matched: &Matched<'_>, method: &[u8], path: &[u8], head: &Head<'_>) -> Others {
        let Some(operation) = self.operation(matched.operation) else { return Others::default() };
        let declares = |place: Place, name: &[u8]| {
            let mut own = operation.parameters.iter().filter(|record| record.place == place as u32);
            own.any(|record| self.text(record.name) == name)
        };
        let mut named = Named::beside(method);
        for header in METHOD_HEADERS.iter().filter(|header| !declares(Place::Header, header.as_bytes())) {
            if let Some(values) = (head.header)(header) {
                methods_of_header(&values).for_each(|value| named.add(value));
            }
        }
        if method == b"POST" && !declares(Place::Query, PARAMETER) {
            named.add_pairs(head.query);
        }
        self.others(&named, matched.operation, path)
    }

    /// What the body of a `POST` request names. A method that the operation declares for the field does not count. Linear in the body,
    /// of which a part may be given.
    #[must_use]
    pub fn named_in_body(&self, operation: u32, path: &[u8], forms: Forms, body: &[u8]) -> Others {
        let mut named = Named::beside(b"POST");
        if forms.pairs {
            named.add_pairs(body);
        }
        if forms.parts {
            named.add_parts(body);
        }
        if forms.members {
            named.add_members(body);
        }
        let declared = self.operation(operation).and_then(|operation| operation.body.as_ref());
        let declared = declared.map_or(&[][..], |body| body.methods.as_slice());
        named.methods.retain(|method| !declared.iter().any(|own| self.text(*own) == method.as_slice()));
        self.others(&named, operation, path)
    }

    /// Looks up to the first method that the path does not have.
    fn others(&self, named: &Named<'_>, own: u32, path: &[u8]) -> Others {
        let mut others = Others::default();
        for method in &named.methods {
            match self.find(method, path, false) {
                Found::MethodNotAllowed(allow) => {
                    others.allow = Some(allow);
                    break;
                }
                Found::Operation(other) if other.operation != own && !others.operations.contains(&other.operation) => {
                    others.operations.push(other.operation);
                }
                _ => {}
            }
        }
        others
    }
}

/// The methods that the values of one of [`METHOD_HEADERS`] name, in their own case.
pub fn methods_of_header(values: &[u8]) -> impl Iterator<Item = &[u8]> {
    values.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|value| !value.is_empty())
}

/// The methods that the fields `_method` of a query or a form name, in their own case. Some backends part fields at `;` as well.
pub fn methods_of_query(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    text.split(|byte| matches!(byte, b'&' | b';')).filter_map(|part| {
        let (name, value) = pair(part);
        names_method(&name).then(|| unescape(value, true).trim_ascii().to_vec())
    })
}

/// Whether backends take a field for the one that names a method: PHP leaves out blanks in front of it and reads `.` as `_`,
/// Slim wants `_METHOD`, Rack leaves out brackets around it, some end it at a NUL.
pub(crate) fn names_method(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_left_out = |byte: &&u8| byte.is_ascii_whitespace() || matches!(byte, 0x0b | b'[' | b']');
    let start = name.iter().take_while(is_left_out).count();
    let end = name.iter().rev().take_while(|byte| **byte == b']').count();
    match name.get(start..name.len() - end.min(name.len() - start)).and_then(<[u8]>::split_first) {
        Some((b'_' | b'.', rest)) => rest.eq_ignore_ascii_case(b"method"),
        _ => false,
    }
}

/// Whether a line begins the head of a part, as far as it matters here.
fn starts_part(line: &[u8]) -> bool {
    const HEADER: &[u8] = b"content-disposition";
    line.trim_ascii_start().get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER))
}

/// Whether a line of the head of a part has a name that [`names_method`], with or without quotes, escapes and blanks.
fn has_method_name(line: &[u8]) -> bool {
    let plain: Vec<u8> = decode(line).iter().filter(|byte| **byte != b'\\').copied().collect();
    let names = plain.split(|byte| matches!(byte, b'"' | b'\'' | b'=' | b';' | b','));
    let mut names = names.map(|name| name.trim_ascii_end());
    names.any(names_method)
}

/// Whether JSON may have a member that names a method: it has the name, or escapes that may hide a letter of it (`\u0040` to `\u007f`).
fn may_have_member(body: &[u8]) -> bool {
    let is_letter = |at: usize| matches!(body.get(at + 4), Some(b'4'..=b'7'));
    let is_name =
        |at: usize| body.get(at..at + PARAMETER.len()).is_some_and(|name| name.eq_ignore_ascii_case(PARAMETER));
    memchr::memmem::find_iter(body, b"\\u00").any(is_letter) || memchr::memchr_iter(b'_', body).any(is_name)
}
