//! Keys that sign ID tokens, rightly and wrongly.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key of tests alone.
const RSA: &[u8] = include_bytes!("../../data/oidc/rsa.pk8");

pub(crate) struct Signer {
    id: String,
    key: Key,
}

enum Key {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    /// With any secret, such as a public key.
    Hmac(Vec<u8>),
    /// No signature at all.
    None,
}

impl Signer {
    pub(crate) fn rsa(id: &str) -> Signer {
        Signer { id: id.to_owned(), key: Key::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap()) }
    }

    /// A new key.
    pub(crate) fn p256(id: &str) -> Signer {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Signer { id: id.to_owned(), key: Key::P256(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap()) }
    }

    /// A new key.
    pub(crate) fn ed25519(id: &str) -> Signer {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Signer { id: id.to_owned(), key: Key::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap()) }
    }

    pub(crate) fn hmac(id: &str, secret: &[u8]) -> Signer {
        Signer { id: id.to_owned(), key: Key::Hmac(secret.to_vec()) }
    }

    pub(crate) fn none(id: &str) -> Signer {
        Signer { id: id.to_owned(), key: Key::None }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self.key {
            Key::Rsa(_) => "RS256",
            Key::P256(_) => "ES256",
            Key::Ed25519(_) => "EdDSA",
            Key::Hmac(_) => "HS256",
            Key::None => "none",
        }
    }

    /// The public key, in DER or as it is.
    pub(crate) fn public(&self) -> Vec<u8> {
        match &self.key {
            Key::Rsa(key) => key.public().as_ref().to_vec(),
            Key::P256(key) => key.public_key().as_ref().to_vec(),
            Key::Ed25519(key) => key.public_key().as_ref().to_vec(),
            Key::Hmac(_) | Key::None => Vec::new(),
        }
    }

    pub(crate) fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let public = self.public();
        match &self.key {
            Key::Rsa(key) => {
                let PublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
                json!({ "kty": "RSA", "kid": self.id, "use": "sig", "alg": "RS256", "n": text(&n), "e": text(&e) })
            }
            Key::P256(_) => {
                json!({ "kty": "EC", "kid": self.id, "crv": "P-256", "x": text(&public[1..33]), "y": text(&public[33..]) })
            }
            Key::Ed25519(_) => json!({ "kty": "OKP", "kid": self.id, "crv": "Ed25519", "x": text(&public) }),
            Key::Hmac(_) | Key::None => json!({ "kty": "oct", "kid": self.id }),
        }
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let (bytes, random) = (message.as_bytes(), SystemRandom::new());
        let signature = match &self.key {
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
                signature
            }
            Key::P256(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Key::Ed25519(key) => key.sign(bytes).as_ref().to_vec(),
            Key::Hmac(secret) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), bytes).as_ref().to_vec(),
            Key::None => Vec::new(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
