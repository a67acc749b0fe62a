//! Servers that take events over HTTP: what they are reached by, and what their answers mean.

mod headers;
mod response;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

pub use response::retry_after;

use super::{Failure, Then};
use outbound::{Pool, PoolTrust};

/// How long a connection that is not used is kept.
const IDLE: Duration = Duration::from_secs(30);

/// The longest reason of a server that is shown, in characters.
const MAX_REASON: usize = 300;

/// How a server is reached.
#[derive(Clone)]
pub struct ServerOptions {
    /// `http://` or `https://`, without a user and password. The operator's own choice: it may be on a private network.
    pub url: Uri,
    /// A file of further headers, `Name: value` on each line. Read for each request, so that a secret can be replaced.
    pub headers_file: Option<PathBuf>,
    /// A file of PEM certificates to trust instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take, from the connection to the end of the answer.
    pub timeout: Duration,
}

/// A server and the connections to it. Redirects are not followed. Cheap to clone.
#[derive(Clone)]
pub(super) struct Server {
    options: ServerOptions,
    pool: Pool,
}

/// What is posted.
pub(super) struct Body {
    /// Its media type.
    pub(super) content_type: &'static str,
    /// Whether `bytes` are compressed with gzip.
    pub(super) is_gzip: bool,
    pub(super) bytes: Vec<u8>,
}

/// What a server has answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The body; `None` where it is longer than was asked for, or broke off.
    pub(super) body: Option<Bytes>,
}

/// Why a server cannot be used, in a sentence without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError(String);

impl Server {
    /// A server; nothing is sent yet. `what` is what it is called for people.
    ///
    /// # Errors
    ///
    /// The URL is none that can be used, a file cannot be read or does not hold what it should, or the system has no
    /// certificates to trust.
    pub(super) fn new(what: &str, options: ServerOptions) -> Result<Server, ServerError> {
        let tls = check_url(what, &options.url)?;
        headers::read(options.headers_file.as_deref()).map_err(ServerError)?;
        let trust = match (tls, &options.ca_file) {
            (false, _) => PoolTrust::NoTls,
            (true, None) => PoolTrust::System,
            (true, Some(file)) => PoolTrust::File(file),
        };
        let pool = Pool::new(trust, IDLE).map_err(|error| ServerError(error.to_string()))?;
        Ok(Server { options, pool })
    }

    /// The URL that it was made with.
    pub(super) fn url(&self) -> &Uri {
        &self.options.url
    }

    /// Scheme, host and port: what may be shown. A path or a query can hold a secret.
    pub(super) fn origin(&self) -> String {
        let url = &self.options.url;
        let scheme = url.scheme_str().unwrap_or_default();
        format!("{scheme}://{}", url.authority().map_or("", |authority| authority.as_str()))
    }

    /// The URL of `path`, which may have a query, below the one that it was made with. `what` is what it is called for people.
    ///
    /// # Errors
    ///
    /// The URL that it was made with has a query, or the two make no URL.
    pub(super) fn below(&self, what: &str, path: &str) -> Result<Uri, ServerError> {
        let base = self.url();
        if base.query().is_some() {
            return Err(ServerError(format!("the URL of {what} must have no query")));
        }
        let url = format!("{}{}{path}", self.origin(), base.path().trim_end_matches('/'));
        url.parse().map_err(|_| ServerError(format!("the URL of {what} and `{path}` make no URL")))
    }

    /// Posts a body; of the answer at most `max_answer` bytes are read. No answer in time is a [`Failure`] that is tried again.
    pub(super) async fn post(&self, url: &Uri, body: Body, max_answer: usize) -> Result<Answer, Failure> {
        let posting = async {
            // Not without them: a server that wants a secret would refuse for good.
            let mut headers = headers::read(self.options.headers_file.as_deref()).map_err(|why| retry(why, None))?;
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body.content_type));
            if body.is_gzip {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            let answered = self.pool.post(url, headers, Bytes::from(body.bytes), max_answer).await;
            let (status, headers, body) = answered.map_err(|error| retry(error.to_string(), None))?;
            Ok(Answer { status, headers, body })
        };
        let timeout = self.options.timeout;
        let in_time = tokio::time::timeout(timeout, posting).await;
        in_time.unwrap_or_else(|_| Err(retry(format!("no answer within {} s", timeout.as_secs_f64()), None)))
    }
}

impl Answer {
    /// What its status means for a batch: nothing of it is written unless it is 2xx.
    pub(super) fn judge(&self) -> Result<(), Failure> {
        response::judge(self.status, &self.headers, base::clock::now_millis())
    }
}

/// Nothing is written, and all of it is tried again.
pub(super) fn retry(reason: String, after: Option<Duration>) -> Failure {
    Failure { written: 0, refused: 0, reason, then: Then::Retry(after) }
}

/// What a server says, for people: without control characters, and not longer than they read.
pub(super) fn shown(reason: &str) -> String {
    reason.chars().filter(|character| !character.is_control()).take(MAX_REASON).collect()
}

/// Whether it wants TLS.
fn check_url(what: &str, url: &Uri) -> Result<bool, ServerError> {
    let wrong = |why: &str| ServerError(format!("the URL of {what} cannot be used: {why}"));
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

impl ServerError {
    pub(super) fn new(why: String) -> ServerError {
        ServerError(why)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.origin()).finish()
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host().unwrap_or_default();
        f.debug_struct("ServerOptions").field("host", &host).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServerError {}
