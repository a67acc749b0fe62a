//! The query guard: GraphQL, JSON-RPC and MCP endpoints, whose requests say what they want in their body.
//!
//! It finds the operation, the method or the tool of each request, counts them, and compares the request with limits and, where there is
//! one, with a schema. What is told of a mismatch names what is expected, never a value.

#[cfg(feature = "control")]
pub mod control;
mod graphql;
mod inventory;
mod json;
mod messages;
mod report;
mod rpc;
mod violation;

use std::borrow::Cow;
use std::rc::Rc;

use contract::Contract;
use exchange::{
    Body, BodyNeed, Build, Exchange, Headers, Host, PathReadings, Plugin, PluginDefinition, Request, Role, Scope, Slot,
    Timer, Verdict, Workers,
};
use prost::Message as _;
use seclang::body::decode::decode;

use graphql::schema::Schema;
use graphql::{GraphqlRequest, Rules};
use inventory::Inventory;
use json::Json;
pub use messages::{
    Endpoint, EndpointKind, FieldRecord, Limits, OPERATIONS, OperationSeen, OperationsSeen, Persisted, QueryGuardStep,
    Schema as GraphqlSchema, TypeKind, TypeRecord,
};
use rpc::RpcRules;
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
    scope: Scope,
    schema: Option<Rc<Schema>>,
    contract: Option<Rc<Contract>>,
}

/// The endpoint of a request whose body is due.
struct Due(usize);

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
        let pattern = pattern(&endpoint.path);
        endpoints.push(Watched {
            limits: endpoint.limits.ok_or("an endpoint has no limits")?,
            scope: Scope::new(&[pattern], &[])?,
            schema,
            contract,
            endpoint: endpoint.clone(),
        });
    }
    Ok(Box::new(QueryGuard { step, endpoints, inventory: Inventory::default() }))
}

/// The pattern of a path: itself, with or without a slash at its end.
fn pattern(path: &str) -> String {
    let plain = path.trim_end_matches('/');
    let escaped = plain.chars().flat_map(|character| {
        let special = "\\.+*?()|[]{}^$#&-~".contains(character);
        special.then_some('\\').into_iter().chain(std::iter::once(character))
    });
    format!("^{}/*$", escaped.collect::<String>())
}

impl Plugin for QueryGuard {
    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let path = PathReadings::of(exchange.request.path_only());
        let Some(place) = self.endpoints.iter().position(|watched| watched.scope.covers(&path)) else {
            return Verdict::Pass;
        };
        let Some(watched) = self.endpoints.get(place) else { return Verdict::Pass };
        let request = &exchange.request;
        if request.method == b"OPTIONS" || is_handshake(request) {
            return Verdict::Pass;
        }
        let judged = match (watched.endpoint.kind(), request.method.as_slice()) {
            (EndpointKind::Graphql, b"GET" | b"HEAD") => watched.over_get(request.query()),
            // The stream of an MCP server, and the end of a session.
            (EndpointKind::Mcp, b"GET" | b"DELETE") => return Verdict::Pass,
            (_, b"POST") if has_body && !request.streaming => {
                let limit = watched.limit();
                if announces_more(&request.headers, limit) {
                    (vec![], vec![too_large(limit)])
                } else {
                    slot.put(Due(place));
                    return Verdict::NeedBody(BodyNeed { limit });
                }
            }
            (_, b"POST") => (vec![], vec![Violation::new(Mismatch::InvalidRequest, "the request has no body to read")]),
            _ => (vec![], vec![Violation::new(Mismatch::HttpMethod, "expected POST")]),
        };
        self.settle(watched, judged, exchange, host)
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(watched) = slot.take::<Due>().and_then(|Due(place)| self.endpoints.get(place)) else {
            return Verdict::Pass;
        };
        let judged = watched.body(body, &exchange.request.headers, exchange.request.query());
        self.settle(watched, judged, exchange, host)
    }

    fn timer(&self) -> Option<Timer> {
        self.step.inventory.then_some(Timer { millis: REPORT_EACH, on: Workers::All })
    }

    fn on_timer(&self, host: &dyn Host) {
        self.inventory.send(host);
    }
}

