//! A client of the admin API.

use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use super::dial::Dial;
use super::error::CliError;

/// How long one call may take: a large batch compiles before it is answered.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Calls one control plane with one key.
pub(super) struct Client {
    /// `host:port`.
    authority: String,
    dial: Dial,
    /// What the URL has in front of all paths; empty for most.
    root: String,
    /// What the paths of collections begin with, such as `/apis/palisade.svc/v1`.
    base: String,
    authorization: String,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Client {
    /// A client of the API at `url` with the key `id:secret`. `ca` is a file with the authorities that may have signed the
    /// certificate of an https URL; without one, those count that this system trusts.
    pub(super) fn new(url: &str, group: &str, key: &str, ca: Option<&Path>) -> Result<Client, CliError> {
        let wrong = |what: &str| CliError::Other(format!("`{url}` cannot be used: {what}"));
        let uri: Uri =
            url.parse().map_err(|_| wrong("it is not a URL; http://HOST:PORT or https://HOST:PORT is expected"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("http://HOST:PORT or https://HOST:PORT is expected")),
        };
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        if key.split_once(':').is_none_or(|(id, secret)| id.is_empty() || secret.is_empty()) {
            return Err(CliError::Other("the admin key is given as ID:SECRET".to_owned()));
        }
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(if tls { 443 } else { 80 }));
        let dial = match tls {
            true => Dial::tls(authority.clone(), host, ca)?,
            false => Dial::plain(authority.clone()),
        };
        Ok(Client {
            authority,
            dial,
            root: uri.path().trim_end_matches('/').to_owned(),
            base: format!("{}/apis/{group}/v1", uri.path().trim_end_matches('/')),
            authorization: format!("Basic {}", STANDARD.encode(key)),
        })
    }

    /// Calls `path` below the collections' base and reads the answer as JSON. An answer that is no success is an error.
    pub(super) async fn get(&self, path: &str) -> Result<(Value, Answer), CliError> {
        self.get_at(&format!("{}{path}", self.base)).await
    }

    /// The same for a path outside of the collections, such as that of a report.
    pub(super) async fn get_report(&self, path: &str) -> Result<Value, CliError> {
        Ok(self.get_at(&format!("{}/api/extensions/svc/waf/api{path}", self.root)).await?.0)
    }

    async fn get_at(&self, target: &str) -> Result<(Value, Answer), CliError> {
        let answer = self.call_at(Method::GET, target, "application/json", String::new()).await?;
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        if answer.status.is_success() {
            return Ok((body, answer));
        }
        Err(self.refused_at(target, answer.status, &body))
    }

    /// What to say of an answer that is no success.
    pub(super) fn refused(&self, path: &str, status: StatusCode, body: &Value) -> CliError {
        self.refused_at(&format!("{}{path}", self.base), status, body)
    }

    fn refused_at(&self, target: &str, status: StatusCode, body: &Value) -> CliError {
        let said = body.get("error_description").and_then(Value::as_str).unwrap_or("it does not say why");
        CliError::Other(format!("{} answers {status} for {target}: {said}", self.authority))
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer, CliError> {
        self.call_at(method, &format!("{}{path}", self.base), content_type, body).await
    }

    async fn call_at(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer, CliError> {
        match tokio::time::timeout(TIMEOUT, self.exchange(method, target, content_type, body)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(CliError::Io(format!("call {}", self.authority), error)),
            Err(_) => {
                Err(CliError::Other(format!("{} does not answer within {} s", self.authority, TIMEOUT.as_secs())))
            }
        }
    }

    async fn exchange(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        body: String,
    ) -> std::io::Result<Answer> {
        let stream = self.dial.connect().await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::new(Bytes::from(body)))
            .map_err(std::io::Error::other)?;
        let (parts, body) = sender.send_request(request).await.map_err(std::io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let text = String::from_utf8(body.to_vec()).map_err(std::io::Error::other)?;
        Ok(Answer { status: parts.status, headers: parts.headers, text })
    }
}
