//! The request: line, headers, body.

use std::sync::Arc;

use super::arena::Value;
use super::build::Engine;
use super::hot_cache::{HeaderKind, is_same};
use super::limits::{COOKIES, HEADERS};
use super::oversize::RestOf;
use super::report::Intervention;
use super::store::Entry;
use super::transaction::{ArgumentSource, Transaction};
use crate::body::{Charset, cookies, json, urlencoded, xml};
use crate::program::{EngineMode, XmlArguments};
use crate::transform::Transform;
use crate::vocabulary::Variable;

impl Transaction {
    /// Sets the request line: the target is a path with a query, or an absolute URL; the protocol is `HTTP/1.1`.
    pub fn request_line(&mut self, method: &[u8], uri: &[u8], protocol: &[u8]) {
        self.borrow_hot_cache();
        self.arena.budget.bring(uri.len());
        self.arena.budget.charge_parsing(uri.len());
        let line = [method, uri, protocol].join(&b' ');
        self.set_scalar_bytes(Variable::RequestLine, line);
        let method = self.arena.push_cacheable(method);
        self.set_scalar(Variable::RequestMethod, method);
        let protocol = self.arena.push_cacheable(protocol);
        self.set_scalar(Variable::RequestProtocol, protocol);
        let raw = self.arena.push(uri);
        self.set_scalar(Variable::RequestUriRaw, raw);
        let (path, query) = match uri.iter().position(|&byte| byte == b'?') {
            Some(at) => (uri.get(..at).unwrap_or_default(), uri.get(at + 1..)),
            None => (uri, None),
        };
        // As in ModSecurity v3 the path has no fragment, REQUEST_URI is decoded as a whole, and QUERY_STRING is not. The
        // query keeps what follows a `#`: an application that takes it for data must not be alone with it.
        let (path, has_fragment) = match path.iter().position(|&byte| byte == b'#') {
            Some(at) => (path.get(..at).unwrap_or_default(), true),
            None => (path, false),
        };
        let filename = percent_decoded(path);
        let mut request_uri = without_authority(&filename).to_vec();
        if let Some(query) = query.filter(|_| !has_fragment) {
            let end = query.iter().position(|&byte| byte == b'#').unwrap_or(query.len());
            request_uri.push(b'?');
            request_uri.extend_from_slice(&percent_decoded(query.get(..end).unwrap_or_default()));
        }
        // Usually nothing is encoded: both variables then have the same value, and share its results.
        let request_uri = if is_same(&request_uri, uri) { raw } else { self.arena.push(request_uri) };
        self.set_scalar(Variable::RequestUri, request_uri);
        let separator = filename.iter().rposition(|&byte| matches!(byte, b'/' | b'\\'));
        let basename = separator.and_then(|at| filename.get(at + 1..)).unwrap_or_default().to_vec();
        self.set_scalar_bytes(Variable::RequestBasename, basename);
        let filename = self.arena.push(filename);
        self.set_scalar(Variable::RequestFilename, filename);
        self.set_scalar(Variable::PathInfo, filename);
        self.set_scalar_bytes(Variable::UrlencodedError, *b"0");
        if let Some(query) = query {
            self.set_scalar_bytes(Variable::QueryString, query);
            self.form_arguments(query, ArgumentSource::Query);
        }
    }

