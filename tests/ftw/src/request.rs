//! From a stage to an exchange.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::case::Input;
use proxy_host::traffic::{Exchange, Headers, Request, Response};

/// A request as it is on the wire, taken apart.
struct Wire {
    method: Vec<u8>,
    uri: Vec<u8>,
    version: Vec<u8>,
    headers: Headers,
    body: Vec<u8>,
}

/// The exchange of a stage. A request to `/reflect` describes its response; every other response is an empty 200.
///
/// # Errors
///
/// An encoded request or response body that is no base64.
pub fn exchange(input: &Input) -> Result<Exchange, String> {
    let (wire, bytes) = match &input.encoded_request {
        Some(encoded) => {
            let bytes = decode(encoded)?;
            (parse(&bytes), bytes)
        }
        None => {
            let wire = complete(input);
            let body = input.data.as_deref().unwrap_or_default();
            let bytes = write(&wire, body.as_bytes());
            (wire, bytes)
        }
    };
    let response = reflected(&wire.uri, &wire.body)?;
    Ok(Exchange { request: Request { wire: bytes, ..as_gateway(wire) }, response })
}

/// The bytes of a request. The body is there also where no header announces it: what becomes of it is the server's matter.
fn write(wire: &Wire, body: &[u8]) -> Vec<u8> {
    let mut out = [wire.method.as_slice(), b" ", &wire.uri, b" ", &wire.version, b"\r\n"].concat();
    for (name, value) in &wire.headers {
        for part in [name.as_slice(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    let packed: String = text.split_whitespace().collect();
    STANDARD.decode(packed).map_err(|error| format!("no base64: {error}"))
}

/// The request with the headers that the suite's own client adds.
fn complete(input: &Input) -> Wire {
    let mut body = input.data.clone().unwrap_or_default().into_bytes();
    let mut headers: Headers =
        input.headers.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let has =
        |headers: &Headers, wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
    if input.autocomplete_headers != Some(false) {
        if !body.is_empty() && !has(&headers, "content-type") {
            headers.push((b"Content-Type".to_vec(), b"application/x-www-form-urlencoded".to_vec()));
        }
        if !body.is_empty() && !has(&headers, "content-length") {
            headers.push((b"Content-Length".to_vec(), body.len().to_string().into_bytes()));
        }
        if !has(&headers, "connection") {
            headers.push((b"Connection".to_vec(), b"close".to_vec()));
        }
    } else if !has(&headers, "content-length") && !has(&headers, "transfer-encoding") {
        // Without a length no server reads a body.
        body.clear();
    }
    let word = |word: &Option<String>, default: &str| word.as_deref().unwrap_or(default).as_bytes().to_vec();
    Wire {
        method: word(&input.method, "GET"),
        uri: word(&input.uri, "/"),
        version: word(&input.version, "HTTP/1.1"),
        headers,
        body,
    }
}

fn parse(raw: &[u8]) -> Wire {
    let end = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(raw.len());
    let mut lines = raw[..end].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut words = lines.next().unwrap_or_default().splitn(3, |&byte| byte == b' ');
    let mut word = || words.next().unwrap_or_default().to_vec();
    let (method, uri, version) = (word(), word(), word());
    let headers: Headers = lines
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((line[..colon].to_vec(), line[colon + 1..].trim_ascii().to_vec()))
        })
        .collect();
    let mut body = raw.get(end + 4..).unwrap_or_default().to_vec();
    if headers.iter().any(|(name, value)| name.eq_ignore_ascii_case(b"transfer-encoding") && value == b"chunked") {
        body = dechunked(&body);
    }
    Wire { method, uri, version, headers, body }
}

/// A body without its chunks; what does not fit the grammar ends it.
fn dechunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let chunk = rest.get(end + 2..).unwrap_or_default();
        out.extend_from_slice(chunk.get(..size).unwrap_or(chunk));
        rest = size.checked_add(2).and_then(|end| chunk.get(end..)).unwrap_or_default();
    }
    out
}

