//! The query guard: GraphQL, JSON-RPC and MCP endpoints, whose requests say what they want in their body.
//!
//! It finds the operation, the method or the tool of each request, counts them, and compares the request with limits and, where there is
//! one, with a schema. What is told of a mismatch names what is expected, never a value.

#[cfg(feature = "control")]
pub mod control;
mod graphql;
mod inventory;
mod json;
mod media;
mod messages;
mod pairs;
mod report;
mod rpc;
mod violation;

use std::borrow::Cow;
use std::rc::Rc;

use contract::Contract;
use exchange::{
    Body, BodyNeed, Build, Exchange, Headers, Host, LaxPath, PathReadings, Plugin, PluginDefinition, Reach, Request,
    Role, Scope, Slot, Timer, Verdict, Workers, is_error,
};
use prost::Message as _;
use seclang::body::decode::decode;

use graphql::schema::Schema;
use graphql::{GraphqlRequest, Rules, persisted};
use inventory::Inventory;
use json::Json;
pub use messages::{
    Endpoint, EndpointKind, FieldRecord, Limits, OPERATIONS, OperationSeen, OperationsSeen, Persisted, QueryGuardStep,
    Schema as GraphqlSchema, TypeKind, TypeRecord,
};
use pairs::Parts;
use rpc::{RpcRules, Said};
use violation::{Mismatch, Violation};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("query-guard", build).role(Role::Enforcement);

/// The factor by which a coded body may grow.
const MAX_RATIO: u32 = 100;
/// How often the inventory is reported, in milliseconds.
const REPORT_EACH: u32 = 10_000;

struct QueryGuard {
    step: QueryGuardStep,
    endpoints: Vec<Watched>,
    inventory: Inventory,
}

/// An endpoint at work.
struct Watched {
    endpoint: Endpoint,
    limits: Limits,
    /// Its path.
    scope: Scope,
    /// Its path, and what a server may answer in the same way: paths below it, and those with a format at their end.
    wide: Scope,
    schema: Option<Rc<Schema>>,
    contract: Option<Rc<Contract>>,
}

/// The endpoint of a request.
#[derive(Clone, Copy)]
struct Place {
    endpoint: usize,
    /// The path is that of the endpoint, and not one below it or beside it.
    exact: bool,
}

/// Where a path leads.
enum Destination {
    /// To no endpoint.
    Elsewhere,
    Endpoint(Place),
    /// To this endpoint or to another one, depending on the backend.
    Several(Place),
}

/// A body without its content coding, or why it cannot be read.
type Plain<'b> = Result<Cow<'b, [u8]>, Violation>;

/// What a request asked for: kind and name, and what does not match.
type Judged = (Vec<(&'static str, String, bool)>, Vec<Violation>);

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = QueryGuardStep::decode(config).map_err(|error| error.to_string())?;
    let mut endpoints = Vec::new();
    for endpoint in &step.endpoints {
        let (mut schema, mut contract) = (None, None);
        if !endpoint.schema.is_empty() && endpoint.kind() == EndpointKind::Graphql {
            schema = Some(build.shared(&endpoint.schema, |bytes| Schema::open(bytes).map(Rc::new))?);
        } else if !endpoint.schema.is_empty() {
            contract = Some(build.shared(&endpoint.schema, |bytes| Contract::open(bytes).map(Rc::new))?);
        }
        endpoints.push(Watched {
            limits: endpoint.limits.ok_or("an endpoint has no limits")?,
            scope: Scope::new(&[pattern(&endpoint.path, "/*$")], &[])?,
            wide: Scope::new(&[pattern(&endpoint.path, wide_end(&endpoint.path))], &[])?,
            schema,
            contract,
            endpoint: endpoint.clone(),
        });
    }
    Ok(Box::new(QueryGuard { step, endpoints, inventory: Inventory::default() }))
}

/// The pattern of a path, without slashes at its end, and of what follows it.
fn pattern(path: &str, end: &str) -> String {
    let plain = path.trim_end_matches('/');
    let escaped = plain.chars().flat_map(|character| {
        let special = "\\.+*?()|[]{}^$#&-~".contains(character);
        special.then_some('\\').into_iter().chain(std::iter::once(character))
    });
    format!("^{}{end}", escaped.collect::<String>())
}

/// What follows a path where a server may answer in the same way: it is mounted on all paths below (Express), takes a format at the end
/// (`.json` in Rails), or is a script with a path behind it (PHP). Below `/` is everything else.
fn wide_end(path: &str) -> &'static str {
    if path.trim_end_matches('/').is_empty() { "/*$" } else { "(?:[/.]|$)" }
}