    /// Adds a header, in the order and the case in which it came.
    pub fn request_header(&mut self, name: &[u8], value: &[u8]) {
        if self.request_headers.entries.len() >= HEADERS {
            self.left_out("REQUEST_HEADERS", "headers", HEADERS);
            return;
        }
        self.borrow_hot_cache();
        self.arena.budget.bring(name.len() + value.len());
        self.arena.budget.charge_parsing(name.len() + value.len());
        let (name_value, kind) = self.arena.push_header_name(name);
        let header = match kind.is_cacheable() {
            true => self.arena.push_cacheable(value),
            false => self.arena.push(value),
        };
        self.request_headers.push_header(name, name_value, header);
        match kind {
            HeaderKind::Cacheable | HeaderKind::Other => {}
            HeaderKind::Cookie => {
                let (arena, entries, mut whole) = (&mut self.arena, &mut self.cookies.entries, true);
                let mut add = |name: &[u8], value: &[u8]| {
                    whole = entries.len() < COOKIES;
                    if whole {
                        let name = arena.push_name(name);
                        let value = arena.push(value);
                        entries.push(Entry { name, value });
                    }
                };
                cookies::parse(value, &mut add);
                // The value without quotes, as applications read it that unquote cookies.
                if !self.declared_bodies_only {
                    cookies::parse_quoted(value, add);
                }
                if !whole {
                    self.left_out("REQUEST_COOKIES", "cookies", COOKIES);
                }
            }
            HeaderKind::Host => self.set_scalar_bytes(Variable::ServerName, host_name(value)),
            HeaderKind::Authorization => {
                let scheme = value.split(u8::is_ascii_whitespace).next().unwrap_or_default();
                self.set_scalar_bytes(Variable::AuthType, scheme);
                if let Some(user) = basic_user(value) {
                    self.set_scalar_bytes(Variable::RemoteUser, user);
                }
            }
            HeaderKind::ContentType => {
                self.content_type = header;
                self.charset = self.charset.and(Charset::of_media_type(value));
                if has_prefix(value, b"multipart/form-data") {
                    self.set_scalar_bytes(Variable::ReqbodyProcessor, *b"MULTIPART");
                } else if has_prefix(value, b"application/x-www-form-urlencoded") {
                    self.set_scalar_bytes(Variable::ReqbodyProcessor, *b"URLENCODED");
                }
            }
        }
    }

