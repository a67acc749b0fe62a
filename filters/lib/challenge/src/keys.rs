//! Signatures: `base64url(payload).hex(HMAC-SHA256)`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

/// The longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 1024;
/// The hexadecimal digits of a signature.
const SIGNATURE_DIGITS: usize = 64;
/// What the keys of puzzles, of tickets and of clearances are made of, so that none of the three can be taken for another. A
/// puzzle and a ticket name their provider; a clearance does not, so the id of the provider is in its key.
const PUZZLES: &[u8] = b"svc-challenge puzzle";
const WAITS: &[u8] = b"svc-challenge wait";
const CLEARANCES: &[u8] = b"svc-challenge clearance ";

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Puzzle,
    Clearance,
    Wait,
}

/// The keys of a provider: the first signs, all of them are good for checking.
pub(crate) struct Keys {
    first: Set,
    others: Vec<Set>,
}

/// The keys that one secret makes for one provider.
struct Set {
    puzzle: Hmac<Sha256>,
    clearance: Hmac<Sha256>,
    wait: Hmac<Sha256>,
}

impl Keys {
    /// The keys of a provider by its id; `None` where there is no secret.
    pub(crate) fn new(secrets: &[Vec<u8>], provider: &str) -> Option<Self> {
        let secrets = secrets.iter().filter(|secret| !secret.is_empty());
        let mut sets = secrets.filter_map(|secret| Set::new(secret, provider));
        Some(Self { first: sets.next()?, others: sets.collect() })
    }

    /// Signs a payload.
    pub(crate) fn sign(&self, purpose: Purpose, payload: &impl Serialize) -> String {
        let payload = serde_json::to_vec(payload).unwrap_or_default();
        let mut token = URL_SAFE_NO_PAD.encode(payload);
        let mac = self.first.mac(purpose).clone().chain_update(token.as_bytes()).finalize();
        token.push('.');
        token.push_str(&snapshot::hex(&mac.into_bytes()));
        token
    }

    /// The payload of a token that one of the keys has signed. Signatures are compared in constant time.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: Purpose, token: &[u8]) -> Option<T> {
        let (payload, signature) = split(token)?;
        let signature = snapshot::unhex(signature)?;
        let mut sets = std::iter::once(&self.first).chain(&self.others);
        sets.find(|set| set.mac(purpose).clone().chain_update(payload).verify_slice(&signature).is_ok())?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}

/// The payload of a token whose signature is not checked.
pub(crate) fn claim<T: DeserializeOwned>(token: &[u8]) -> Option<T> {
    let (payload, _) = split(token)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Whether some bytes have the form of a token.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    let in_payload = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let form = |(payload, signature): (&[u8], &[u8])| {
        let is_signature = signature.len() == SIGNATURE_DIGITS && signature.iter().all(u8::is_ascii_hexdigit);
        is_signature && !payload.is_empty() && payload.iter().all(in_payload)
    };
    split(bytes).is_some_and(form)
}

/// Payload and signature of a token, as text.
fn split(token: &[u8]) -> Option<(&[u8], &[u8])> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let place = token.iter().position(|byte| *byte == b'.')?;
    Some((token.get(..place)?, token.get(place + 1..)?))
}

impl Set {
    fn new(secret: &[u8], provider: &str) -> Option<Self> {
        let root = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        let made_of = |what: &[u8], provider: &str| {
            let key = root.clone().chain_update(what).chain_update(provider).finalize().into_bytes();
            Hmac::<Sha256>::new_from_slice(&key).ok()
        };
        Some(Self {
            puzzle: made_of(PUZZLES, "")?,
            wait: made_of(WAITS, "")?,
            clearance: made_of(CLEARANCES, provider)?,
        })
    }

    fn mac(&self, purpose: Purpose) -> &Hmac<Sha256> {
        match purpose {
            Purpose::Puzzle => &self.puzzle,
            Purpose::Clearance => &self.clearance,
            Purpose::Wait => &self.wait,
        }
    }
}
