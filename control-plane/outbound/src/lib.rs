//! Calls to addresses that come from entities: channels of alerts, what checks a challenge, feeds.
//!
//! Who may write entities must not reach by them what only this machine reaches. So every address of a name is checked, the
//! connection goes to an address that was checked, a redirect is checked like the call itself, and time and size are capped.
//! Proxies of the environment (`HTTPS_PROXY`) are not used.
//!
//! [`Pool`] is for a server that the operator names on the command line; it is not guarded.

mod address;
mod connection;
mod error;
mod pool;
mod redirect;
mod resolve;
mod target;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use ipnet::IpNet;

pub use address::special_use;
pub use error::{OutboundError, OutboundFault};
pub use pool::{Pool, PoolError, PoolTrust};
pub use resolve::{Resolved, Resolver, SystemResolver};
pub use tls::{Trust, TrustError};

use redirect::Step;
use target::Target;

/// The one client for addresses that come from entities. Cheap to clone. Each call has a connection of its own.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    allowed: Vec<IpNet>,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
}

/// One call.
#[derive(Clone)]
pub struct Call {
    /// GET, POST and so on.
    pub method: Method,
    /// `http://` or `https://`, without user and password. It may hold a secret, which no error repeats.
    pub url: String,
    /// The headers. Those of the connection (`Host`, `Content-Length`, `Transfer-Encoding`, ...) are set by the call itself.
    /// To another origin than that of `url`, only `Accept`, `Accept-Language`, `Content-Type` and `User-Agent` are sent on.
    pub headers: HeaderMap,
    /// The body; empty for none. It is sent to the origin of `url` alone.
    pub body: Bytes,
    /// How long all of it may take together: resolving the name, connecting, redirects, the whole answer.
    pub timeout: Duration,
    /// The bytes of the answer's body, at most; a longer one is an error ([`OutboundFault::TooLong`]).
    pub max_answer_bytes: usize,
    /// How many redirects are followed, one after the other. With 0 a redirect is the answer.
    pub redirects: u8,
}

/// What came back, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, not 1xx.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of its body, as it was sent (not unpacked).
    pub body: Bytes,
}

impl Outbound {
    /// A client that also reaches the special-use addresses within `allowed`. It trusts the certificates of the system, which
    /// are read with the first call that needs them.
    #[must_use]
    pub fn new(allowed: Vec<IpNet>) -> Outbound {
        Outbound::with(allowed, Arc::new(SystemResolver), Trust::system())
    }

    /// A client with a resolver and certificates of its own.
    #[must_use]
    pub fn with(allowed: Vec<IpNet>, resolver: Arc<dyn Resolver>, trust: Trust) -> Outbound {
        Outbound(Arc::new(Inner { allowed, resolver, trust }))
    }

    /// Makes a call. An answer with any status is an answer.
    ///
    /// # Errors
    ///
    /// The URL cannot be used, it leads to an address that is not for outside, there is no answer in time, or the answer is too
    /// long. They name scheme, host and port and nothing else of the URL.
    pub async fn call(&self, call: Call) -> Result<Answer, OutboundError> {
        let mut target = Target::parse(&call.url)?;
        let (timeout, first) = (call.timeout, target.origin());
        let deadline = tokio::time::Instant::now() + timeout;
        let all = async {
            let mut step = Step::first(call);
            loop {
                let answer = self.once(&target, &step, deadline).await?;
                match step.after(&target, &answer)? {
                    Some(next) => target = next,
                    None => return Ok(answer),
                }
            }
        };
        match tokio::time::timeout_at(deadline, all).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let what = format!("no complete answer within {} s", timeout.as_secs_f64());
                Err(OutboundError::new(OutboundFault::Timeout, first, what))
            }
        }
    }

    async fn once(
        &self,
        target: &Target,
        step: &Step,
        deadline: tokio::time::Instant,
    ) -> Result<Answer, OutboundError> {
        let addresses = resolve::checked(self.0.resolver.as_ref(), target, &self.0.allowed).await?;
        let tls = if target.tls() { Some(self.0.trust.config(target).await?) } else { None };
        let stream = connection::open(target, &addresses, deadline).await?;
        connection::exchange(target, stream, tls, step).await
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("allowed", &self.0.allowed).finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    /// Without what may be secret: the URL's path, headers, the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Target::parse(&self.url).map_or_else(|_| "no URL".to_owned(), |target| target.origin());
        f.debug_struct("Call").field("method", &self.method).field("origin", &origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
