//! Calls to addresses that come from entities: channels of alerts, what checks a challenge, feeds.
//!
//! Who may write entities must not reach by them what only this machine reaches. So every address of a name is checked, the
//! connection goes to an address that was checked, a redirect is checked like the call itself, and time and size are capped.
//! Proxies of the environment (`HTTPS_PROXY`) are not used.
//!
//! [`Pool`] is for a server that the operator names on the command line; it is not guarded.

mod address;
mod call;
mod connection;
mod dial;
mod error;
mod pool;
mod redirect;
mod resolve;
mod target;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::TcpStream;

pub use address::{PRIVATE, special_use};
pub use call::{Answer, Call};
pub use dial::{Dialer, Duplex};
pub use error::{OutboundError, OutboundFault};
pub use pool::{Pool, PoolError, PoolTrust};
pub use resolve::{Resolved, Resolver, SystemResolver};
pub use tls::{Trust, TrustError, client_config};

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

    /// The same client for a call whose entity allows targets in the operator's own network: it also reaches loopback addresses and
    /// private ones of IPv4 ([`PRIVATE`]), and none at which clouds give out credentials.
    #[must_use]
    pub fn reaching_private(&self) -> Outbound {
        let Inner { allowed, resolver, trust } = &*self.0;
        let allowed = allowed.iter().copied().chain(PRIVATE).collect();
        Outbound(Arc::new(Inner { allowed, resolver: Arc::clone(resolver), trust: trust.clone() }))
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

    /// Opens a connection for another protocol than HTTP, to a port of a host that an entity names.
    ///
    /// # Errors
    ///
    /// As of [`Outbound::call`].
    pub async fn connect(&self, host: &str, port: u16, timeout: Duration) -> Result<TcpStream, OutboundError> {
        let deadline = tokio::time::Instant::now() + timeout;
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let place = format!("{bracketed}:{port}");
        let target = Target::parse(&format!("http://{place}/"))?;
        let opening = async {
            let addresses = resolve::checked(self.0.resolver.as_ref(), &target, &self.0.allowed).await?;
            connection::open(&target, &addresses, deadline).await
        };
        match tokio::time::timeout_at(deadline, opening).await {
            Ok(outcome) => outcome.map_err(|error| error.of_connection(&place)),
            Err(_) => {
                let what = format!("no connection within {} s", timeout.as_secs_f64());
                Err(OutboundError::new(OutboundFault::Timeout, place, what))
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

#[cfg(test)]
mod tests;
