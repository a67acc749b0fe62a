//! One element of `log.entries`.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use serde_json::Value;

use super::message::{self, Content, PostData};
use crate::json;
use crate::shape::{self, Line};
use crate::traffic::{Exchange, Headers, Request, Response};
use crate::{Entry, Input, time};

/// An element, as far as it is looked at. What browsers leave out or write as null is allowed to be missing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Element {
    started_date_time: Option<String>,
    request: Asked,
    response: Option<Answer>,
    /// The address that the name was resolved to; IPv6 with brackets or without.
    #[serde(rename = "serverIPAddress")]
    server_ip: Option<String>,
    /// Chromium: `memory` or `disk`.
    #[serde(rename = "_fromCache")]
    from_cache: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    method: String,
    url: String,
    http_version: Option<String>,
    headers: Option<Vec<Pair>>,
    post_data: Option<PostData>,
    body_size: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: Option<f64>,
    headers: Option<Vec<Pair>>,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    name: String,
    value: Option<String>,
}

/// The entry of an element; `None` for what never reached a network.
///
/// # Errors
///
/// What is wrong with the element, and in which field.
pub(super) fn read(text: &[u8], input: &Input, number: u64) -> Result<Option<Entry>, String> {
    let Element { started_date_time, request: asked, response: answer, server_ip, from_cache } = json::parse(text)
        .map_err(|fault| format!("`{}`: {} (line {} of the entry)", fault.path, fault.why, fault.line))?;
    let Some(url) = shape::url(&asked.url) else {
        // data:, blob:, about: and the like.
        return if asked.url.contains(':') { Ok(None) } else { Err("`request.url` is no URL".to_owned()) };
    };
    let scheme = match url.scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return Ok(None),
    };
    let from_cache = from_cache.as_ref().is_some_and(|cache| !matches!(cache, Value::Null | Value::Bool(false)));
    if from_cache || answer.as_ref().is_some_and(Answer::never_came) {
        return Ok(None);
    }
    let mut notes = Vec::new();
    let at_millis = started_date_time.as_deref().and_then(time::parse);
    if started_date_time.is_some() && at_millis.is_none() {
        notes.push("`startedDateTime` is no time".to_owned());
    }
    let protocol = asked.http_version.as_deref().and_then(shape::protocol).unwrap_or("HTTP/1.1");
    let headers = shape::lower(pairs(asked.headers));
    let line = Line {
        method: asked.method.into_bytes(),
        path: Some(url.path.into_bytes()),
        authority: (!headers.iter().any(|(name, _)| name == b"host")).then(|| url.authority.into()),
        scheme: Some(scheme.into()),
    };
    let local = server_ip.and_then(|ip| server(&ip, url.authority, scheme));
    let mut headers = shape::request(line, headers);
    let body = message::request_body(asked.post_data, asked.body_size, &mut headers, &mut notes)?;
    let default = Request::default();
    let local = local.unwrap_or(default.local);
    let request = Request { headers, body, protocol: protocol.into(), peer: input.peer.clone(), local, ..default };
    let (status, response) = response(answer, &mut notes)?;
    let exchange = Exchange { request, response };
    Ok(Some(Entry { place: input.place(number), at_millis, status, notes, exchange }))
}

/// Address and port of the server that the browser spoke to.
fn server(ip: &str, authority: &str, scheme: &str) -> Option<String> {
    let ip: IpAddr = ip.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some(SocketAddr::new(ip, port).to_string())
}

fn response(answer: Option<Answer>, notes: &mut Vec<String>) -> Result<(Option<u16>, Response), String> {
    let Some(answer) = answer else {
        notes.push("no response was recorded".to_owned());
        return Ok((None, Response::default()));
    };
    let status = answer.status().ok_or("`response.status` is no status")?;
    let mut headers = shape::response(pairs(answer.headers));
    let body = message::response_body(answer.content, &mut headers, notes)?;
    Ok((Some(status), Response { status, headers, body, trailers: Headers::new() }))
}

/// Chromium writes the values of a header that came several times as the lines of one.
fn pairs(headers: Option<Vec<Pair>>) -> Headers {
    let lines = |pair: Pair| {
        let values: Vec<Vec<u8>> = match pair.value.as_deref().unwrap_or_default() {
            "" => vec![Vec::new()],
            value => value.split('\n').map(|line| line.trim_end_matches('\r').into()).collect(),
        };
        let name = pair.name.into_bytes();
        values.into_iter().map(move |value| (name.clone(), value))
    };
    headers.unwrap_or_default().into_iter().flat_map(lines).collect()
}

impl Answer {
    /// The browser had it cancelled or blocked, or went to https by itself.
    fn never_came(&self) -> bool {
        let by_itself = |pair: &Pair| pair.name.eq_ignore_ascii_case("non-authoritative-reason");
        self.status.is_none_or(|status| status == 0.0) || self.headers.iter().flatten().any(by_itself)
    }

    fn status(&self) -> Option<u16> {
        let status = self.status.filter(|status| status.fract() == 0.0 && (100.0..1000.0).contains(status))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "its range was looked at")]
        Some(status as u16)
    }
}
