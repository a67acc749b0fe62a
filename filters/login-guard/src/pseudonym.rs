//! Keyed hashes of users and passwords, which stand for them everywhere.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use snapshot::hex;

/// How long one key is in use, in milliseconds: 30 days.
const PERIOD: u64 = 30 * 86_400_000;

/// The keyed hash of a user or a password.
pub(crate) type Pseudonym = [u8; 16];

/// What a hash is of, so that a user and a password of the same letters have different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    User,
    Password,
    /// A body with a user that could not be read.
    Body,
    /// All users of a request that names several.
    Several,
    /// A user that the request hides: one account for all of them.
    Hidden,
    /// A password that is hidden.
    HiddenPassword,
}

/// Makes pseudonyms with keys that change every 30 days.
pub(crate) struct Pseudonyms {
    secret: Vec<u8>,
}

impl Pseudonyms {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { secret }
    }

    /// The pseudonym at a time in milliseconds since the Unix epoch.
    pub(crate) fn of(&self, of: Of, text: &[u8], now: u64) -> Pseudonym {
        self.in_period(of, text, now / PERIOD)
    }

    /// The pseudonym under the key before.
    pub(crate) fn before(&self, of: Of, text: &[u8], now: u64) -> Pseudonym {
        self.in_period(of, text, (now / PERIOD).wrapping_sub(1))
    }

    /// A pseudonym as events show it; `None` without a secret, when it could be undone by guessing.
    pub(crate) fn shown(&self, pseudonym: &Pseudonym) -> Option<String> {
        (!self.secret.is_empty()).then(|| hex(pseudonym.get(..6).unwrap_or_default()))
    }

    fn in_period(&self, of: Of, text: &[u8], period: u64) -> Pseudonym {
        let purpose: &[u8] = match of {
            Of::User => b"login guard user\0",
            Of::Password => b"login guard password\0",
            Of::Body => b"login guard body\0",
            Of::Several => b"login guard users\0",
            Of::Hidden => b"login guard hidden user\0",
            Of::HiddenPassword => b"login guard hidden password\0",
        };
        // HMAC takes keys of any length.
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return [0; 16] };
        let hash =
            mac.chain_update(purpose).chain_update(period.to_le_bytes()).chain_update(text).finalize().into_bytes();
        hash.first_chunk().copied().unwrap_or_default()
    }
}
