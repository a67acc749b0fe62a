//! Tickets of logins: secrets that are used once and soon end, such as login links.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// How long a login link works, in milliseconds: ten minutes.
pub const LOGIN_LINK_MILLIS: u64 = 600_000;
/// How long the second step of a login may take, in milliseconds: five minutes.
pub const CODE_TICKET_MILLIS: u64 = 300_000;

/// The characters of a secret: 32 bytes in base64url without padding.
const SECRET_CHARS: usize = 43;

/// What a ticket is for. A ticket of one kind is never accepted as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketKind {
    /// A login link: takes the place of the password.
    Link,
    /// The first step of a login was right, and a code of the second factor is awaited; and what the first step was.
    Code(super::Via),
}

/// A ticket as it is kept: without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// SHA-256 of the secret. A plain digest, as for admin keys: 256 random bits are found by no dictionary.
    pub sha256: [u8; 32],
    /// The name of the operator.
    pub operator: String,
    /// What it is for.
    pub kind: TicketKind,
    /// From when on it is refused, in milliseconds since 1970.
    pub until_millis: u64,
    /// Wrong codes that came with it.
    pub failures: u32,
}

/// The secret of a ticket: 256 random bits in base64url, which only its holder has.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketSecret(String);

/// The path of the console that logs in with this secret. It is in the fragment, which browsers do not send, so that it reaches no log.
#[must_use]
pub fn login_link(secret: &TicketSecret) -> String {
    format!("/console/#login={}", secret.0)
}

// === impl TicketKind ===

impl TicketKind {
    /// The word for it in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TicketKind::Link => "link",
            TicketKind::Code(super::Via::Password) => "code",
            TicketKind::Code(super::Via::Link) => "code-link",
            TicketKind::Code(super::Via::Oidc) => "code-oidc",
            // None is made: a passkey is the whole login.
            TicketKind::Code(super::Via::Passkey) => "code-passkey",
        }
    }

    /// Reads [`TicketKind::as_str`]; `None` for a word of a newer release, whose tickets are refused.
    #[must_use]
    pub fn from_store(word: &str) -> Option<TicketKind> {
        let codes = [super::Via::Password, super::Via::Link, super::Via::Oidc].map(TicketKind::Code);
        codes.into_iter().chain([TicketKind::Link]).find(|kind| kind.as_str() == word)
    }
}

// === impl TicketSecret ===

impl TicketSecret {
    /// A new one.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<TicketSecret, std::io::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(TicketSecret(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The secret that a client sends; `None` for what cannot be one.
    #[must_use]
    pub fn read(text: &str) -> Option<TicketSecret> {
        let sane = text.len() == SECRET_CHARS
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        sane.then(|| TicketSecret(text.to_owned()))
    }

    /// What is kept of it.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The secret itself, for its holder alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The ticket of this secret.
    #[must_use]
    pub fn ticket(&self, operator: &str, kind: TicketKind, until_millis: u64) -> Ticket {
        Ticket { sha256: self.sha256(), operator: operator.to_owned(), kind, until_millis, failures: 0 }
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log by way of a derived Debug.
        f.write_str("TicketSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_and_is_in_the_fragment() {
        let (secret, other) = (TicketSecret::random().unwrap(), TicketSecret::random().unwrap());
        assert_eq!((secret.reveal().len(), secret == other), (43, false));
        assert_eq!(TicketSecret::read(secret.reveal()), Some(secret.clone()));
        assert_eq!(login_link(&secret), format!("/console/#login={}", secret.reveal()));
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        for bad in ["", "x", &format!("{}x", secret.reveal()), &"!".repeat(43)] {
            assert_eq!(TicketSecret::read(bad), None, "{bad}");
        }
        assert_eq!((LOGIN_LINK_MILLIS, CODE_TICKET_MILLIS), (600_000, 300_000));
    }
}
