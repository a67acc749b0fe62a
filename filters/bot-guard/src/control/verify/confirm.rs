//! Forward-confirmed reverse DNS: an address is a bot's if it has a host name below one of the bot's domains, and that name has the address.

use std::net::IpAddr;
use std::time::Duration;

use dns::{DnsName, NoAnswer, Resolver};
use tokio::time::timeout;

use crate::Finding;

/// The host names of an address that are looked at, at most: crawlers have one. An address with more is not judged.
const MAX_NAMES: usize = 16;
/// The host names below the domains of a bot that are confirmed, at most. An address with more is not judged.
const MAX_CONFIRMED: usize = 4;
/// How long the verification of an address takes at most.
const PATIENCE: Duration = Duration::from_secs(15);

/// Verifies an address by the domains of a bot.
///
/// # Errors
///
/// Why it could not be found out, for people.
pub(super) async fn confirm(address: IpAddr, domains: &[DnsName], resolver: &Resolver) -> Result<Finding, NoAnswer> {
    let late = |_| NoAnswer(format!("not verified within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, confirmed(address, domains, resolver)).await.map_err(late)?
}

async fn confirmed(address: IpAddr, domains: &[DnsName], resolver: &Resolver) -> Result<Finding, NoAnswer> {
    let names = resolver.names(address).await?;
    if names.len() > MAX_NAMES {
        return Err(NoAnswer(format!("{address} has {} host names", names.len())));
    }
    let mut below: Vec<DnsName> = names.into_iter().filter(|name| is_below(name, domains)).collect();
    below.dedup();
    if below.len() > MAX_CONFIRMED {
        return Err(NoAnswer(format!("{address} has {} host names of the bot", below.len())));
    }
    let mut unknown = None;
    for name in below {
        match resolver.addresses(name, address).await {
            Ok(addresses) if addresses.contains(&address) => return Ok(Finding::Verified),
            Ok(_) => {}
            Err(error) => unknown = Some(error),
        }
    }
    // A name whose addresses are not known may be the right one.
    unknown.map_or(Ok(Finding::Impersonator), Err)
}

/// Whether a name is below one of these domains. Names are compared label by label: a dot within a label separates nothing.
fn is_below(name: &DnsName, domains: &[DnsName]) -> bool {
    domains.iter().any(|domain| name.ends_with(domain) && name.label_count() > domain.label_count())
}
