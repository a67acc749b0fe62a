//! Admin keys: how they are made, kept and checked.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The bytes of a secret.
const SECRET_BYTES: usize = 32;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read entities.
    Read,
    /// Create, change and delete entities.
    Write,
    /// Read the report endpoints.
    Report,
}

/// A word that names no scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeError(String);

/// An admin key as it is kept: without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminKey {
    /// The user name of HTTP basic authentication, such as `admin-key_…`.
    pub id: String,
    /// What people call it; may be empty.
    pub name: String,
    /// SHA-256 of the secret.
    ///
    /// A plain digest and not argon2id: slow hashes protect passwords that a dictionary would find. The secret is 256
    /// random bits, which no dictionary has, and it is checked on every request, where a slow hash would let anyone
    /// burn the control plane's processor with wrong passwords.
    pub secret_sha256: [u8; 32],
    /// What the key may do.
    pub scopes: Vec<Scope>,
    /// When it was made, in milliseconds since 1970.
    pub created_at_millis: u64,
    /// From when on it is refused; `None` for never.
    pub expires_at_millis: Option<u64>,
    /// Since when it has been revoked.
    pub revoked_at_millis: Option<u64>,
}

/// A key that has just been made, with the secret that is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedKey {
    /// What is kept.
    pub key: AdminKey,
    /// The password of HTTP basic authentication: 43 characters of base64url. It exists nowhere else.
    pub secret: String,
}

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such key, or the secret is another one: a caller cannot tell which.
    Unknown,
    /// The key was revoked.
    Revoked,
    /// The key has expired.
    Expired,
}

// === impl Scope ===

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Report];

    /// The word for it on the command line and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Report => "report",
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(word: &str) -> Result<Scope, ScopeError> {
        let found = Scope::ALL.into_iter().find(|scope| scope.as_str() == word.trim());
        found.ok_or_else(|| ScopeError(word.to_owned()))
    }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a scope: use read, write or report", self.0)
    }
}

impl std::error::Error for ScopeError {}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl AdminKey ===

impl AdminKey {
    /// Makes a key with a random id and secret.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn issue(
        name: &str,
        scopes: &[Scope],
        now_millis: u64,
        expires_at_millis: Option<u64>,
    ) -> Result<IssuedKey, std::io::Error> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        let secret = URL_SAFE_NO_PAD.encode(secret);
        let key = AdminKey {
            id: format!("admin-key_{}", uuid::Uuid::new_v4()),
            name: name.to_owned(),
            secret_sha256: digest(secret.as_bytes()),
            scopes: scopes.to_vec(),
            created_at_millis: now_millis,
            expires_at_millis,
            revoked_at_millis: None,
        };
        Ok(IssuedKey { key, secret })
    }

    /// Makes a key of an id and a secret that the operator has made; `None` where the id is not 1 to 64 of `A-Z a-z 0-9 . _ -`,
    /// or the secret not 32 to 256 printable characters without spaces.
    #[must_use]
    pub fn given(name: &str, id: &str, secret: &str, scopes: &[Scope], now_millis: u64) -> Option<AdminKey> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let usable = (1..=64).contains(&id.len())
            && id.bytes().all(plain)
            && (32..=256).contains(&secret.len())
            && secret.bytes().all(|byte| byte.is_ascii_graphic());
        usable.then(|| AdminKey {
            id: id.to_owned(),
            name: name.to_owned(),
            secret_sha256: digest(secret.as_bytes()),
            scopes: scopes.to_vec(),
            created_at_millis: now_millis,
            expires_at_millis: None,
            revoked_at_millis: None,
        })
    }

    /// Checks a secret against a stored key, in the same time for a key that does not exist.
    ///
    /// # Errors
    /// [`Refusal::Revoked`] and [`Refusal::Expired`] only to a caller who has the right secret.
    pub fn verify(stored: Option<AdminKey>, secret: &[u8], now_millis: u64) -> Result<AdminKey, Refusal> {
        let expected = stored.as_ref().map_or([0; 32], |key| key.secret_sha256);
        let equal: bool = digest(secret).ct_eq(&expected).into();
        let Some(key) = stored.filter(|_| equal) else {
            return Err(Refusal::Unknown);
        };
        if key.revoked_at_millis.is_some() {
            return Err(Refusal::Revoked);
        }
        if key.expires_at_millis.is_some_and(|expiry| expiry <= now_millis) {
            return Err(Refusal::Expired);
        }
        Ok(key)
    }

    /// Whether the key has a scope.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

// === impl IssuedKey ===

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log by way of a derived Debug.
        f.debug_struct("IssuedKey").field("key", &self.key.id).finish_non_exhaustive()
    }
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Unknown => "the admin key is not known or its secret is wrong",
            Refusal::Revoked => "the admin key was revoked",
            Refusal::Expired => "the admin key has expired",
        })
    }
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_key_has_a_plain_id_and_a_long_secret() {
        let given = |id: &str, secret: &str| AdminKey::given("first key", id, secret, &Scope::ALL, 7);
        let long = "x".repeat(32);
        let key = given("admin-key_1", &long).unwrap();
        assert!(AdminKey::verify(Some(key), long.as_bytes(), 8).is_ok());
        for (id, secret) in
            [("", &*long), ("a:b", &long), ("a", &long[1..]), ("a", "with a space, and long enough to be one")]
        {
            assert!(given(id, secret).is_none(), "{id} {secret}");
        }
        assert!(given(&"a".repeat(65), &long).is_none() && given("a", &"x".repeat(257)).is_none());
    }

    #[test]
    fn a_key_is_known_by_its_secret_alone() {
        let issued = AdminKey::issue("ci", &[Scope::Read], 1000, Some(2000)).unwrap();
        assert_eq!(issued.secret.len(), 43);
        let check = |secret: &str, now| AdminKey::verify(Some(issued.key.clone()), secret.as_bytes(), now);
        assert_eq!(check(&issued.secret, 1999).unwrap().id, issued.key.id);
        assert_eq!(check(&issued.secret, 2000), Err(Refusal::Expired));
        assert_eq!(check("", 1000), Err(Refusal::Unknown));
        assert_eq!(AdminKey::verify(None, issued.secret.as_bytes(), 1000), Err(Refusal::Unknown));
        let revoked = AdminKey { revoked_at_millis: Some(1), ..issued.key.clone() };
        assert_eq!(AdminKey::verify(Some(revoked.clone()), issued.secret.as_bytes(), 1000), Err(Refusal::Revoked));
        assert_eq!(AdminKey::verify(Some(revoked), b"wrong", 1000), Err(Refusal::Unknown));
        assert!(!format!("{issued:?}").contains(&issued.secret));
    }
}
