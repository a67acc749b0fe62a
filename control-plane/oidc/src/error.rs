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
    /// What came with this login is not accepted: the code, the ID token, or a claim.
    Refused,
    /// The provider itself has refused the login, or the person has cancelled it.
    Denied,
}

// === impl OidcError ===

impl OidcError {
    pub(super) fn provider(detail: impl Into<String>) -> OidcError {
        OidcError { fault: OidcFault::Provider, detail: detail.into() }
    }

    pub(super) fn refused(detail: impl Into<String>) -> OidcError {
        OidcError { fault: OidcFault::Refused, detail: detail.into() }
    }

    pub(super) fn denied(detail: impl Into<String>) -> OidcError {
        OidcError { fault: OidcFault::Denied, detail: detail.into() }
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