impl Plugin for QueryGuard {
    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (place, others) = match self.place(exchange.request.path_only()) {
            Destination::Elsewhere => return Verdict::Pass,
            Destination::Endpoint(place) => (place, false),
            Destination::Several(place) => (place, true),
        };
        let Some(watched) = self.endpoints.get(place.endpoint) else { return Verdict::Pass };
        let request = &exchange.request;
        // What follows a handshake is no body, unless one is announced.
        let has_body = if opens_websocket(request) { request.upgrades_with_body() } else { has_body };
        if !has_body && watched.is_handshake(request, place.exact) {
            return Verdict::Pass;
        }
        if others && (has_body || request.method != b"OPTIONS") {
            return self.settle(watched, invalid("the path may lead to several endpoints"), exchange, host);
        }
        if !has_body {
            let Some(judged) = watched.without_body(request, place.exact) else { return Verdict::Pass };
            return self.settle(watched, judged, exchange, host);
        }
        let limit = watched.limit();
        let post = request.method == b"POST";
        // A body of another method is awaited as well: HTTP/2 and chunked bodies tell only at their end that they are empty.
        // Of what is below an endpoint, such as an upload, the beginning tells whether it is for the endpoint.
        let announced = place.exact && announces_more(&request.headers, if post { limit } else { 0 });
        if !request.streaming && !announced {
            slot.put(place);
            return Verdict::NeedBody(BodyNeed { limit });
        }
        let judged = match request.method.as_slice() {
            b"POST" if request.streaming => invalid("the request has no body to read"),
            b"POST" => (vec![], vec![too_large(limit)]),
            method => watched.unexpected_body(method),
        };
        self.settle(watched, judged, exchange, host)
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(place) = slot.take::<Place>() else { return Verdict::Pass };
        let Some(watched) = self.endpoints.get(place.endpoint) else { return Verdict::Pass };
        let request = &exchange.request;
        let is_read = !place.exact || request.method == b"POST";
        let plain = if is_read { watched.decoded(body, &request.headers) } else { Ok(Cow::Borrowed(body.bytes)) };
        let judged = match request.method.as_slice() {
            _ if body.complete && body.bytes.is_empty() => match watched.without_body(request, place.exact) {
                Some(judged) => judged,
                None => return Verdict::Pass,
            },
            _ if !place.exact && !watched.concerns(&plain, body.complete, request) => return Verdict::Pass,
            b"POST" => watched.body(plain, body.complete, request),
            method => watched.unexpected_body(method),
        };
        self.settle(watched, judged, exchange, host)
    }

    /// A query may be in the URL; a body that is withheld is none that the backend reads.
    fn without_body(&self, exchange: &mut Exchange, status: u16, slot: &mut Slot, host: &dyn Host) -> Verdict {
        if is_error(status) {
            return Verdict::Pass;
        }
        let Some(place) = slot.take::<Place>() else { return Verdict::Pass };
        let Some(watched) = self.endpoints.get(place.endpoint) else { return Verdict::Pass };
        let request = &exchange.request;
        // A backend that answers a POST so early has read no request of the protocol, unless it takes one from the URL.
        if request.method == b"POST" && !watched.asks(request.query()) {
            return Verdict::Pass;
        }
        match watched.without_body(request, place.exact) {
            Some(judged) => self.settle(watched, judged, exchange, host),
            None => Verdict::Pass,
        }
    }

    fn timer(&self) -> Option<Timer> {
        self.step.inventory.then_some(Timer { millis: REPORT_EACH, on: Workers::All })
    }

    fn on_timer(&self, host: &dyn Host) {
        self.inventory.send(host);
    }
}

