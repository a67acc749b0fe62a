//! One request, and its response, through the WAF plugin, as a gateway calls it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exchange::{Body, Build, Chain, Flow, Headers, Host, Opening, Request, Response, Run, Start, Tables};
use schemars::JsonSchema;
use seclang::Engine;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::runtime::GatewayTables;
use super::trial_host::TrialHost;
use crate::control::config::WafConfig;
use crate::control::step::step;
use crate::{PLUGIN, WafStep, WafZone, Watched, watched};
use kit::{FieldProblem, Head, Item};

/// The port that the client calls from.
const CLIENT_PORT: u16 = 40_000;
/// How much of a body is handed over at once, in bytes.
const PIECE: usize = 16 * 1024;
/// The first bytes of a gRPC stream that are looked at.
const GRPC_PREFIX: usize = 5;

/// The request of a test. Fields that are left out have the values that a gateway would set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::control) struct TrialRequest {
    /// Default `GET`.
    pub(in crate::control) method: String,
    /// The path with its query, or an absolute URL. Default `/`.
    pub(in crate::control) uri: String,
    /// The query: a string as in the URI, or an object of names and values. It is added to the query of `uri`.
    pub(in crate::control) query: Option<Value>,
    /// Default `HTTP/1.1`.
    pub(in crate::control) protocol: Option<String>,
    /// Names and values; a value is a string or a list of strings.
    pub(in crate::control) headers: Option<Map<String, Value>>,
    /// Names and values; added to the `cookie` header.
    pub(in crate::control) cookies: Option<Map<String, Value>>,
    /// The body as text.
    pub(in crate::control) body: Option<String>,
    /// The body in base64, if it is not text.
    pub(in crate::control) body_base64: Option<String>,
    /// The caller's address. Default `192.0.2.1`.
    pub(in crate::control) remote_addr: Option<String>,
}

/// The backend's response.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::control) struct TrialResponse {
    /// Default 200.
    pub(in crate::control) status: u16,
    /// Default that of the request.
    pub(in crate::control) protocol: Option<String>,
    /// Names and values; a value is a string or a list of strings.
    pub(in crate::control) headers: Option<Map<String, Value>>,
    /// The body as text.
    pub(in crate::control) body: Option<String>,
    /// The body in base64, if it is not text.
    pub(in crate::control) body_base64: Option<String>,
}

/// Header fields in order.
pub(in crate::control) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A request whose fields have been read.
#[derive(Clone)]
pub(in crate::control) struct ReadRequest {
    pub(in crate::control) method: String,
    /// The path with its query.
    pub(in crate::control) uri: Vec<u8>,
    /// `HTTP/1.1`.
    pub(in crate::control) protocol: String,
    /// Names in lower case, with a host.
    pub(in crate::control) headers: Pairs,
    pub(in crate::control) body: Vec<u8>,
    /// The connection's address with its port, as a gateway writes it.
    pub(in crate::control) peer: String,
}

/// A response whose fields have been read; its status is among the headers.
pub(in crate::control) struct ReadResponse {
    pub(in crate::control) headers: Pairs,
    pub(in crate::control) body: Vec<u8>,
}

/// Why a test has no result.
#[derive(Debug)]
pub(in crate::control) enum TrialError {
    /// A field of the request or response cannot be read.
    Field(FieldProblem),
    /// The plugin was not asked.
    NotRun,
}

impl From<FieldProblem> for TrialError {
    fn from(problem: FieldProblem) -> TrialError {
        TrialError::Field(problem)
    }
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrialError::Field(problem) => problem.fmt(f),
            TrialError::NotRun => f.write_str("the rules were not run"),
        }
    }
}

impl Default for TrialRequest {
    fn default() -> TrialRequest {
        TrialRequest {
            method: "GET".to_owned(),
            uri: "/".to_owned(),
            query: None,
            protocol: None,
            headers: None,
            cookies: None,
            body: None,
            body_base64: None,
            remote_addr: None,
        }
    }
}

impl Default for TrialResponse {
    fn default() -> TrialResponse {
        TrialResponse { status: 200, protocol: None, headers: None, body: None, body_base64: None }
    }
}

