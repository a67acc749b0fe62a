//! One request, and its response, through an engine, in the order in which the WAF filter takes a real one.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use seclang::body::decode::{DecodeError, decode};
use seclang::{Engine, Intervention, InterventionKind, Transaction, TransactionStart};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::entities::{FieldProblem, WafConfig};

/// The request of a test. Fields that are left out have the values that a gateway would set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TrialRequest {
    /// Default `GET`.
    method: String,
    /// The path with its query, or an absolute URL. Default `/`.
    uri: String,
    /// The query: a string as in the URI, or an object of names and values. It is added to the query of `uri`.
    query: Option<Value>,
    /// Default `HTTP/1.1`.
    protocol: Option<String>,
    /// Names and values; a value is a string or a list of strings.
    headers: Option<Map<String, Value>>,
    /// Names and values; added to the `cookie` header.
    cookies: Option<Map<String, Value>>,
    /// The body as text.
    body: Option<String>,
    /// The body in base64, if it is not text.
    body_base64: Option<String>,
    /// The caller's address. Default `192.0.2.1`.
    remote_addr: Option<String>,
}

/// The backend's response.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TrialResponse {
    /// Default 200.
    status: u16,
    /// Default that of the request.
    protocol: Option<String>,
    /// Names and values; a value is a string or a list of strings.
    headers: Option<Map<String, Value>>,
    /// The body as text.
    body: Option<String>,
    /// The body in base64, if it is not text.
    body_base64: Option<String>,
}

/// How a trial went.
pub(super) struct Outcome {
    pub(super) transaction: Transaction,
    /// What a rule, or a limit, demanded.
    pub(super) blocked: Option<Intervention>,
    /// Which phases were run, from 1 to 5.
    pub(super) ran: [bool; 5],
    /// The phase in which the exchange ended.
    pub(super) blocked_in: Option<u8>,
}

/// Header fields in order.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A response whose fields have been read.
struct ReadResponse {
    status: u16,
    protocol: String,
    headers: Pairs,
    body: Vec<u8>,
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

/// Sends a request, and the response if there is one, through the engine.
pub(super) fn run(
    engine: &Arc<Engine>,
    request: &TrialRequest,
    response: Option<&TrialResponse>,
    now_millis: u64,
) -> Result<Outcome, FieldProblem> {
    let (headers, uri) = (request.headers()?, request.uri()?);
    let body = body(request.body.as_deref(), request.body_base64.as_deref(), "/request")?;
    let protocol = request.protocol.as_deref().unwrap_or("HTTP/1.1");
    let response = response.map(|response| response.read(protocol)).transpose()?;
    let start = TransactionStart {
        unique_id: uuid::Uuid::new_v4().to_string().into_bytes(),
        now_millis,
        client_addr: request.remote_addr.as_deref().unwrap_or("192.0.2.1").as_bytes().to_vec(),
        client_port: 40_000,
        server_addr: b"192.0.2.2".to_vec(),
        server_port: 443,
        ..TransactionStart::default()
    };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.limit_request_body(WafConfig::default().body_limits());
    let mut outcome = Outcome { transaction, blocked: None, ran: [false; 5], blocked_in: None };
    outcome.transaction.request_line(request.method.as_bytes(), uri.as_bytes(), protocol.as_bytes());
    headers.iter().for_each(|(name, value)| outcome.transaction.request_header(name, value));
    outcome.phases(&headers, &body, response.as_ref());
    outcome.ran[4] = true;
    outcome.transaction.logging();
    Ok(outcome)
}

impl Outcome {
    /// Phases 1 to 4, up to the one that ends the exchange.
    fn phases(&mut self, headers: &[(Vec<u8>, Vec<u8>)], body: &[u8], response: Option<&ReadResponse>) {
        let demanded = self.transaction.request_headers();
        if self.after(1, demanded) {
            return;
        }
        let body = match self.transaction.wants_request_body() {
            true => body,
            false => &[],
        };
        let demanded = match decoded(headers, body) {
            Ok(None) => self.transaction.request_body(body, true),
            Ok(Some(decoded)) => {
                self.transaction.request_body_as_sent(body, &decoded);
                self.transaction.request_body(&decoded, true)
            }
            Err(error) => Some(undecodable(&error)),
        };
        if self.after(2, demanded) {
            return;
        }
        let Some(ReadResponse { status, protocol, headers, body }) = response else { return };
        self.transaction.response_line(*status, protocol.as_bytes());
        headers.iter().for_each(|(name, value)| self.transaction.response_header(name, value));
        let demanded = self.transaction.response_headers();
        if self.after(3, demanded) {
            return;
        }
        let demanded = match decoded(headers, body) {
            Ok(Some(decoded)) => self.transaction.response_body(&decoded, true),
            // The filter inspects an odd encoding of a backend as it came.
            Ok(None) | Err(_) => self.transaction.response_body(body, true),
        };
        self.after(4, demanded);
    }

    /// Notes what a phase came to; true when the exchange ends with it.
    fn after(&mut self, phase: u8, demanded: Option<Intervention>) -> bool {
        if let Some(ran) = self.ran.get_mut(usize::from(phase).saturating_sub(1)) {
            *ran = true;
        }
        self.blocked_in = demanded.is_some().then_some(phase);
        self.blocked = demanded;
        self.blocked.is_some()
    }
}

impl TrialResponse {
    fn read(&self, protocol_of_request: &str) -> Result<ReadResponse, FieldProblem> {
        Ok(ReadResponse {
            status: self.status,
            protocol: self.protocol.as_deref().unwrap_or(protocol_of_request).to_owned(),
            headers: pairs(self.headers.as_ref(), "/response/headers")?,
            body: body(self.body.as_deref(), self.body_base64.as_deref(), "/response")?,
        })
    }
}

impl TrialRequest {
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

/// A body with its content encoding undone, as the filter does it with default limits; `None` where it has none.
fn decoded(headers: &[(Vec<u8>, Vec<u8>)], body: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
    let codings = headers.iter().filter(|(name, _)| name == b"content-encoding").map(|(_, value)| value.as_slice());
    let codings = codings.collect::<Vec<_>>().join(b",".as_slice());
    let codings = codings.trim_ascii();
    if codings.is_empty() || codings.eq_ignore_ascii_case(b"identity") || body.is_empty() {
        return Ok(None);
    }
    let defaults = WafConfig::default();
    let limit = usize::try_from(defaults.decompressed_limit()).unwrap_or(usize::MAX);
    let ratio = u32::try_from(defaults.compression_ratio()).unwrap_or(u32::MAX);
    decode(codings, body, limit, ratio).map(Some)
}

/// A request that the rules cannot look at, as the filter refuses it.
fn undecodable(error: &DecodeError) -> Intervention {
    let status = match error {
        DecodeError::TooLarge | DecodeError::Ratio | DecodeError::Members => 413,
        DecodeError::Unknown => 415,
        DecodeError::Truncated | DecodeError::Corrupt | DecodeError::Ambiguous => 400,
    };
    let msg = format!("the request body cannot be inspected: {error}").into_bytes();
    Intervention { status, rule_id: 0, kind: InterventionKind::Deny, msg }
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