impl QueryGuard {
    /// The first endpoint of that path; otherwise the one with the longest path that it is below or beside.
    fn place(&self, path: &[u8]) -> Destination {
        let readings = PathReadings::of(path);
        if readings.is_ambiguous() {
            return self.lax_place(&LaxPath::of(path));
        }
        let mut longest: Option<(usize, usize)> = None;
        let near = self.endpoints.iter().enumerate().filter(|(_, watched)| watched.wide.covers(&readings));
        for (endpoint, watched) in near {
            if watched.scope.covers(&readings) {
                return Destination::Endpoint(Place { endpoint, exact: true });
            }
            let length = watched.path().len();
            if longest.is_none_or(|(_, most)| length > most) {
                longest = Some((endpoint, length));
            }
        }
        longest.map_or(Destination::Elsewhere, |(endpoint, _)| Destination::Endpoint(Place { endpoint, exact: false }))
    }

    /// The endpoint that some backend may read an ambiguous path as. A request that is a proper one of each of two protocols could pass
    /// as one and be executed as the other, so a path that may lead to two endpoints has no place.
    fn lax_place(&self, path: &LaxPath) -> Destination {
        let mut found: Option<(Place, &Watched)> = None;
        let mut several = false;
        for (endpoint, watched) in self.endpoints.iter().enumerate() {
            let exact = match path.reach(watched.path().as_bytes()) {
                Reach::Elsewhere => continue,
                Reach::Below => false,
                Reach::Exact => true,
            };
            let place = Place { endpoint, exact };
            found = match found {
                None => Some((place, watched)),
                // Of `/api` and `/api/rpc` the second counts, unless the path is surely not below it.
                Some((other, outer)) if !other.exact && watched.is_below(outer) => Some((place, watched)),
                Some((other, inner)) if !exact && inner.is_below(watched) => Some((other, inner)),
                // An endpoint that is listed twice.
                Some((other, same)) if same.path() == watched.path() => Some((other, same)),
                Some(other) => {
                    several = true;
                    Some(other)
                }
            };
        }
        match found {
            None => Destination::Elsewhere,
            Some((place, _)) if several => Destination::Several(place),
            Some((place, _)) => Destination::Endpoint(place),
        }
    }

    fn settle(&self, watched: &Watched, (seen, found): Judged, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let path = watched.endpoint.path.as_str();
        if self.step.inventory {
            for (kind, name, mismatched) in &seen {
                self.inventory.count(&exchange.route.name, path, (kind, name), *mismatched);
            }
        }
        self.mismatches(&found, (path, watched.endpoint.kind()), exchange, host)
    }
}

impl Watched {
    /// The path without slashes at its end.
    fn path(&self) -> &str {
        self.endpoint.path.trim_end_matches('/')
    }

    /// Whether the path is below that of another endpoint.
    fn is_below(&self, other: &Self) -> bool {
        self.path().strip_prefix(other.path()).is_some_and(|rest| rest.starts_with('/'))
    }