impl QueryGuard {
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

    fn over_get(&self, query: &[u8]) -> Judged {
        match GraphqlRequest::of_pairs(&pairs(query)) {
            Ok(request) => self.graphql(&[request], true),
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

    fn body(&self, body: Body<'_>, headers: &Headers, query: &[u8]) -> Judged {
        let wrong = |kind: Mismatch, detail: &str| (vec![], vec![Violation::new(kind, detail)]);
        if !body.complete {
            return (vec![], vec![too_large(self.limit())]);
        }
        let coding = exchange::codings::list(headers);
        let bytes = if exchange::codings::is_identity(&coding) {
            Cow::Borrowed(body.bytes)
        } else {
            match decode(&coding, body.bytes, self.limit(), MAX_RATIO) {
                Ok(bytes) => Cow::Owned(bytes),
                Err(error) => return wrong(Mismatch::BodyTooLarge, &format!("the body cannot be read: {error}")),
            }
        };
        let kind = headers.get("content-type").unwrap_or_default();
        let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        if self.endpoint.kind() == EndpointKind::Graphql {
            return self.graphql_body(&media, &bytes, query);
        }
        let message = match json::read(&bytes) {
            Ok(message) => message,
            Err(error) => return wrong(Mismatch::InvalidRequest, &error),
        };
        let rules = RpcRules {
            mcp: self.endpoint.kind() == EndpointKind::Mcp,
            batch: self.limits.batch,
            allowed: &self.endpoint.allowed,
            names: &self.endpoint.names,
            closed: self.endpoint.closed,
            schemas: self.contract.as_deref(),
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
        if pairs(query).iter().any(|(name, _)| is_part(name)) {
            let detail = "a request in a body has no parts in its query";
            return wrong(Violation::new(Mismatch::InvalidRequest, detail));
        }
        match media {
            b"application/graphql" => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let request = GraphqlRequest { query: Some(text.to_owned()), ..GraphqlRequest::default() };
                    self.graphql(&[request], false)
                }
                Err(_) => wrong(Violation::new(Mismatch::Syntax, "the document is not UTF-8")),
            },
            b"application/x-www-form-urlencoded" => match GraphqlRequest::of_pairs(&pairs(bytes)) {
                Ok(request) => self.graphql(&[request], false),
                Err(violation) => wrong(violation),
            },
            b"multipart/form-data" => {
                let detail = "multipart requests are not read; send uploads to an endpoint of their own";
                wrong(Violation::new(Mismatch::InvalidRequest, detail))
            }
            // What calls itself otherwise is read as JSON, as many servers do.
            _ => match json::read(bytes) {
                Ok(Json::Array(requests)) => self.batch(&requests),
                Ok(request) => match GraphqlRequest::of_json(&request) {
                    Ok(request) => self.graphql(&[request], false),
                    Err(violation) => wrong(violation),
                },
                Err(error) => wrong(Violation::new(Mismatch::InvalidRequest, error)),
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

/// A handshake of WebSockets (RFC 6455, RFC 8441): what follows is a stream that is not held. A backend that does not know them answers
/// what stands in the query, which is looked at for that reason.
fn is_handshake(request: &Request) -> bool {
    let asks = matches!(request.method.as_slice(), b"GET" | b"CONNECT") && request.streaming;
    asks && !pairs(request.query()).iter().any(|(name, _)| is_part(name))
}

/// Whether a parameter is a part of a GraphQL request.
fn is_part(name: &[u8]) -> bool {
    matches!(name, b"query" | b"operationName" | b"variables" | b"extensions")
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

/// The pairs of a query or a form, decoded.
fn pairs(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        let at = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        (decoded(part.get(..at).unwrap_or_default()), decoded(part.get(at + 1..).unwrap_or_default()))
    });
    pairs.collect()
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digit = |place: usize| text.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
