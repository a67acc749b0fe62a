//! Requests to a server of the operator's own choice, on connections that are kept. No address is guarded: it may be on a
//! private network, and the operator of the control plane chooses it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connection::USER_AGENT;
use super::tls::{TrustError, client_config, client_config_without_trust};

/// A client that keeps its connections. Clones share them.
#[derive(Clone, Debug)]
pub struct Pool {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// The certificates that a [`Pool`] trusts servers by.
#[derive(Clone, Copy, Debug)]
pub enum PoolTrust<'a> {
    /// No certificate: for URLs without TLS.
    NoTls,
    /// Those of the system.
    System,
    /// Those of a file in PEM, and no others.
    File(&'a Path),
}

/// Why there is no answer, with all causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolError(String);

impl Pool {
    /// A client whose connections are kept for `idle` after their last use.
    ///
    /// # Errors
    ///
    /// There are no certificates to trust.
    pub fn new(trust: PoolTrust<'_>, idle: Duration) -> Result<Pool, TrustError> {
        let config = match trust {
            PoolTrust::NoTls => client_config_without_trust()?,
            PoolTrust::System => client_config(None)?,
            PoolTrust::File(file) => client_config(Some(file))?,
        };
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle)
            .build(connector);
        Ok(Pool { client })
    }

    /// Posts `body`: [`Pool::request`] with POST.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or breaks off.
    pub async fn post(
        &self,
        url: &Uri,
        headers: HeaderMap,
        body: Bytes,
        max_answer: usize,
    ) -> Result<(StatusCode, HeaderMap, Option<Bytes>), PoolError> {
        self.request(Method::POST, url, headers, body, max_answer).await
    }

    /// Makes a request and returns status, headers and body of the answer. At most `max_answer` bytes of the body are read: of a longer one,
    /// or one that breaks off, there is none. Redirects are not followed, and there is no limit of time.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or breaks off.
    pub async fn request(
        &self,
        method: Method,
        url: &Uri,
        mut headers: HeaderMap,
        body: Bytes,
        max_answer: usize,
    ) -> Result<(StatusCode, HeaderMap, Option<Bytes>), PoolError> {
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        let response = self.client.request(request).await.map_err(|error| PoolError(chain(&error)))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, max_answer).collect().await.ok().map(|body| body.to_bytes());
        Ok((parts.status, parts.headers, body))
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PoolError {}

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
