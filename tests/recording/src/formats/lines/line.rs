//! The shape of a line; what is read is what is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};

use super::text::{Text, decode};
use crate::traffic::{Exchange, Headers, Request, Response};
use crate::{Entry, Place, time};

/// The fields of a line.
pub(super) const FIELDS: [&str; 8] = ["at", "peer", "local", "route", "request", "response", "status", "notes"];
/// The fields of `request`.
pub(super) const REQUEST_FIELDS: [&str; 10] =
    ["method", "path", "host", "scheme", "protocol", "headers", "body", "body_base64", "trailers", "wire"];
/// The fields of `response`.
pub(super) const RESPONSE_FIELDS: [&str; 5] = ["status", "headers", "body", "body_base64", "trailers"];

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    local: Option<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    route: String,
    request: Asked,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Answer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Names and values. One without a value is not there: so do access logs write headers that a request does not have.
type Pairs = Vec<(Text, Option<Text>)>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected an RFC 3339 time or milliseconds since 1970")]
enum Time {
    Millis(u64),
    Rfc3339(String),
}

/// A pseudo header that is null is not there; one that is left out has its usual value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    method: Option<Option<Text>>,
    #[serde(deserialize_with = "given")]
    path: Option<Option<Text>>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    host: Option<Option<Text>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Pairs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trailers: Pairs,
    /// The bytes on the wire, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wire: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Pairs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trailers: Pairs,
}

impl Line {
    /// The entry on the line.
    ///
    /// # Errors
    ///
    /// A time that is none, two bodies, or what should be base64 and is not.
    pub(super) fn entry(self, place: Place, peer: &str) -> Result<Entry, String> {
        let at_millis = match self.at {
            None => None,
            Some(Time::Millis(millis)) => Some(millis),
            Some(Time::Rfc3339(text)) => {
                Some(time::parse(&text).ok_or("`at` is no RFC 3339 time (2026-01-02T03:04:05.678Z) after 1970")?)
            }
        };
        let mut request = self.request.request(self.peer.unwrap_or_else(|| peer.to_owned()), self.route)?;
        if let Some(local) = self.local {
            request.local = local;
        }
        let response = self.response.map(Answer::response).transpose()?.unwrap_or_default();
        Ok(Entry { place, at_millis, status: self.status, notes: self.notes, exchange: Exchange { request, response } })
    }

    /// The line of an entry; its place is not kept.
    pub(crate) fn of(entry: &Entry) -> Self {
        let Exchange { request, response } = &entry.exchange;
        Self {
            at: entry.at_millis.map(|millis| time::format(millis).map_or(Time::Millis(millis), Time::Rfc3339)),
            peer: Some(request.peer.clone()),
            local: Some(request.local.clone()),
            route: request.route.clone(),
            request: Asked::of(request),
            response: Some(Answer::of(response)),
            status: entry.status,
            notes: entry.notes.clone(),
        }
    }
}

impl Asked {
    fn request(self, peer: String, route: String) -> Result<Request, String> {
        let mut regular = lower(self.headers);
        let host = self.host.unwrap_or_else(|| {
            // As a gateway does, where nobody said otherwise.
            let mut hosts = regular.iter().enumerate().filter(|(_, (name, _))| name == b"host").map(|(at, _)| at);
            let only = hosts.next().filter(|_| hosts.next().is_none())?;
            Some(Text(regular.remove(only).1))
        });
        let pseudo = [
            (":method", self.method.unwrap_or_else(|| Some(Text(b"GET".to_vec())))),
            (":path", self.path.flatten()),
            (":authority", host),
            (":scheme", self.scheme),
        ];
        let known = pseudo.into_iter().filter_map(|(name, value)| Some((name.into(), value?.0)));
        let mut headers: Headers = known.collect();
        headers.append(&mut regular);
        let body = body(self.body, self.body_base64, "request")?;
        let wire = self.wire.as_deref().map(decode).transpose().map_err(|why| format!("`request.wire`: {why}"))?;
        let default = Request::default();
        Ok(Request {
            headers,
            body,
            trailers: lower(self.trailers),
            protocol: self.protocol.map_or(default.protocol, |protocol| protocol.0),
            peer,
            route,
            wire: wire.unwrap_or_default(),
            ..default
        })
    }

    fn of(request: &Request) -> Self {
        let mut rest = request.headers.as_slice();
        // Pseudo headers that stand elsewhere are written as they stand.
        let mut pseudo = |wanted: &str| match rest.split_first() {
            Some(((name, value), others)) if name == wanted.as_bytes() => {
                rest = others;
                Some(Text(value.clone()))
            }
            _ => None,
        };
        let (method, path) = (Some(pseudo(":method")), Some(pseudo(":path")));
        let (host, scheme) = (Some(pseudo(":authority")), pseudo(":scheme"));
        let (body, body_base64) = unpack(&request.body);
        Self {
            method,
            path,
            host,
            scheme,
            protocol: Some(Text(request.protocol.clone())),
            headers: texts(rest),
            body,
            body_base64,
            trailers: texts(&request.trailers),
            wire: (!request.wire.is_empty()).then(|| STANDARD.encode(&request.wire)),
        }
    }
}

impl Answer {
    fn response(self) -> Result<Response, String> {
        let body = body(self.body, self.body_base64, "response")?;
        Ok(Response { status: self.status, headers: lower(self.headers), body, trailers: lower(self.trailers) })
    }

    fn of(response: &Response) -> Self {
        let (body, body_base64) = unpack(&response.body);
        let (headers, trailers) = (texts(&response.headers), texts(&response.trailers));
        Self { status: response.status, headers, body, body_base64, trailers }
    }
}

fn body(text: Option<String>, packed: Option<String>, whose: &str) -> Result<Vec<u8>, String> {
    match (text, packed) {
        (Some(_), Some(_)) => Err(format!("`{whose}` has `body` and `body_base64`: leave one out")),
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(packed)) => decode(&packed).map_err(|why| format!("`{whose}.body_base64`: {why}")),
        (None, None) => Ok(Vec::new()),
    }
}

/// A body as text, or in base64.
fn unpack(body: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(body) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(body))),
    }
}

fn lower(pairs: Pairs) -> Headers {
    pairs.into_iter().filter_map(|(name, value)| Some((name.0.to_ascii_lowercase(), value?.0))).collect()
}

fn texts(headers: &[(Vec<u8>, Vec<u8>)]) -> Pairs {
    headers.iter().map(|(name, value)| (Text(name.clone()), Some(Text(value.clone())))).collect()
}

/// A field that is there, be it null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Text>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A field that is null is as good as left out.
fn or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn ok() -> u16 {
    200
}
