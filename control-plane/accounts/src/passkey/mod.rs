//! Passkeys: credentials of WebAuthn (Level 2), which authenticators hold and browsers use for one site alone.
//!
//! The attestation of an authenticator is not asked for: which maker an operator's device is of decides nothing here.

mod cbor;
mod key;
mod response;

pub use key::PASSKEY_ALGORITHMS;
pub use response::{Assertion, NewCredential, PasskeyProblem, Registration, challenge_of};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Passkeys of one operator, at most.
pub const PASSKEYS: u32 = 10;
/// How long an answer to a challenge may take, in milliseconds: five minutes.
pub const PASSKEY_MILLIS: u64 = 300_000;
/// The characters of the name of a passkey, at most.
pub const MAX_PASSKEY_NAME: usize = 64;

/// A passkey as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// The id of the credential, which its authenticator has chosen.
    pub credential: Vec<u8>,
    /// The name of the operator.
    pub operator: String,
    /// What the operator calls it.
    pub name: String,
    /// The public key, as COSE has it (RFC 9052).
    pub public_key: Vec<u8>,
    /// The signatures that the authenticator has counted; 0 for those that do not count.
    pub sign_count: u32,
    /// When it was added, in milliseconds since 1970.
    pub created_at_millis: u64,
    /// When it was last used, in milliseconds since 1970.
    pub used_at_millis: Option<u64>,
}

/// The site that passkeys are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origin: String,
}

// === impl Passkey ===

impl Passkey {
    /// The id of the credential as the API has it, in base64url.
    #[must_use]
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.credential)
    }

    /// Whether the next count of the authenticator can be right (WebAuthn, section 7.2, step 21): a copy of it would have counted apart.
    #[must_use]
    pub fn accepts_count(&self, sign_count: u32) -> bool {
        (self.sign_count == 0 && sign_count == 0) || sign_count > self.sign_count
    }
}

/// What authenticators know an operator by, beside the name that people see: the same for all passkeys of the operator, and none of another
/// operator who has the name later.
#[must_use]
pub fn user_handle(name: &str, created_at_millis: u64) -> [u8; 32] {
    let digest = Sha256::new_with_prefix(b"palisade passkey user\0").chain_update(created_at_millis.to_be_bytes());
    digest.chain_update(name).finalize().into()
}

// === impl RelyingParty ===

impl RelyingParty {
    /// The site of an origin (`https://HOST[:PORT]`); `None` for one whose host is an address, which can have no passkeys.
    #[must_use]
    pub fn of(origin: &str) -> Option<RelyingParty> {
        let authority = origin.split_once("://")?.1;
        if authority.starts_with('[') {
            return None;
        }
        let host = authority.split(':').next().filter(|host| !host.is_empty())?;
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        (!is_address).then(|| RelyingParty { id: host.to_owned(), origin: origin.to_owned() })
    }

    /// The host name that passkeys are bound to.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The origin of the pages that may use them.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_name_and_no_address() {
        let id = |origin: &str| RelyingParty::of(origin).map(|site| site.id);
        assert_eq!(id("https://palisade.example"), Some("palisade.example".to_owned()));
        assert_eq!(id("http://localhost:8900"), Some("localhost".to_owned()));
        for none in ["http://127.0.0.1:8900", "https://[::1]:8900", "https://192.0.2.1", "palisade.example", "https://"]
        {
            assert_eq!(id(none), None, "{none}");
        }
        assert_ne!(user_handle("ada", 1), user_handle("ada", 2));
    }

    #[test]
    fn a_count_goes_up_or_is_none() {
        let with = |sign_count| Passkey {
            credential: vec![0xfb, 0xff],
            operator: String::new(),
            name: String::new(),
            public_key: Vec::new(),
            sign_count,
            created_at_millis: 0,
            used_at_millis: None,
        };
        assert!(with(0).accepts_count(0) && with(0).accepts_count(1) && with(7).accepts_count(8));
        assert!(!with(7).accepts_count(7) && !with(7).accepts_count(6) && !with(7).accepts_count(0));
        assert_eq!((with(0).id().as_str(), PASSKEYS, PASSKEY_MILLIS), ("-_8", 10, 300_000));
    }
}
