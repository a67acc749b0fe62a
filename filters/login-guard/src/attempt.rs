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
    /// The account: of several users all of them together, and the body where a user could not be read.
    pub(crate) user: Pseudonym,
    /// The account under the key before.
    pub(crate) user_before: Pseudonym,
    /// The users could be read.
    pub(crate) has_user: bool,
    /// The users of a request that names several, or may have others, each as an account of its own; none of others.
    pub(crate) users: Vec<Pseudonym>,
    /// Stands for all users that requests hide, if this one may hide one.
    pub(crate) hidden: Option<Pseudonym>,
    /// `users` and `hidden` without the constants of a form; see [`Counts::tell_apart`](crate::counts::Counts::tell_apart).
    pub(crate) named: Vec<Pseudonym>,
    /// What this login counts for among logins to accounts.
    pub(crate) accounts: Vec<Pseudonym>,
    /// The password: of several all of them together.
    pub(crate) password: Option<Pseudonym>,
    /// The passwords of a request with several, as `users`.
    pub(crate) several_passwords: Vec<Pseudonym>,
    /// What this login counts for among logins with one password.
    pub(crate) passwords: Vec<Pseudonym>,
    /// What was known before it.
    pub(crate) seen: Seen,
    /// The patterns that the score has already.
    pub(crate) signalled: Vec<&'static str>,
    /// What the password that was asked for is looked up by among breached ones.
    pub(crate) digest: Option<Digest>,
    /// Those of the passwords that are still to be looked up.
    pub(crate) digests: Vec<Digest>,
    /// The password is one of those that were breached.
    pub(crate) breached: bool,
}

impl Attempt {
    pub(crate) fn new(
        Watched { kind, surely, .. }: Watched,
        (found, body): (&Credentials, &[u8]),
        exchange: &Exchange,
        (pseudonyms, now): (&Pseudonyms, u64),
    ) -> Self {
        let (of, text) = match found.users.as_slice() {
            // There may be another user in the body.
            users if found.odd || users.is_empty() => (Of::Body, [found.all_users(), body].concat()),
            [user] if !found.hides => (Of::User, user.clone()),
            _ => (Of::Several, found.all_users().to_vec()),
        };
        let pseudonym = |of: Of, text: &[u8]| pseudonyms.of(of, text, now);
        let user = pseudonym(of, &text);
        let users = found.users.iter().filter(|_| found.is_ambiguous()).map(|user| pseudonym(Of::User, user)).collect();
        let password = found.all_passwords().map(|password| pseudonym(Of::Password, &password));
        let several = found.passwords.len() > 1 || found.more_passwords;
        let each = found.passwords.iter().filter(|_| several).map(|password| pseudonym(Of::Password, password));
        let more = found.more_passwords.then(|| pseudonym(Of::HiddenPassword, b""));
        Self {
            kind,
            surely,
            source: exchange.caller.network().unwrap_or_default().into_bytes(),
            network: network(&exchange.caller),
            user,
            user_before: pseudonyms.before(of, &text, now),
            has_user: of != Of::Body,
            users,
            hidden: found.hides.then(|| pseudonym(Of::Hidden, b"")),
            named: Vec::new(),
            accounts: vec![user],
            password,
            several_passwords: each.chain(more).collect(),
            passwords: password.into_iter().collect(),
            seen: Seen::default(),
            signalled: Vec::new(),
            digest: None,
            digests: Vec::new(),
            breached: false,
        }
    }

    /// The account that events name: the one that is attacked, unless no user of it is known.
    pub(crate) fn account(&self) -> Option<&Pseudonym> {
        let attacked = &self.seen.attacked;
        let is_named = self.users.contains(attacked) || (self.has_user && *attacked == self.user);
        is_named.then_some(attacked)
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
