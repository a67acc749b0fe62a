//! The object that a request asks for: by the declared paths, then by the matched operation of an API contract, then by its shape.

use std::borrow::Cow;
use std::rc::Rc;

use contract::{METHOD_HEADERS, is_preflight, methods_of_header, methods_of_query};
use exchange::{Exchange, MatchedOperation, Request};
use snapshot::content_hash;

use crate::messages::ObjectPath;
use crate::shape::Identifier;
use crate::spelling::{Spelling, decoded};
use crate::template::Template;

/// The longest kind that is detected, in bytes.
const MAX_KIND: usize = 200;
/// The kind of what is detected beyond the limits of kinds.
pub(crate) const OTHER_PATHS: &str = "(other paths)";
/// The longest member of a set, in bytes; a longer one is replaced by its SHA-256.
const MAX_MEMBER: usize = 256;

/// How requests name objects.
pub(crate) struct Naming {
    declared: Vec<Declared>,
    /// The methods that declared paths are limited to, each once.
    methods: Vec<String>,
    detects: bool,
}

/// A declared path.
struct Declared {
    template: Template,
    kind: Vec<u8>,
    /// Its name or its template, for people.
    shown: Rc<str>,
    is_named: bool,
    methods: Vec<String>,
    budget: Option<u32>,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object<'p> {
    pub(crate) kind: Kind,
    /// What it is called within its kind, in the order of the path; at least one.
    pub(crate) identifiers: Vec<Identifier<'p>>,
    /// A budget of the declared path.
    pub(crate) budget: Option<u32>,
}

/// The kind of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The same for all spellings: where the kind belongs to, and what it is.
    pub(crate) key: Vec<u8>,
    shown: Shown,
}

/// What a kind is called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    /// By its key from this byte on. Clients have chosen it: there is no end of kinds.
    Detected(usize),
    Declared(Rc<str>),
    Contract(String),
}

impl Kind {
    /// A kind of one route.
    fn of_route(exchange: &Exchange, text: &[u8], shown: Shown) -> Self {
        Self { key: [&key_of_route(exchange), text].concat(), shown }
    }

    /// The kind of all detected paths of a route that are beyond the limits.
    pub(crate) fn other(exchange: &Exchange) -> Self {
        let mut key = key_of_route(exchange);
        let shown = Shown::Detected(key.len());
        key.extend_from_slice(OTHER_PATHS.as_bytes());
        Self { key, shown }
    }

    /// Whether clients have chosen it.
    pub(crate) fn is_detected(&self) -> bool {
        matches!(self.shown, Shown::Detected(_))
    }

    /// What it is called, for people.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match &self.shown {
            Shown::Detected(from) => String::from_utf8_lossy(self.key.get(*from..).unwrap_or_default()),
            Shown::Declared(name) => Cow::Borrowed(name),
            Shown::Contract(template) => Cow::Borrowed(template),
        }
    }
}

/// What the keys of kinds of a route begin with.
fn key_of_route(exchange: &Exchange) -> Vec<u8> {
    let route = &exchange.route;
    let route = if route.id.is_empty() { &route.name } else { &route.id };
    let mut key = Vec::with_capacity(route.len() + MAX_KIND);
    key.extend_from_slice(route.as_bytes());
    key.push(0);
    key
}

impl Object<'_> {
    /// What stands for the object in sets: the same for all spellings.
    pub(crate) fn member(&self) -> Vec<u8> {
        let mut member = self.kind.key.clone();
        for identifier in &self.identifiers {
            member.push(0);
            member.extend_from_slice(&identifier.bytes);
        }
        if member.len() > MAX_MEMBER { content_hash(&member).to_vec() } else { member }
    }
}

impl Naming {
    pub(crate) fn new(paths: &[ObjectPath], detects: bool) -> Result<Self, String> {
        let declared = |path: &ObjectPath| {
            let template = Template::parse(&path.template).map_err(|why| format!("`{}`: {why}", path.template))?;
            let is_named = !path.name.is_empty();
            let shown = if is_named { &path.name } else { &path.template };
            let kind = if is_named { path.name.clone().into_bytes() } else { template.kind() };
            let (shown, methods) = (Rc::from(shown.as_str()), path.methods.clone());
            Ok::<_, String>(Declared { template, kind, shown, is_named, methods, budget: path.budget })
        };
        let mut methods: Vec<String> = paths.iter().flat_map(|path| path.methods.iter().cloned()).collect();
        methods.sort_unstable();
        methods.dedup();
        Ok(Self { declared: paths.iter().map(declared).collect::<Result<_, _>>()?, methods, detects })
    }