/// As a gateway hands a request on: names in lower case, the host among the pseudo headers.
///
/// A request without one host that names something keeps what it has among the headers, where rules look for it: a
/// gateway would have refused it, and the suite asks what the rules say.
fn as_gateway(wire: Wire) -> Request {
    let hosts: Vec<&Vec<u8>> =
        wire.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value).collect();
    let authority = hosts.first().filter(|host| !host.is_empty()).map(|host| host.to_vec());
    let alone = hosts.len() == 1 && authority.is_some();
    let mut headers = vec![(b":method".to_vec(), wire.method), (b":path".to_vec(), wire.uri)];
    headers.extend(authority.map(|host| (b":authority".to_vec(), host)));
    let regular = wire.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    headers.extend(regular.filter(|(name, _)| !(alone && name == b"host")));
    Request { headers, body: wire.body, protocol: wire.version, ..Request::default() }
}

/// What the suite's backend answers: to `/reflect` what the request's body describes, to all else an empty 200.
///
/// # Errors
///
/// A response body that should be base64 and is not.
pub fn reflected(path: &[u8], body: &[u8]) -> Result<Response, String> {
    let mut response = Response::default();
    if !path.starts_with(b"/reflect") {
        return Ok(response);
    }
    let Ok(spec) = serde_json::from_slice::<Value>(body) else { return Ok(response) };
    if let Some(status) = spec.get("status").and_then(Value::as_u64) {
        response.status = u16::try_from(status).unwrap_or(200);
    }
    if let Some(headers) = spec.get("headers").and_then(Value::as_object) {
        let pair = |(name, value): (&String, &Value)| Some((name.to_ascii_lowercase().into(), value.as_str()?.into()));
        response.headers = headers.iter().filter_map(pair).collect();
    }
    if let Some(body) = spec.get("body").and_then(Value::as_str) {
        response.body = body.as_bytes().to_vec();
    } else if let Some(body) = spec.get("encodedBody").and_then(Value::as_str) {
        response.body = decode(body)?;
    }
    if !response.headers.iter().any(|(name, _)| name == b"content-type") {
        response.headers.push((b"content-type".to_vec(), b"text/plain; charset=utf-8".to_vec()));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(headers: &[(&str, &str)]) -> Input {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Input { headers, data: Some("a=1".into()), ..Input::default() }
    }

    #[test]
    fn what_the_client_adds_is_added_once() {
        let request = exchange(&input(&[("Host", "h"), ("CONTENT-LENGTH", "3")])).unwrap().request;
        let names: Vec<&[u8]> = request.headers.iter().map(|(name, _)| name.as_slice()).collect();
        let expected: [&[u8]; 6] =
            [b":method", b":path", b":authority", b"content-length", b"content-type", b"connection"];
        assert_eq!(names, expected);
        assert_eq!(request.body, b"a=1");
    }

    #[test]
    fn nothing_is_added_where_nothing_is_wanted() {
        let request = exchange(&Input { autocomplete_headers: Some(false), ..input(&[("Host", "")]) }).unwrap().request;
        assert_eq!(request.headers.last().unwrap(), &(b"host".to_vec(), b"".to_vec()));
        assert_eq!((request.headers.len(), request.body.len()), (3, 0));
    }

    #[test]
    fn a_request_on_the_wire_is_taken_apart() {
        let raw = b"POST /x HTTP/1.0\r\nHost: a\r\nhost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let request =
            exchange(&Input { encoded_request: Some(STANDARD.encode(raw)), ..Input::default() }).unwrap().request;
        assert_eq!((request.body.as_slice(), request.protocol.as_slice()), (&b"abcde"[..], &b"HTTP/1.0"[..]));
        assert_eq!(request.headers.iter().filter(|(name, _)| name == b"host").count(), 2);
        assert_eq!(request.header(":authority"), Some(&b"a"[..]));
        // A size that nothing is behind ends the body.
        assert_eq!(dechunked(b"ffffffffffffffff\r\nab"), b"ab");
    }

    #[test]
    fn a_reflected_response_is_what_the_body_says() {
        let spec = r#"{"status": 500, "headers": {"X-A": "b"}, "encodedBody": "c2VjcmV0"}"#;
        let input = Input { uri: Some("/reflect".into()), data: Some(spec.into()), ..Input::default() };
        let response = exchange(&input).unwrap().response;
        assert_eq!((response.status, response.body.as_slice()), (500, &b"secret"[..]));
        assert_eq!(response.headers[0], (b"x-a".to_vec(), b"b".to_vec()));
    }
}
