//! From a name to addresses that may be connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use ipnet::IpNet;

use super::address::{special_use, within};
use super::error::{OutboundError, OutboundFault};
use super::target::Target;

/// The addresses of a name, once they are known.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Who knows the addresses of names. It is asked once for each connection.
pub trait Resolver: Send + Sync {
    /// The addresses of `host`, in the order in which they are tried.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// The addresses to connect to. One of them that is not for outside is enough to refuse them all: a name that mixes them is
/// not one to trust.
pub(super) async fn checked(
    resolver: &dyn Resolver,
    target: &Target,
    allowed: &[IpNet],
) -> Result<Vec<SocketAddr>, OutboundError> {
    let fail = |fault, what: String| OutboundError::new(fault, target.origin(), what);
    let addresses = match target.host().parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => {
            let answer = resolver.resolve(target.host()).await;
            answer.map_err(|error| fail(OutboundFault::Name, format!("the name is not resolved: {error}")))?
        }
    };
    if addresses.is_empty() {
        return Err(fail(OutboundFault::Name, "the name has no address".to_owned()));
    }
    for address in &addresses {
        if let Some(what) = special_use(*address)
            && !within(allowed, *address)
        {
            let net = suggestion(*address);
            let hint = format!("{address} is {what}; start palisade with --outbound-allow {net} if this is meant");
            return Err(fail(OutboundFault::Refused, hint));
        }
    }
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, target.port())).collect())
}

/// The narrowest thing to allow: the address itself.
fn suggestion(address: IpAddr) -> IpNet {
    IpNet::from(address)
}