    fn limit(&self) -> usize {
        usize::try_from(self.limits.body_bytes).unwrap_or(usize::MAX)
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            limits: self.limits,
            introspection: self.endpoint.introspection,
            persisted: self.endpoint.persisted(),
            schema: self.schema.as_deref(),
        }
    }

    /// Judges a request without a body; `None` where it passes.
    fn without_body(&self, request: &Request, exact: bool) -> Option<Judged> {
        let kind = self.endpoint.kind();
        // Pages and documents below an endpoint are loaded.
        if !(exact || kind == EndpointKind::Graphql && self.asks(request.query())) {
            return None;
        }
        match (kind, request.method.as_slice()) {
            // What is asked before a GET of another origin has its query, and counts as no operation.
            (EndpointKind::Graphql, b"OPTIONS") if self.asks(request.query()) => {
                Some((vec![], self.pairs(request.query(), true).1))
            }
            (_, b"OPTIONS") => None,
            (EndpointKind::Graphql, b"GET" | b"HEAD") => Some(self.pairs(request.query(), true)),
            // The stream of an MCP server, and the end of a session.
            (EndpointKind::Mcp, b"GET" | b"DELETE") => None,
            (_, b"POST") => Some(invalid("the request has no body to read")),
            _ => Some(http_method()),
        }
    }

    /// Whether a body below or beside the endpoint may be for it: it has a name of its requests, or escapes or bytes that may hide one; or
    /// it cannot be read, or goes on where names may be, or is a document without names. Uploads are of other types.
    fn concerns(&self, body: &Plain<'_>, complete: bool, request: &Request) -> bool {
        let Ok(body) = body else { return true };
        // In another character set names have other bytes, and of two types one may be that of the endpoint.
        let Ok(media) = media::of(&request.headers) else { return true };
        if self.endpoint.kind() == EndpointKind::Graphql && media == media::GRAPHQL {
            return true;
        }
        let has_names =
            media.is_empty() || media.ends_with(b"json") || matches!(media.as_slice(), media::GRAPHQL | media::FORM);
        if !complete && (has_names || media::begins_as_json(body)) {
            return true;
        }
        let (body, query): (&[u8], &[u8]) = (body, request.query());
        let names: &[&str] = match self.endpoint.kind() {
            EndpointKind::Graphql => &["query", "mutation", "persisted"],
            _ => &["method"],
        };
        let has = |name: &&str| body.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name.as_bytes()));
        let in_pairs = || self.endpoint.kind() == EndpointKind::Graphql && (self.asks(query) || self.asks(body));
        let refers = || self.denies_stored() && persisted::tells(body);
        has(&"\\u") || body.contains(&0) || names.iter().any(has) || in_pairs() || refers()
    }

    /// Whether a query or a form has parts of a GraphQL request; where stored documents are not allowed, a reference to one as well.
    fn asks(&self, text: &[u8]) -> bool {
        Parts::of(text).any || self.denies_stored() && pairs::has_any(text, &persisted::TELLING)
    }

    /// A handshake of WebSockets (RFC 6455, RFC 8441): what follows is a stream that is not held. A backend that does not know them
    /// answers what stands in the query, as that of a GET, which is looked at for that reason.
    fn is_handshake(&self, request: &Request, exact: bool) -> bool {
        let upgrades = matches!(request.method.as_slice(), b"GET" | b"CONNECT") && request.streaming;
        // At the endpoint itself, an `id` is a reference as well.
        let refers = || exact && self.denies_stored() && pairs::has_any(request.query(), &persisted::NAMES);
        upgrades && !self.asks(request.query()) && !refers()
    }

    fn denies_stored(&self) -> bool {
        self.endpoint.kind() == EndpointKind::Graphql && self.endpoint.persisted() == Persisted::Deny
    }

    /// A body where the protocol has none. Some servers read it all the same.
    fn unexpected_body(&self, method: &[u8]) -> Judged {
        match (self.endpoint.kind(), method) {
            (_, b"GET" | b"HEAD") | (EndpointKind::Mcp, b"DELETE") => invalid("expected no body with this HTTP method"),
            _ => http_method(),
        }
    }

    /// Judges the GraphQL request of a query or a form.
    fn pairs(&self, text: &[u8], over_get: bool) -> Judged {
        if Parts::of(text).odd {
            return invalid(
                "expected `query`, `operationName`, `variables` and `extensions` in this spelling, separated by `&`",
            );
        }
        match GraphqlRequest::of_pairs(text) {
            Ok(request) => self.graphql(&[request], over_get),
            Err(violation) => (vec![], vec![violation]),
        }
    }

    fn graphql(&self, requests: &[GraphqlRequest], over_get: bool) -> Judged {
        let rules = self.rules();
        let (mut seen, mut all) = (Vec::new(), Vec::new());
        for request in requests {
            let (named, found) = request.judge(&rules, over_get);
            seen.push((named.kind, named.name, !found.is_empty()));
            all.extend(found);
        }
        (seen, all)
    }

    /// A body without its content coding. One of which only a part is there must have none.
    fn decoded<'b>(&self, body: Body<'b>, headers: &Headers) -> Plain<'b> {
        let coding = exchange::codings::list(headers);
        if exchange::codings::is_identity(&coding) {
            return Ok(Cow::Borrowed(body.bytes));
        }
        if !body.complete {
            return Err(too_large(self.limit()));
        }
        decode(&coding, body.bytes, self.limit(), MAX_RATIO)
            .map(Cow::Owned)
            .map_err(|error| Violation::new(Mismatch::BodyTooLarge, format!("the body cannot be read: {error}")))
    }

    fn body(&self, body: Plain<'_>, complete: bool, request: &Request) -> Judged {
        if !complete {
            return (vec![], vec![too_large(self.limit())]);
        }
        let bytes = match body {
            Ok(bytes) => bytes,
            Err(violation) => return (vec![], vec![violation]),
        };
        let media = match media::of(&request.headers) {
            Ok(media) => media,
            Err(detail) => return invalid(detail),
        };
        if self.endpoint.kind() == EndpointKind::Graphql {
            return self.graphql_body(&media, &bytes, request.query());
        }
        let message = match json::read(&bytes) {
            Ok(message) => message,
            Err(error) => return invalid(error),
        };
        let rules = RpcRules {
            mcp: self.endpoint.kind() == EndpointKind::Mcp,
            batch: self.limits.batch,
            allowed: &self.endpoint.allowed,
            names: &self.endpoint.names,
            closed: self.endpoint.closed,
            schemas: self.contract.as_deref(),
            said: Said::of(&request.headers),
        };
        match rpc::judge(&message, &rules) {
            Ok(messages) => {
                let seen = messages.iter().map(|(named, found)| (named.kind, named.name.clone(), !found.is_empty()));
                (seen.collect(), messages.iter().flat_map(|(_, found)| found.iter().cloned()).collect())
            }
            Err(violation) => (vec![], vec![violation]),
        }
    }

    fn graphql_body(&self, media: &[u8], bytes: &[u8], query: &[u8]) -> Judged {
        let wrong = |violation: Violation| (vec![], vec![violation]);
        // Some servers take parts of a request from the query as well.
        if self.asks(query) {
            return invalid("a request in a body has no parts in its query");
        }
        match media {
            media::GRAPHQL => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let request = GraphqlRequest { query: Some(text.to_owned()), ..GraphqlRequest::default() };
                    self.graphql(&[request], false)
                }
                Err(_) => wrong(Violation::new(Mismatch::Syntax, "the document is not UTF-8")),
            },
            // Some servers look at the body, and not at its type.
            media::FORM if media::begins_as_json(bytes) => invalid("the form begins as JSON does"),
            media::FORM => self.pairs(bytes, false),
            media::MULTIPART => invalid("multipart requests are not read; send uploads to an endpoint of their own"),
            // What calls itself otherwise is read as JSON, as many servers do.
            _ => match json::read(bytes) {
                Ok(Json::Array(requests)) => self.batch(&requests),
                Ok(request) => match GraphqlRequest::of_json(&request) {
                    Ok(request) => self.graphql(&[request], false),
                    Err(violation) => wrong(violation),
                },
                Err(error) => invalid(error),
            },
        }
    }

    fn batch(&self, requests: &[Json]) -> Judged {
        let most = usize::try_from(self.limits.batch).unwrap_or(usize::MAX);
        if requests.is_empty() || requests.len() > most {
            let detail = format!("a batch of {} requests, and {most} are allowed", requests.len());
            return (vec![], vec![Violation::new(Mismatch::Batch, detail)]);
        }
        match requests.iter().map(GraphqlRequest::of_json).collect::<Result<Vec<_>, _>>() {
            Ok(requests) => self.graphql(&requests, false),
            Err(violation) => (vec![], vec![violation]),
        }
    }
}

/// Whether a request asks for WebSockets, and has no end for that reason.
fn opens_websocket(request: &Request) -> bool {
    let mut asked = request.headers.all("upgrade").flat_map(|upgrade| upgrade.split(|byte| *byte == b','));
    match request.method.as_slice() {
        b"CONNECT" => request.streaming,
        b"GET" => request.streaming && asked.any(|one| one.trim_ascii().eq_ignore_ascii_case(b"websocket")),
        _ => false,
    }
}

fn invalid(detail: impl Into<String>) -> Judged {
    (vec![], vec![Violation::new(Mismatch::InvalidRequest, detail)])
}

fn http_method() -> Judged {
    (vec![], vec![Violation::new(Mismatch::HttpMethod, "expected POST")])
}

fn too_large(limit: usize) -> Violation {
    Violation::new(
        Mismatch::BodyTooLarge,
        format!("the body has more than {limit} bytes, so that it cannot be checked"),
    )
}

/// Whether the announced length of a body is over the limit.
fn announces_more(headers: &Headers, limit: usize) -> bool {
    let length =
        headers.get("content-length").and_then(|length| std::str::from_utf8(length).ok()?.parse::<usize>().ok());
    length.is_some_and(|length| length > limit)
}

#[cfg(test)]
mod tests;
