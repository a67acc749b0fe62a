//! Public keys of passkeys (RFC 9053), and signatures by them.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::cbor::{self, Value};

/// The algorithms of passkeys (IANA COSE), the preferred one first: ES256, EdDSA, RS256.
pub const PASSKEY_ALGORITHMS: [i64; 3] = [-7, -8, -257];

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey<'a> {
    /// The uncompressed point.
    P256(Vec<u8>),
    Ed25519(&'a [u8]),
    Rsa {
        n: &'a [u8],
        e: &'a [u8],
    },
}

impl<'a> PublicKey<'a> {
    /// Reads a key at the beginning of `bytes`, and returns what follows it. `None` for kinds that are not asked for.
    pub(super) fn read(bytes: &'a [u8]) -> Option<(PublicKey<'a>, &'a [u8])> {
        let (entries, rest) = cbor::read_map(bytes)?;
        let find = |label: i64| entries.iter().find(|(key, _)| *key == label).map(|(_, value)| *value);
        let number = |label| match find(label)? {
            Value::Integer(number) => Some(number),
            Value::Bytes(_) => None,
        };
        let bytes = |label| match find(label)? {
            Value::Bytes(bytes) => Some(bytes),
            Value::Integer(_) => None,
        };
        let key = match (number(1)?, number(3)?) {
            (2, -7) if number(-1)? == 1 => {
                let (x, y) = (bytes(-2)?, bytes(-3)?);
                ((x.len(), y.len()) == (32, 32)).then(|| PublicKey::P256([[4].as_slice(), x, y].concat()))?
            }
            (1, -8) if number(-1)? == 6 => PublicKey::Ed25519(bytes(-2).filter(|key| key.len() == 32)?),
            (3, -257) => PublicKey::Rsa { n: bytes(-1)?, e: bytes(-2)? },
            _ => return None,
        };
        Some((key, rest))
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature).is_ok()
            }
            PublicKey::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok(),
            PublicKey::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
        }
    }
}
