//! Why a login at the provider has failed.

use std::fmt;

/// The characters of a text of the provider that are repeated, at most.
const MAX_FOREIGN: usize = 200;

/// Why a login at the provider has failed. The text is for logs and audit events, not for the client: it may quote the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcError {
    fault: OidcFault,
    detail: String,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OidcFault {
    /// The provider cannot be reached, or its answers cannot be used. Other logins would fail as well.
    Provider,
    /// The answer does not belong to this login: the provider does not take the code, or another issuer has sent it.
    Refused,
    /// The provider takes the code, and its ID token or what it says about the person is not accepted.
    Token,
    /// The provider has signed the ID token with a key that its key set does not have.
    UnknownKey {
        /// Seconds until the key set may be read again; at least 1.
        retry_seconds: u64,
    },
    /// The provider itself has refused the login, or the person has cancelled it.
    Denied,
}

// === impl OidcError ===

impl OidcError {
    fn new(fault: OidcFault, detail: impl Into<String>) -> OidcError {
        OidcError { fault, detail: detail.into() }
    }

    pub(super) fn provider(detail: impl Into<String>) -> OidcError {
        OidcError::new(OidcFault::Provider, detail)
    }

    pub(super) fn refused(detail: impl Into<String>) -> OidcError {
        OidcError::new(OidcFault::Refused, detail)
    }

    pub(super) fn token(detail: impl Into<String>) -> OidcError {
        OidcError::new(OidcFault::Token, detail)
    }

    pub(super) fn unknown_key(detail: impl Into<String>, retry_millis: u64) -> OidcError {
        OidcError::new(OidcFault::UnknownKey { retry_seconds: retry_millis.div_ceil(1000).max(1) }, detail)
    }

    pub(super) fn denied(detail: impl Into<String>) -> OidcError {
        OidcError::new(OidcFault::Denied, detail)
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn fault(&self) -> OidcFault {
        self.fault
    }
}

impl fmt::Display for OidcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for OidcError {}

/// A text of the provider or of a client as it may be repeated: short, without control characters.
pub(super) fn foreign(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(MAX_FOREIGN).collect()
}