/// What a test runs on.
pub(in crate::control) struct Trial<'a> {
    pub(in crate::control) engine: &'a Arc<Engine>,
    /// The WAF config; `None` for the settings of a new one.
    pub(in crate::control) config: Option<&'a Item<WafConfig>>,
    /// The rules look up where addresses are.
    pub(in crate::control) places: bool,
    /// The zones that the rules name, of those that are asked.
    pub(in crate::control) zones: Vec<WafZone>,
    /// The tables that gateways have.
    pub(in crate::control) tables: Option<&'a GatewayTables>,
    pub(in crate::control) now_millis: u64,
}

impl Trial<'_> {
    /// Sends a request, and the response if there is one, through the WAF plugin, as gateways run it with the settings of its WAF config.
    pub(in crate::control) fn run(
        &self,
        request: &TrialRequest,
        response: Option<&TrialResponse>,
    ) -> Result<Watched, TrialError> {
        let response = response.map(TrialResponse::read).transpose()?;
        self.pass(&request.read()?, response.as_ref())
    }

    /// The same for what has been read.
    pub(in crate::control) fn pass(
        &self,
        request: &ReadRequest,
        response: Option<&ReadResponse>,
    ) -> Result<Watched, TrialError> {
        self.pass_as(b"", request, response)
    }

    /// The same for a request with a unique id; a random one stands for an empty one.
    pub(in crate::control) fn pass_as(
        &self,
        id: &[u8],
        request: &ReadRequest,
        response: Option<&ReadResponse>,
    ) -> Result<Watched, TrialError> {
        let seen = Rc::default();
        let step = match self.config {
            Some(config) => step(config),
            None => step(&Item { head: Head::default(), body: WafConfig::default() }),
        };
        let step = WafStep { places: self.places, zones: self.zones.clone(), ..step };
        let kept = Rc::new(Tables::default());
        let build = Build::new(std::iter::empty()).with_tables(Rc::clone(&kept));
        // It has two tables at most.
        let plugin =
            watched(step, Arc::clone(self.engine), &build, Rc::clone(&seen)).map_err(|_| TrialError::NotRun)?;
        if let Some(tables) = self.tables {
            tables.fill(&kept);
        }
        let chain = Chain::single(PLUGIN.name, plugin);
        let host = TrialHost::new(self.now_millis);
        let mut all: Pairs =
            vec![(b":method".to_vec(), request.method.clone().into_bytes()), (b":path".to_vec(), request.uri.clone())];
        all.extend(request.headers.iter().cloned());
        let (mut read, opening) = Request::read(Headers::new(&all), request.protocol.clone().into_bytes(), true);
        read.id = match id {
            [] => uuid::Uuid::new_v4().to_string().into_bytes(),
            id => id.to_vec(),
        };
        let start = Start { request: read, route: b"", peer: request.peer.as_bytes(), node: &Rc::from("") };
        let run = Run::new(&chain, start, &host);
        Pass { run, host: &host, request: &request.body, response, opening }.finish();
        seen.take().ok_or(TrialError::NotRun)
    }
}

/// An exchange on its way through the plugin.
pub(in crate::control) struct Pass<'a> {
    pub(in crate::control) run: Run,
    pub(in crate::control) host: &'a dyn Host,
    /// The body of the request.
    pub(in crate::control) request: &'a [u8],
    pub(in crate::control) response: Option<&'a ReadResponse>,
    pub(in crate::control) opening: Opening,
}

