//! Signatures: `base64url(payload).hex(HMAC-SHA256)`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

/// The longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 1024;
/// What the key of puzzles is made of, so that neither of the two can be taken for the other.
const PUZZLES: &[u8] = b"svc-challenge puzzle";

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Puzzle,
    Clearance,
}

/// The keys of a provider: the first signs, all of them are good for checking.
pub(crate) struct Keys {
    first: Pair,
    others: Vec<Pair>,
}

/// The two keys that one secret makes.
struct Pair {
    puzzle: Hmac<Sha256>,
    clearance: Hmac<Sha256>,
}

impl Keys {
    /// `None` where there is no secret.
    pub(crate) fn new(secrets: &[Vec<u8>]) -> Option<Self> {
        let mut pairs = secrets.iter().filter(|secret| !secret.is_empty()).filter_map(|secret| Pair::new(secret));
        Some(Self { first: pairs.next()?, others: pairs.collect() })
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
        let signature = unhex(signature)?;
        let mut pairs = std::iter::once(&self.first).chain(&self.others);
        pairs.find(|pair| pair.mac(purpose).clone().chain_update(payload).verify_slice(&signature).is_ok())?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}

/// The payload of a token that nobody may have signed.
pub(crate) fn claim<T: DeserializeOwned>(token: &[u8]) -> Option<T> {
    let (payload, _) = split(token)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Payload and signature of a token, as text.
fn split(token: &[u8]) -> Option<(&[u8], &[u8])> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let place = token.iter().position(|byte| *byte == b'.')?;
    Some((token.get(..place)?, token.get(place + 1..)?))
}

impl Pair {
    fn new(secret: &[u8]) -> Option<Self> {
        let clearance = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        let puzzles = clearance.clone().chain_update(PUZZLES).finalize().into_bytes();
        Some(Self { puzzle: Hmac::new_from_slice(&puzzles).ok()?, clearance })
    }

    fn mac(&self, purpose: Purpose) -> &Hmac<Sha256> {
        match purpose {
            Purpose::Puzzle => &self.puzzle,
            Purpose::Clearance => &self.clearance,
        }
    }
}

/// The bytes of lower-case hexadecimal digits.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
