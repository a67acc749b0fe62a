//! One login, as it is counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use exchange::{Caller, Exchange};

use crate::breached::Digest;
use crate::counts::Seen;
use crate::credentials::Credentials;
use crate::pseudonym::{Of, Pseudonym, Pseudonyms};
use crate::{EndpointKind, Watched};

/// A login that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) kind: EndpointKind,
    /// The path names an endpoint.
    pub(crate) surely: bool,
    /// The address; of IPv6 the network that callers are judged by.
    pub(crate) source: Vec<u8>,
    /// The network around it: 24 bits of IPv4, 48 of IPv6.
    pub(crate) network: Vec<u8>,
    /// The account, or the body where no user could be read.
    pub(crate) user: Pseudonym,
    /// The account under the key before.
    pub(crate) user_before: Pseudonym,
    /// A user could be read.
    pub(crate) has_user: bool,
    pub(crate) password: Option<Pseudonym>,
    /// What was known before it.
    pub(crate) seen: Seen,
    /// The patterns that the score has already.
    pub(crate) signalled: Vec<&'static str>,
    /// What the password is looked up by among breached ones.
    pub(crate) digest: Option<Digest>,
    /// The password is one of those that were breached.
    pub(crate) breached: bool,
}

impl Attempt {
    pub(crate) fn new(
        Watched { kind, surely }: Watched,
        (found, body): (&Credentials, &[u8]),
        exchange: &Exchange,
        (pseudonyms, now): (&Pseudonyms, u64),
    ) -> Self {
        let account = found.account();
        let (of, text) = match &account {
            // There may be another user in the body.
            Some(account) if found.odd => (Of::Body, [account, body].concat()),
            Some(account) => (Of::User, account.clone()),
            None => (Of::Body, body.to_vec()),
        };
        Self {
            kind,
            surely,
            source: exchange.caller.network().unwrap_or_default().into_bytes(),
            network: network(&exchange.caller),
            user: pseudonyms.of(of, &text, now),
            user_before: pseudonyms.before(of, &text, now),
            has_user: of == Of::User,
            password: found.password().map(|password| pseudonyms.of(Of::Password, &password, now)),
            seen: Seen::default(),
            signalled: Vec::new(),
            digest: None,
            breached: false,
        }
    }
}

fn network(caller: &Caller) -> Vec<u8> {
    let text = match caller.ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => format!("net {}", Ipv4Addr::from(u32::from(address) & 0xffff_ff00)),
        Ok(IpAddr::V6(address)) => format!("net {}", Ipv6Addr::from(u128::from(address) & (u128::MAX << 80))),
        Err(_) => String::from("net"),
    };
    text.into_bytes()
}
