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

/// The number of ranges may change as it likes in lists with fewer.
pub const MIN_FOR_CHURN: usize = 100;

/// The part of the Internet that a list covers may grow to twenty times what it was, or shrink to a fifth, by fewer addresses than this: a
/// network /12 of IPv4, or sixteen /32 of IPv6 in networks /64.
const SMALL: (u64, u128) = (1 << 20, 1 << 36);

/// It may double by fewer than this: a network /8 of IPv4, or a /20 of IPv6 in networks /64.
const LARGE: (u64, u128) = (1 << 24, 1 << 44);

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
    /// It covers far fewer addresses, of IPv4 or in networks /64 of IPv6.
    CoversLess {
        /// The addresses of the list before.
        before: u128,
        /// Those of this one.
        now: u128,
    },
    /// It covers far more.
    CoversMore {
        /// The addresses of the list before.
        before: u128,
        /// Those of this one.
        now: u128,
    },
}

impl Churn {
    /// Between a list and the next one. `None`: they may follow each other. A list has as few ranges as it likes to refuse half of the
    /// Internet, so that what they cover counts beside their number.
    #[must_use]
    pub fn between(before: &AddressSet, now: &AddressSet) -> Option<Churn> {
        Churn::of_ranges(before.len(), now.len())
            .or_else(|| {
                Churn::of_cover(before.v4_addresses().into(), now.v4_addresses().into(), SMALL.0.into(), LARGE.0.into())
            })
            .or_else(|| Churn::of_cover(before.v6_callers(), now.v6_callers(), SMALL.1, LARGE.1))
    }

    fn of_ranges(before: usize, now: usize) -> Option<Churn> {
        match before {
            ..MIN_FOR_CHURN => None,
            _ if now < before / 5 => Some(Churn::Shrunk { before, now }),
            _ if now / 20 > before => Some(Churn::Grown { before, now }),
            _ => None,
        }
    }

    fn of_cover(before: u128, now: u128, small: u128, large: u128) -> Option<Churn> {
        let (more, less) = (now.saturating_sub(before), before.saturating_sub(now));
        if (more >= small && now / 20 > before) || (more >= large && now / 2 > before) {
            return Some(Churn::CoversMore { before, now });
        }
        (less >= small && now < before / 5).then_some(Churn::CoversLess { before, now })
    }
}

impl std::fmt::Display for Churn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shrunk { before, now } => write!(f, "the list has shrunk from {before} to {now} ranges"),
            Self::Grown { before, now } => write!(f, "the list has grown from {before} to {now} ranges"),
            // Of IPv6 networks /64 are counted.
            Self::CoversLess { before, now } | Self::CoversMore { before, now } => {
                write!(f, "the list covers {now} addresses, and the one before {before}")
            }
        }
    }
}
