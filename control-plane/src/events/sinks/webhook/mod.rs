//! Batches by POST to a server of the operator's choice.

mod headers;
mod response;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub(crate) use response::retry_after;

use super::{Failure, Sink, Then};
use crate::events::queue::{Bounds, Line};
use crate::outbound::{client_config, client_config_without_trust};

/// How long a connection that is not used is kept.
const IDLE: Duration = Duration::from_secs(30);
/// So much of an answer is read, so that its connection can be used again.
const MAX_ANSWER: usize = 64 * 1024;
/// What every request says of itself.
const USER_AGENT: &str = concat!("palisade/", env!("CARGO_PKG_VERSION"));

/// The settings of a webhook.
#[derive(Clone)]
pub struct WebhookOptions {
    /// `http://` or `https://`, without a user and password. The operator's own choice: it may be on a private network.
    pub url: Uri,
    /// A file of further headers, `Name: value` on each line. Read for each request, so that a secret can be replaced.
    pub headers_file: Option<PathBuf>,
    /// A file of PEM certificates to trust instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take, from the connection to the end of the answer.
    pub timeout: Duration,
}

/// A server that takes events: each request is a POST of `application/x-ndjson`, a line of JSON for each event, at most 500
/// of them or 1 MiB (a longer event stands alone). Redirects are not followed. Cheap to clone.
#[derive(Clone)]
pub struct Webhook {
    options: WebhookOptions,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why a webhook cannot be used, in a sentence without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookError(String);

impl Webhook {
    /// A webhook; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The URL is none that can be used, a file cannot be read or does not hold what it should, or the system has no
    /// certificates to trust.
    pub fn new(options: WebhookOptions) -> Result<Webhook, WebhookError> {
        let tls = check_url(&options.url)?;
        headers::read(options.headers_file.as_deref()).map_err(WebhookError)?;
        let config = trust(tls, options.ca_file.as_deref())?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Webhook { options, client })
    }

    /// Scheme, host and port: what may be shown. A path or a query can hold a secret.
    #[must_use]
    pub fn origin(&self) -> String {
        let url = &self.options.url;
        let scheme = url.scheme_str().unwrap_or_default();
        format!("{scheme}://{}", url.authority().map_or("", |authority| authority.as_str()))
    }

    async fn post(&self, batch: &[Line]) -> Result<(), Failure> {
        // Not without them: a server that wants a secret would refuse for good.
        let headers = headers::read(self.options.headers_file.as_deref()).map_err(|why| retry(why, None))?;
        let mut text = Vec::with_capacity(batch.iter().map(|line| line.len() + 1).sum());
        for line in batch {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let mut request = Request::new(Full::new(Bytes::from(text)));
        *request.method_mut() = axum::http::Method::POST;
        *request.uri_mut() = self.options.url.clone();
        *request.headers_mut() = all_headers(headers);
        let response = self.client.request(request).await.map_err(|error| retry(chain(&error), None))?;
        let (parts, body) = response.into_parts();
        // Only to its end: what it says is not ours to repeat.
        let _ = Limited::new(body, MAX_ANSWER).collect().await;
        response::judge(parts.status, &parts.headers, crate::clock::now_millis())
    }
}

impl Sink for Webhook {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 1 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let timeout = self.options.timeout;
        let in_time = tokio::time::timeout(timeout, self.post(batch)).await;
        in_time.unwrap_or_else(|_| Err(retry(format!("no answer within {} s", timeout.as_secs_f64()), None)))
    }
}

fn all_headers(own: HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.extend(own);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers
}

fn retry(reason: String, after: Option<Duration>) -> Failure {
    Failure { written: 0, reason, then: Then::Retry(after) }
}

/// Whether it wants TLS.
fn check_url(url: &Uri) -> Result<bool, WebhookError> {
    let wrong = |what: &str| WebhookError(format!("the URL of the webhook cannot be used: {what}"));
    let tls = match url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        _ => return Err(wrong("https://HOST[:PORT]/PATH or http://… is expected")),
    };
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err(wrong("it holds a user or a password; put an `authorization` header into the file of headers"))
        }
        Some(authority) if !authority.host().is_empty() => Ok(tls),
        _ => Err(wrong("it names no host")),
    }
}

/// For URLs without TLS: no server is trusted.
fn trust(tls: bool, ca_file: Option<&std::path::Path>) -> Result<rustls::ClientConfig, WebhookError> {
    if tls { client_config(ca_file) } else { client_config_without_trust() }.map_err(WebhookError)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some repeat their cause in their own words.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Webhook").field(&self.origin()).finish()
    }
}

impl fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host().unwrap_or_default();
        f.debug_struct("WebhookOptions").field("host", &host).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WebhookError {}

#[cfg(test)]
mod tests;
