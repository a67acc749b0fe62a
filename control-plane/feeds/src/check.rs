//! What is checked of a list before it is used: a publisher's mistake must not refuse everyone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AddressSet, FeedError};

/// Public resolvers. A list of hostile callers never covers one; a list that does is wrong as a whole.
pub const CANARIES: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1)),
    IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8)),
    IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)),
    IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888)),
];

/// The most addresses of IPv4 that a list may cover: a tenth of all. The largest catalogued list, of a cloud, covers a fortieth.
pub const MAX_V4: u64 = 370_000_000;

/// The most of IPv6, in networks /32 (one of a provider): a sixteenth of what is given out.
pub const MAX_V6_PREFIXES: u64 = 1 << 25;

/// Lists with fewer ranges may change as they like.
pub const MIN_FOR_CHURN: usize = 100;

/// Refuses a list that covers a canary, or too much.
///
/// # Errors
///
/// [`FeedError::Canary`], [`FeedError::Coverage`].
pub fn check(addresses: &AddressSet) -> Result<(), FeedError> {
    if let Some(canary) = CANARIES.into_iter().find(|canary| addresses.contains(*canary)) {
        return Err(FeedError::Canary(canary));
    }
    if addresses.v4_addresses() > MAX_V4 {
        return Err(FeedError::Coverage(format!("{} addresses of IPv4", addresses.v4_addresses())));
    }
    if addresses.v6_networks() > MAX_V6_PREFIXES {
        return Err(FeedError::Coverage(format!("{} networks /32 of IPv6", addresses.v6_networks())));
    }
    Ok(())
}

/// How a list differs from the one before where that is more than a list changes from one fetch to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Churn {
    /// It has less than a fifth of the ranges.
    Shrunk {
        /// The ranges of the list before.
        before: usize,
        /// Those of this one.
        now: usize,
    },
    /// It has more than twenty times the ranges.
    Grown {
        /// The ranges of the list before.
        before: usize,
        /// Those of this one.
        now: usize,
    },
}

impl Churn {
    /// Between a list and the next one. `None`: they may follow each other.
    #[must_use]
    pub fn between(before: &AddressSet, now: &AddressSet) -> Option<Churn> {
        let (before, now) = (before.len(), now.len());
        match before {
            ..MIN_FOR_CHURN => None,
            _ if now < before / 5 => Some(Churn::Shrunk { before, now }),
            _ if now / 20 > before => Some(Churn::Grown { before, now }),
            _ => None,
        }
    }
}

impl std::fmt::Display for Churn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shrunk { before, now } => write!(f, "the list has shrunk from {before} to {now} ranges"),
            Self::Grown { before, now } => write!(f, "the list has grown from {before} to {now} ranges"),
        }
    }
}