    /// Calls `then` with the object of a request, if it names one.
    pub(crate) fn with_object<R>(&self, exchange: &Exchange, then: impl FnOnce(Object<'_>) -> R) -> Option<R> {
        let request = &exchange.request;
        if is_preflight(&request.method, |name| request.headers.get(name).is_some()) {
            return None;
        }
        let Some(spelling) = Spelling::of(request.path_only()) else {
            // Nothing has so many segments; the whole of it is the object.
            let whole = Identifier { bytes: Cow::Borrowed(request.path_only()), number: None };
            let object = Object { kind: Kind::other(exchange), identifiers: vec![whole], budget: None };
            return (self.detects || !self.declared.is_empty()).then(|| then(object));
        };
        if let Some(object) = self.declared(exchange, &spelling) {
            return Some(then(object));
        }
        if let Some(operation) = &exchange.operation {
            // The contract says which segments name an object; a literal one does not, even if it is a number.
            let values: Vec<Cow<'_, [u8]>> = operation.parameters().iter().map(|(_, value)| decoded(value)).collect();
            return of_contract(exchange, operation, &spelling, &values).map(then);
        }
        if !self.detects {
            return None;
        }
        detected(exchange, &spelling).map(then)
    }

    fn declared<'p>(&self, exchange: &Exchange, spelling: &'p Spelling<'_>) -> Option<Object<'p>> {
        let method = exchange.request.method.as_slice();
        let beside = self.methods_beside(&exchange.request);
        let is_one = |known: &String| takes(known, method) || beside.contains(&known.as_str());
        self.declared.iter().find_map(|declared| {
            if !declared.methods.is_empty() && !declared.methods.iter().any(is_one) {
                return None;
            }
            let identifiers = spelling.readings().find_map(|segments| declared.template.find(segments))?;
            let shown = Shown::Declared(Rc::clone(&declared.shown));
            let kind = match declared.is_named {
                // A name is one kind on all routes.
                true => Kind { key: [b"\0name\0", declared.kind.as_slice()].concat(), shown },
                false => Kind::of_route(exchange, &declared.kind, shown),
            };
            Some(Object { kind, identifiers, budget: declared.budget })
        })
    }

    /// Of the methods that declared paths are limited to, those that a request names beside its own: backends run it as one of them.
    fn methods_beside(&self, request: &Request) -> Vec<&str> {
        let mut beside = Vec::new();
        if self.methods.is_empty() {
            return beside;
        }
        let mut add = |named: &[u8]| {
            let named = named.to_ascii_uppercase();
            let known = self.methods.iter().map(String::as_str).filter(|known| takes(known, &named));
            for known in known {
                if !beside.contains(&known) {
                    beside.push(known);
                }
            }
        };
        for values in METHOD_HEADERS.iter().flat_map(|name| request.headers.all(name)) {
            methods_of_header(values).for_each(&mut add);
        }
        // Of other methods than `POST` no framework takes the parameter.
        if request.method == b"POST" {
            methods_of_query(request.query()).for_each(|named| add(&named));
        }
        beside
    }
}

/// Whether a path that is limited to one method takes another one: `HEAD` counts as `GET`.
fn takes(known: &str, method: &[u8]) -> bool {
    known.as_bytes() == method || (method == b"HEAD" && known == "GET")
}

fn of_contract<'v>(
    exchange: &Exchange,
    operation: &MatchedOperation,
    spelling: &Spelling<'_>,
    values: &'v [Cow<'_, [u8]>],
) -> Option<Object<'v>> {
    if values.is_empty() {
        return None;
    }
    let template = operation.template();
    let own = template.split('/').filter(|segment| !segment.is_empty()).count();
    let base = spelling.strict().len().saturating_sub(own);
    let mut text = Vec::new();
    for segment in spelling.strict().iter().take(base) {
        text.push(b'/');
        text.extend(segment.to_ascii_lowercase());
    }
    let mut shown = String::from_utf8_lossy(&text).into_owned();
    shown.push_str(template);
    // Whatever the contract calls its parameters: an object that is detected is of the same kind.
    let mut in_name = false;
    for byte in template.trim_end_matches('/').bytes() {
        match byte {
            b'{' => {
                in_name = true;
                text.extend(b"{id}");
            }
            b'}' => in_name = false,
            _ if in_name => {}
            _ => text.push(byte.to_ascii_lowercase()),
        }
    }
    let identifiers = values.iter().map(|value| Identifier::any(crate::spelling::bare(value))).collect();
    Some(Object { kind: Kind::of_route(exchange, &text, Shown::Contract(shown)), identifiers, budget: None })
}

fn detected<'p>(exchange: &Exchange, spelling: &'p Spelling<'_>) -> Option<Object<'p>> {
    let mut identifiers = Vec::new();
    let mut key = key_of_route(exchange);
    let from = key.len();
    for segment in spelling.lenient() {
        key.push(b'/');
        match Identifier::shaped(segment) {
            Some(identifier) => {
                identifiers.push(identifier);
                key.extend_from_slice(b"{id}");
            }
            None => key.extend(segment.iter().map(u8::to_ascii_lowercase)),
        }
    }
    if identifiers.is_empty() {
        return None;
    }
    if key.len() - from > MAX_KIND {
        // Of all that are folded, different paths stay different objects.
        identifiers.push(Identifier { bytes: Cow::Owned(key), number: None });
        return Some(Object { kind: Kind::other(exchange), identifiers, budget: None });
    }
    Some(Object { kind: Kind { key, shown: Shown::Detected(from) }, identifiers, budget: None })
}
