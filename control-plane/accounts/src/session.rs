//! Sessions of operators: what is kept of them, and when they end.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::hex;

/// The digits of a session's name.
const ID_DIGITS: usize = 32;

/// A session as it is kept: without its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the token. A plain digest, as for admin keys: 256 random bits are found by no dictionary.
    pub token_sha256: [u8; 32],
    /// The name of the operator.
    pub operator: String,
    /// When it began, in milliseconds since 1970.
    pub created_at_millis: u64,
    /// When it was last used, in milliseconds since 1970; exact to [`SessionLimits::touch_millis`].
    pub seen_at_millis: u64,
    /// How and from where it was begun.
    pub origin: SessionOrigin,
}

/// How and from where a session was begun, for the one who looks through the list of sessions. Nothing depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOrigin {
    /// The address of the login's connection; unknown for sessions of older releases.
    pub address: Option<IpAddr>,
    /// What the client called itself (`user-agent`), at most [`MAX_AGENT_CHARS`] characters without control characters. The client
    /// can put anything there.
    pub agent: String,
    /// What the login showed first.
    pub via: Via,
}

/// What a login showed first; a second factor may have come after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// The password.
    #[default]
    Password,
    /// A login link.
    Link,
    /// A login at the OpenID Connect provider.
    Oidc,
    /// A passkey alone.
    Passkey,
}

/// The characters of [`SessionOrigin::agent`], at most.
pub const MAX_AGENT_CHARS: usize = 256;

/// How long sessions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// A session that is not used for this long has ended. Default 30 minutes.
    pub idle_millis: u64,
    /// A session ends this long after the login, used or not. Default 12 hours.
    pub absolute_millis: u64,
    /// The use of a session is written down when the last note is this old: not every request is a write. Default one
    /// minute.
    pub touch_millis: u64,
    /// Sessions of one operator; a further login ends the one least recently used. Default 10.
    pub per_operator: u32,
}

// === impl SessionLimits ===

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            idle_millis: 30 * 60_000,
            absolute_millis: 12 * 3_600_000,
            touch_millis: 60_000,
            per_operator: 10,
        }
    }
}

// === impl SessionOrigin ===

impl SessionOrigin {
    /// The origin of a login from this address by a client that calls itself `agent`, which is cut and loses its control characters.
    #[must_use]
    pub fn new(address: Option<IpAddr>, agent: &str, via: Via) -> SessionOrigin {
        let agent = agent.chars().filter(|char| !char.is_control()).take(MAX_AGENT_CHARS).collect();
        SessionOrigin { address: address.map(|address| address.to_canonical()), agent, via }
    }
}

// === impl Via ===

impl Via {
    /// The word for it in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Via::Password => "password",
            Via::Link => "link",
            Via::Oidc => "oidc",
            Via::Passkey => "passkey",
        }
    }

    /// Reads [`Via::as_str`]; a word of a newer release is the default.
    #[must_use]
    pub fn from_store(word: &str) -> Via {
        [Via::Link, Via::Oidc, Via::Passkey].into_iter().find(|via| via.as_str() == word).unwrap_or_default()
    }
}

// === impl Session ===

impl Session {
    /// The name of the session for those who list and revoke it, in hexadecimal. It follows from the digest of the token; neither the
    /// token nor its digest follows from it.
    #[must_use]
    pub fn id(&self) -> String {
        let digest = Sha256::new_with_prefix(b"palisade session id\0").chain_update(self.token_sha256).finalize();
        let mut id = hex(&digest);
        id.truncate(ID_DIGITS);
        id
    }

    /// When it ends if it is used all the time, in milliseconds since 1970.
    pub fn ends_at(&self, limits: &SessionLimits) -> u64 {
        self.created_at_millis.saturating_add(limits.absolute_millis)
    }

    /// Whether it still holds at `now_millis`.
    pub fn holds(&self, limits: &SessionLimits, now_millis: u64) -> bool {
        now_millis < self.ends_at(limits) && now_millis < self.seen_at_millis.saturating_add(limits.idle_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_of_the_documentation() {
        let limits = SessionLimits::default();
        assert_eq!((limits.idle_millis, limits.absolute_millis), (1_800_000, 43_200_000));
        assert_eq!((limits.touch_millis, limits.per_operator), (60_000, 10));
        let session = Session {
            token_sha256: [0; 32],
            operator: String::new(),
            created_at_millis: 0,
            seen_at_millis: 40_000_000,
            origin: SessionOrigin::default(),
        };
        assert!(session.holds(&limits, 41_799_999));
        assert!(!session.holds(&limits, 41_800_000), "idle");
        let used = Session { seen_at_millis: 43_199_999, ..session.clone() };
        assert!(used.holds(&limits, 43_199_999));
        assert!(!used.holds(&limits, 43_200_000), "over, used or not");
        assert_eq!((session.id().len(), session.id() == used.id()), (32, true));
        assert_ne!(Session { token_sha256: [1; 32], ..session.clone() }.id(), session.id());
    }

    #[test]
    fn what_a_client_calls_itself_is_bounded_and_has_no_control_characters() {
        let origin = SessionOrigin::new("::ffff:192.0.2.1".parse().ok(), &"a\r\n\u{1b}b".repeat(1000), Via::Link);
        assert_eq!((origin.agent.chars().count(), origin.agent.contains(char::is_control)), (MAX_AGENT_CHARS, false));
        assert_eq!((origin.address, Via::from_store(origin.via.as_str())), ("192.0.2.1".parse().ok(), Via::Link));
    }
}