    /// The headers that were added, in order.
    pub fn added_request_headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let entries = self.request_headers.entries.iter();
        entries.map(|entry| (self.arena.get(entry.name), self.arena.get(entry.value)))
    }

    /// All headers are there: runs phase 1.
    pub fn request_headers(&mut self) -> Option<Intervention> {
        self.run_phase(1)
    }

    /// Whether [`Transaction::request_body`] looks at the body. Known after phase 1.
    pub fn wants_request_body(&self) -> bool {
        self.request_body_access && self.intervention.is_none() && self.runs()
    }

    pub(super) fn runs(&self) -> bool {
        self.mode != EngineMode::Off
    }

    pub(super) fn body_error(&mut self, processor: &str, message: &str) {
        self.set_scalar_bytes(Variable::ReqbodyError, *b"1");
        self.set_scalar_bytes(Variable::ReqbodyProcessorError, *b"1");
        let message = format!("{processor} parsing error: {message}").into_bytes();
        let message = self.arena.push(message);
        self.set_scalar(Variable::ReqbodyErrorMsg, message);
        self.set_scalar(Variable::ReqbodyProcessorErrorMsg, message);
    }

    pub(super) fn too_many_arguments(&mut self, collection: &'static str) {
        self.left_out(collection, "SecArgumentsLimit", self.engine.settings.arguments_limit as usize);
    }

    /// The number of further arguments within the limit.
    pub(super) fn room(&self) -> usize {
        (self.engine.settings.arguments_limit as usize).saturating_sub(self.arguments.len())
    }

    pub(super) fn form_arguments(&mut self, text: &[u8], source: ArgumentSource) {
        let limits = urlencoded::Limits { arguments: self.room() };
        let separator = self.engine.settings.argument_separator;
        let (mut arguments, mut foreign) = (self.arguments_to_add(), false);
        let outcome = urlencoded::parse(text, separator, &limits, |name, value| {
            foreign |= names_foreign_charset(&name, &value);
            arguments.add_named(source, &name, &value);
        });
        if foreign {
            self.charset = Charset::Foreign;
        }
        self.semicolon_arguments(text, source);
        if outcome.limit_exceeded {
            let of_query = source == ArgumentSource::Query;
            self.too_many_arguments(if of_query { "ARGS_GET" } else { "ARGS_POST" });
            if !of_query {
                self.body_error("URLENCODED", TOO_MANY_ARGUMENTS);
            }
        }
        if outcome.invalid_encodings > 0 {
            self.set_scalar_bytes(Variable::UrlencodedError, *b"1");
        }
    }

    /// The other reading of values with a `;` in front of something like another argument: older Python, Ruby, Go and Perl separate
    /// arguments there as well.
    fn semicolon_arguments(&mut self, text: &[u8], source: ArgumentSource) {
        let separator = self.engine.settings.argument_separator;
        if separator != b'&' || memchr::memchr(b';', text).is_none() || self.declared_bodies_only {
            return;
        }
        self.arena.budget.charge_parsing(text.len());
        for piece in text.split(|byte| *byte == b'&') {
            let Some(first) = memchr::memchr(b';', piece) else { continue };
            if memchr::memchr(b'=', piece.get(first..).unwrap_or_default()).is_none() {
                continue;
            }
            let limits = urlencoded::Limits { arguments: self.room() };
            let mut arguments = self.arguments_to_add();
            // What is in front of the first one is seen with its name already, and so is a name alone.
            let behind = piece.get(first + 1..).unwrap_or_default();
            let outcome = urlencoded::parse(behind, b';', &limits, |name, value| {
                if !value.is_empty() {
                    arguments.add_named(source, &name, &value);
                }
            });
            if outcome.limit_exceeded {
                self.too_many_arguments(if source == ArgumentSource::Query { "ARGS_GET" } else { "ARGS_POST" });
                return;
            }
        }
    }

    pub(super) fn parse_json(&mut self, body: &[u8], complete: bool) {
        let limits = json::Limits {
            depth: self.engine.settings.json_depth_limit as usize,
            arguments: self.room(),
            ..json::Limits::default()
        };
        let mut arguments = self.arguments_to_add();
        let parsed = json::parse(body, &limits, |argument| arguments.add_json(argument));
        match &parsed {
            Ok(outcome) if outcome.limit_exceeded => {
                self.too_many_arguments("ARGS");
                self.body_error("JSON", TOO_MANY_ARGUMENTS);
            }
            Err(error) => {
                match error.message {
                    json::TOO_DEEP => self.left_out("ARGS", "SecRequestBodyJsonDepthLimit", limits.depth),
                    json::PATH_TOO_LONG => self.left_out("ARGS", "bytes of a JSON path", limits.name_length),
                    // The number of arguments before the error is unknown.
                    _ if self.room() == 0 => self.too_many_arguments("ARGS"),
                    _ => {}
                }
                if complete {
                    self.body_error("JSON", &error.to_string());
                } else {
                    self.scan_unread(RestOf::Json, body.get(error.reported..).unwrap_or_default());
                }
            }
            Ok(_) => {}
        }
    }

    pub(super) fn parse_xml(&mut self, body: &[u8], raw: Value, complete: bool) {
        let engine = Arc::clone(&self.engine);
        let limits = xml::Limits { doctype: self.xml_doctype, ..xml::Limits::default() };
        let (mut found, error) = match engine.paths.is_empty() && self.xml_arguments == XmlArguments::Off {
            true => xml::parse(body, &limits),
            false => {
                let (found, shape, error) = xml::parse_tree(body, &limits);
                if error.is_none() {
                    self.xml_elements(&engine, &found, &xml::Tree::new(&shape, &found));
                }
                (found, error)
            }
        };
        if let Some(limit) = error.as_ref().and_then(|error| error.limit) {
            self.left_out("XML", limit.what, limit.most);
        }
        for literal in std::mem::take(&mut found.literals) {
            let value = self.arena.push_once(&literal);
            self.arena.budget.keep(size_of::<Value>());
            self.xml_literals.push(value);
        }
        // Attributes are inspected in any case, as they are no arguments.
        for attribute in found.attributes {
            let value = self.arena.push_once(&attribute);
            self.arena.budget.keep(size_of::<Value>());
            self.xml_attributes.push(value);
        }
        // With SecParseXmlIntoArgs OnlyArgs, arguments replace the text if it was parsed without error.
        if error.is_none() && self.xml_arguments == XmlArguments::Only {
            if self.scalar_is(Variable::ReqbodyError, b"1") {
                self.set_scalar(Variable::RequestBody, raw);
            }
            return;
        }
        if error.is_none() || !found.text.is_empty() {
            self.xml_text = Some(self.arena.push(found.text));
        }
        let Some(error) = error else { return };
        // The text before the error stays: a lenient application reads it.
        self.set_scalar(Variable::RequestBody, raw);
        if complete {
            self.body_error("XML", &error.to_string());
        } else {
            // Inspects the rest, from the tag or text that could not be read.
            let read = body.get(..error.offset).unwrap_or(body);
            let start = memchr::memrchr(b'<', read).unwrap_or(0);
            self.scan_unread(RestOf::Xml, body.get(start..).unwrap_or_default());
        }
    }

    /// Evaluates the XPath expressions of the rules, and adds the arguments.
    fn xml_elements(&mut self, engine: &Engine, found: &xml::Xml, tree: &xml::Tree) {
        if self.xml_arguments != XmlArguments::Off {
            let length = json::Limits::default().name_length;
            let room = self.room();
            let mut arguments = self.arguments_to_add();
            let whole = tree.arguments(room, length, |argument| arguments.add_json(argument));
            if !whole {
                self.too_many_arguments("ARGS");
                self.body_error("XML", TOO_MANY_ARGUMENTS);
            }
        }
        if self.xml_arguments == XmlArguments::Only {
            return;
        }
        // Nested elements repeat their text: the results of a path may exceed the document many times.
        let default = xml::PathLimits::default();
        let limits = xml::PathLimits { bytes: default.bytes.min(64 * 1024 + 4 * found.text.len()), ..default };
        for ((_, path), at) in engine.paths.iter().zip(0..) {
            self.arena.budget.charge_parsing(found.text.len());
            match tree.find(path, &limits) {
                Some(values) => {
                    for value in values {
                        let value = self.arena.push(value);
                        self.xml_nodes.push((at, value));
                    }
                }
                None => {
                    self.left_out("XML", "nodes of a path", limits.nodes);
                    self.body_error("XML", "a path of the rules leads to more than is inspected");
                }
            }
        }
    }

    pub(super) fn scalar_is(&mut self, variable: Variable, wanted: &[u8]) -> bool {
        let value = self.scalar(variable);
        self.arena.get(value) == wanted
    }
}