impl Pass<'_> {
    /// Calls the plugin as a gateway does, up to the one phase that ends the exchange.
    pub(in crate::control) fn finish(mut self) {
        let mut flow = self.run.request_headers(!self.request.is_empty(), self.host);
        if self.opening.grpc && !self.request.is_empty() && flow == Flow::Continue {
            flow = self.run.stream_start(self.request.get(..GRPC_PREFIX).unwrap_or(self.request), self.host);
        }
        let mut response = self.response;
        loop {
            flow = match flow {
                // Of one plugin that neither asks nor holds.
                Flow::Answer(_) | Flow::Hold { .. } | Flow::Ask(_) => break,
                Flow::Buffer { limit } => {
                    let in_response = self.run.exchange().response.is_some();
                    let body = if in_response {
                        self.response.map_or(&[][..], |response| &response.body)
                    } else {
                        self.request
                    };
                    let body = Body { bytes: body.get(..limit).unwrap_or(body), complete: body.len() <= limit };
                    if in_response {
                        self.run.response_body(body, self.host)
                    } else {
                        self.run.request_body(body, self.host)
                    }
                }
                Flow::Read { limit } => self.pieces(limit),
                Flow::Continue if self.run.exchange().response.is_none() => match (self.rest(), response.take()) {
                    (Flow::Continue, Some(response)) => {
                        let head = Response::read(Headers::new(&response.headers), self.opening);
                        self.run.response_headers(head, !response.body.is_empty(), self.host)
                    }
                    _ => break,
                },
                Flow::Continue => break,
            };
        }
        self.run.finish(self.host);
    }

    /// The body of the request as it comes, at most so many bytes.
    fn pieces(&mut self, limit: usize) -> Flow {
        for piece in self.request.get(..limit).unwrap_or(self.request).chunks(PIECE) {
            let flow = self.run.request_piece(piece, self.host);
            if !matches!(flow, Flow::Read { .. }) {
                return flow;
            }
        }
        self.run.request_end(self.request.len() <= limit, self.host)
    }

    /// What follows the part of the body that was read.
    fn rest(&mut self) -> Flow {
        let rest = self.run.rest_from().map(|from| self.request.get(from..).unwrap_or_default());
        let mut pieces = rest.unwrap_or_default().chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let flow = self.run.request_rest(piece, pieces.peek().is_none(), self.host);
            if flow != Flow::Continue {
                return flow;
            }
        }
        Flow::Continue
    }
}

impl TrialResponse {
    pub(in crate::control) fn read(&self) -> Result<ReadResponse, FieldProblem> {
        let mut headers: Pairs = vec![(b":status".to_vec(), self.status.to_string().into_bytes())];
        headers.extend(pairs(self.headers.as_ref(), "/response/headers")?);
        Ok(ReadResponse { headers, body: body(self.body.as_deref(), self.body_base64.as_deref(), "/response")? })
    }
}

impl TrialRequest {
    pub(in crate::control) fn read(&self) -> Result<ReadRequest, FieldProblem> {
        Ok(ReadRequest {
            method: self.method.clone(),
            uri: self.uri()?.into_bytes(),
            protocol: self.protocol.clone().unwrap_or_else(|| "HTTP/1.1".to_owned()),
            headers: self.headers()?,
            body: body(self.body.as_deref(), self.body_base64.as_deref(), "/request")?,
            peer: peer(self.remote_addr.as_deref().unwrap_or("192.0.2.1")),
        })
    }

    /// The headers in order, names in lower case as gateways pass them on, and a host where there is none.
    fn headers(&self) -> Result<Pairs, FieldProblem> {
        let mut headers = pairs(self.headers.as_ref(), "/request/headers")?;
        let cookies = pairs_as_given(self.cookies.as_ref(), "/request/cookies")?;
        if !cookies.is_empty() {
            let cookies: Vec<Vec<u8>> =
                cookies.into_iter().map(|(name, value)| [name, value].join(b"=".as_slice())).collect();
            let cookies = cookies.join(b"; ".as_slice());
            match headers.iter_mut().find(|(name, _)| name == b"cookie") {
                Some((_, value)) => *value = [value.as_slice(), &cookies].join(b"; ".as_slice()),
                None => headers.push((b"cookie".to_vec(), cookies)),
            }
        }
        if !headers.iter().any(|(name, _)| name == b"host") {
            headers.insert(0, (b"host".to_vec(), self.authority().unwrap_or("localhost").as_bytes().to_vec()));
        }
        Ok(headers)
    }

    /// The host of an absolute URL.
    fn authority(&self) -> Option<&str> {
        let rest = self.uri.split_once("://").filter(|(scheme, _)| !scheme.contains('/'))?.1;
        rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())
    }

    /// The request target: an absolute URL without its host, and the query in it.
    fn uri(&self) -> Result<String, FieldProblem> {
        let mut uri = match self.authority() {
            Some(host) => self.uri.split_once(host).map_or("/", |(_, rest)| rest).to_owned(),
            None => self.uri.clone(),
        };
        if !uri.starts_with('/') && self.authority().is_some() {
            uri.insert(0, '/');
        }
        let query = match &self.query {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.strip_prefix('?').unwrap_or(text).to_owned(),
            Some(Value::Object(fields)) => {
                let pairs = pairs_as_given(Some(fields), "/request/query")?;
                let pairs: Vec<String> =
                    pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
                pairs.join("&")
            }
            Some(_) => {
                let problem = FieldProblem::new("/request/query", "this is not a query");
                return Err(problem.expected("a string, or an object of names to values"));
            }
        };
        if !query.is_empty() {
            uri.push(if uri.contains('?') { '&' } else { '?' });
            uri.push_str(&query);
        }
        Ok(uri)
    }
}

