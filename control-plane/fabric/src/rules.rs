//! What of bans the configuration says: how long the longest is, and what callers of IPv6 are judged by.

use std::fmt;

use base::clock::rfc3339;
use base::identity::{Identity, IdentityError};
use entities::{Entity as _, EntitySet};
use policies::ThreatPolicy;

/// What of bans the configuration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanRules {
    /// The longest ban that any policy or plugin asks for, in milliseconds: no node may ask for a longer one.
    pub longest_millis: u64,
    /// The width of the IPv6 networks that callers are judged by, in bits.
    pub ipv6_prefix: u8,
    /// A run of neighbours of IPv6 is banned as the network around them.
    pub widens: bool,
}

/// Why an identity is not banned although a node asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanRefusal {
    /// There is no such identity.
    Identity(IdentityError),
    /// It is a range of addresses.
    Range,
    /// It is a TLS fingerprint, which many clients share: an operator alone bans one.
    Fingerprint,
    /// The ban would end at once.
    Ended,
    /// It is on the allowlist.
    Allowlisted {
        /// The entry of the allowlist.
        key: String,
        /// The reason of the entry.
        reason: String,
    },
    /// An operator has lifted the ban since the node asked.
    Lifted {
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// There are as many bans as there may be.
    Full,
    /// The store returned no outcome.
    Unanswered,
}

impl From<IdentityError> for BanRefusal {
    fn from(error: IdentityError) -> BanRefusal {
        BanRefusal::Identity(error)
    }
}

impl fmt::Display for BanRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BanRefusal::Identity(error) => error.fmt(f),
            BanRefusal::Range => f.write_str("nodes may not ban ranges"),
            BanRefusal::Fingerprint => f.write_str("nodes may not ban TLS fingerprints"),
            BanRefusal::Ended => f.write_str("it has ended already, or the configuration bans no client"),
            BanRefusal::Allowlisted { key, reason } => write!(f, "{key} is on the allowlist: {reason}"),
            BanRefusal::Lifted { at } => write!(f, "the ban was lifted at {}", rfc3339(*at)),
            BanRefusal::Full => f.write_str("the list is full"),
            BanRefusal::Unanswered => f.write_str("the store returned no outcome"),
        }
    }
}

impl std::error::Error for BanRefusal {}

impl Default for BanRules {
    /// Those of a configuration that says nothing.
    fn default() -> BanRules {
        BanRules::of(&EntitySet::default())
    }
}

impl BanRules {
    /// The identity of a ban that a node, or the ledger on a node's word, may ask for: no range, but for the network that a
    /// caller of IPv6 is judged by.
    ///
    /// # Errors
    /// Why no node may ask for it.
    pub fn bannable(&self, key: &str) -> Result<Identity, BanRefusal> {
        let identity = Identity::parse(key)?.charged(self.ipv6_prefix);
        if identity.kind() == "ja4" {
            return Err(BanRefusal::Fingerprint);
        }
        // Of an earlier configuration it may be narrower.
        let own = || identity.network_v6().is_some_and(|network| network.prefix_len() >= self.ipv6_prefix);
        if identity.is_range() && !(identity.has_own_key() && own()) {
            return Err(BanRefusal::Range);
        }
        Ok(identity)
    }

    /// Those of a configuration. Policies count that are disabled or in dry run: a node may have taken them before.
    #[must_use]
    pub fn of(set: &EntitySet) -> BanRules {
        let builtin = ThreatPolicy::builtin().longest_ban();
        let longest = set.longest_ban().max(builtin).unwrap_or(0);
        let identity = &set.global().identity;
        BanRules {
            longest_millis: longest.saturating_mul(1000),
            ipv6_prefix: identity.ipv6_prefix,
            widens: identity.ipv6_widen,
        }
    }
}