/// Content that is not inspected has to be reported.
pub(super) const TOO_MANY_ARGUMENTS: &str = "there are more arguments than SecArgumentsLimit allows";

/// Whether an argument is the one in which a form names its character set (HTML, section 4.10.22.5), and it is a foreign one.
pub(super) fn names_foreign_charset(name: &[u8], value: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"_charset_") && Charset::named(value) == Charset::Foreign
}

/// Whether the value begins with the text, in any case.
fn has_prefix(value: &[u8], text: &[u8]) -> bool {
    value.trim_ascii_start().get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
}

/// The user of Basic credentials.
fn basic_user(value: &[u8]) -> Option<Vec<u8>> {
    let credentials = has_prefix(value, b"basic ").then(|| value.trim_ascii().get(6..)).flatten()?;
    let decoded = Transform::Base64Decode.apply(credentials.trim_ascii());
    let end = decoded.iter().position(|&byte| byte == b':').unwrap_or(decoded.len());
    decoded.get(..end).filter(|user| !user.is_empty()).map(<[u8]>::to_vec)
}

/// The host without its port; an IPv6 address keeps its brackets.
fn host_name(host: &[u8]) -> &[u8] {
    let end = match host.first() {
        Some(b'[') => host.iter().position(|&byte| byte == b']').map(|at| at + 1),
        _ => host.iter().position(|&byte| byte == b':'),
    };
    end.and_then(|end| host.get(..end)).unwrap_or(host)
}

/// The path of an absolute URL; every other target as it is.
fn without_authority(uri: &[u8]) -> &[u8] {
    if uri.first() == Some(&b'/') {
        return uri;
    }
    let scheme = uri.windows(3).position(|window| window == b"://");
    let rest = scheme.and_then(|at| uri.get(at + 3..)).unwrap_or_default();
    let path = rest.iter().position(|&byte| byte == b'/').and_then(|at| rest.get(at..));
    path.unwrap_or(uri)
}

/// Decodes `%xx`; what is not hexadecimal stays. `+` is itself in a path.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| {
        byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|digit| u8::try_from(digit).ok())
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_percent_encoding_leniently() {
        assert_eq!(percent_decoded(b"/a%2fb%zz%4"), b"/a/b%zz%4");
    }

    #[test]
    fn reads_the_user_of_basic_credentials() {
        assert_eq!(basic_user(b"Basic dTpw").as_deref(), Some(&b"u"[..]));
        assert_eq!(basic_user(b"Bearer dTpw"), None);
    }

    #[test]
    fn finds_host_and_path() {
        assert_eq!(host_name(b"h.example:8080"), b"h.example");
        assert_eq!(host_name(b"[::1]:80"), b"[::1]");
        assert_eq!(without_authority(b"http://h/a/b"), b"/a/b");
        assert_eq!(without_authority(b"*"), b"*");
    }
}