/// The connection's address, as a gateway writes it.
fn peer(address: &str) -> String {
    address.parse::<IpAddr>().map_or(address.to_owned(), |ip| SocketAddr::new(ip, CLIENT_PORT).to_string())
}

/// Header fields, names in lower case.
fn pairs(fields: Option<&Map<String, Value>>, pointer: &str) -> Result<Pairs, FieldProblem> {
    let mut pairs = pairs_as_given(fields, pointer)?;
    pairs.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    Ok(pairs)
}

fn pairs_as_given(fields: Option<&Map<String, Value>>, pointer: &str) -> Result<Pairs, FieldProblem> {
    let mut pairs = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        let texts = match value {
            Value::Array(several) => several.iter().map(text).collect::<Option<Vec<_>>>(),
            one => text(one).map(|text| vec![text]),
        };
        let Some(texts) = texts else {
            let problem = FieldProblem::new(format!("{pointer}/{name}"), "this is not a value");
            return Err(problem.expected("a string, or an array of strings"));
        };
        pairs.extend(texts.into_iter().map(|text| (name.as_bytes().to_vec(), text.into_bytes())));
    }
    Ok(pairs)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn body(text: Option<&str>, base64: Option<&str>, pointer: &str) -> Result<Vec<u8>, FieldProblem> {
    let field = format!("{pointer}/body_base64");
    match (text, base64) {
        (Some(_), Some(_)) => {
            Err(FieldProblem::new(field, "the body is given twice").expected("`body` or `body_base64`"))
        }
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|error| FieldProblem::new(field, format!("not base64: {error}")))
        }
        (text, None) => Ok(text.unwrap_or_default().as_bytes().to_vec()),
    }
}

/// Percent-encoded for a query.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(value: Value) -> TrialRequest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_target_is_what_a_gateway_would_see() {
        let uri = |value| request(value).uri().unwrap();
        assert_eq!(uri(json!({})), "/");
        assert_eq!(uri(json!({"uri": "/a?b=1", "query": "c=2"})), "/a?b=1&c=2");
        assert_eq!(uri(json!({"uri": "/a", "query": {"q": ["1 2", "ü"], "n": 3}})), "/a?q=1%202&q=%C3%BC&n=3");
        assert_eq!(uri(json!({"uri": "https://shop.example/a?b"})), "/a?b");
        assert_eq!(uri(json!({"uri": "https://shop.example"})), "/");
        assert_eq!(uri(json!({"uri": "/redirect?to=https://else.example/"})), "/redirect?to=https://else.example/");
        assert!(request(json!({"query": 1})).uri().is_err());
    }

    #[test]
    fn headers_cookies_and_host_come_together() {
        let headers = |value| {
            let headers = request(value).headers().unwrap();
            headers
                .into_iter()
                .map(|(name, value)| [name, value].join(b": ".as_slice()))
                .map(|line| String::from_utf8(line).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(headers(json!({})), ["host: localhost"]);
        assert_eq!(headers(json!({"uri": "http://shop.example:80/"})), ["host: shop.example:80"]);
        let given = json!({"headers": {"Host": "h", "X-A": ["1", "2"], "Cookie": "a=b"}, "cookies": {"C": "d"}});
        assert_eq!(headers(given), ["host: h", "x-a: 1", "x-a: 2", "cookie: a=b; C=d"]);
        assert!(request(json!({"headers": {"a": {}}})).headers().is_err());
    }

    #[test]
    fn a_body_is_text_or_base64() {
        assert_eq!(body(Some("a"), None, "/request").unwrap(), b"a");
        assert_eq!(body(None, Some("AP8="), "/request").unwrap(), [0, 255]);
        assert_eq!(body(Some(""), Some(""), "/request").unwrap_err().pointer, "/request/body_base64");
        assert!(body(None, Some("?"), "/request").is_err());
    }
}
