//! Batches by POST to a server of the operator's choice.

mod headers;
mod response;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::Scheme;
use axum::http::{HeaderValue, Uri, header};

pub use response::retry_after;

use super::{Failure, Sink, Then};
use crate::queue::{Bounds, Line};
use outbound::{Pool, PoolTrust};

/// How long a connection that is not used is kept.
const IDLE: Duration = Duration::from_secs(30);
/// So much of an answer is read, so that its connection can be used again.
const MAX_ANSWER: usize = 64 * 1024;

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
    pool: Pool,
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
        let trust = match (tls, &options.ca_file) {
            (false, _) => PoolTrust::NoTls,
            (true, None) => PoolTrust::System,
            (true, Some(file)) => PoolTrust::File(file),
        };
        let pool = Pool::new(trust, IDLE).map_err(|error| WebhookError(error.to_string()))?;
        Ok(Webhook { options, pool })
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
        let mut headers = headers;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        let answered = self.pool.post(&self.options.url, headers, Bytes::from(text), MAX_ANSWER).await;
        let (status, headers) = answered.map_err(|error| retry(error.to_string(), None))?;
        response::judge(status, &headers, base::clock::now_millis())
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
