//! An authenticator in software: it makes passkeys and signs with them, rightly and wrongly.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

pub(crate) const ORIGIN: &str = "https://palisade.example";
const SITE: &str = "palisade.example";

/// A passkey on its authenticator, and what the next answers have.
pub(crate) struct Authenticator {
    pub(crate) id: Vec<u8>,
    key: Key,
    /// Signatures that were counted; `None` for one that does not count.
    pub(crate) count: Option<u32>,
    pub(crate) flags: u8,
    pub(crate) origin: String,
    pub(crate) site: String,
    pub(crate) cross_origin: bool,
    /// In the place of `webauthn.create` or `webauthn.get`.
    pub(crate) kind: Option<String>,
    pub(crate) user_handle: Option<String>,
}

enum Key {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Present, verified.
pub(crate) const VERIFIED: u8 = 0x05;
pub(crate) const PRESENT: u8 = 0x01;

impl Authenticator {
    pub(crate) fn p256(id: u8) -> Authenticator {
        let (kind, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Authenticator::with(id, Key::P256(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap()))
    }

    pub(crate) fn ed25519(id: u8) -> Authenticator {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Authenticator::with(id, Key::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap()))
    }

    fn with(id: u8, key: Key) -> Authenticator {
        Authenticator {
            id: vec![id; 32],
            key,
            count: Some(0),
            flags: VERIFIED,
            origin: ORIGIN.to_owned(),
            site: SITE.to_owned(),
            cross_origin: false,
            kind: None,
            user_handle: None,
        }
    }

    /// What `navigator.credentials.create` gives for these options.
    pub(crate) fn create(&mut self, options: &Value) -> Value {
        assert_eq!(options["rp"]["id"], SITE);
        assert!(options["pubKeyCredParams"].as_array().unwrap().iter().any(|kind| kind["alg"] == -7));
        self.user_handle = Some(options["user"]["id"].as_str().unwrap().to_owned());
        let mut data = self.data(self.flags | 0x40);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        data.extend(self.cose());
        let client = self.client("webauthn.create", options);
        json!({ "response": { "clientDataJSON": encode(&client), "authenticatorData": encode(&data) } })
    }

    /// What `navigator.credentials.get` gives for these options.
    pub(crate) fn get(&mut self, options: &Value) -> Value {
        assert_eq!(options["rpId"], SITE);
        self.count = self.count.map(|count| count + 1);
        let (data, client) = (self.data(self.flags), self.client("webauthn.get", options));
        let message = [data.as_slice(), digest(&SHA256, &client).as_ref()].concat();
        let signature = match &self.key {
            Key::P256(key) => key.sign(&SystemRandom::new(), &message).unwrap().as_ref().to_vec(),
            Key::Ed25519(key) => key.sign(&message).as_ref().to_vec(),
        };
        let mut response = json!({
            "clientDataJSON": encode(&client), "authenticatorData": encode(&data), "signature": encode(&signature),
        });
        if let Some(handle) = &self.user_handle {
            response["userHandle"] = handle.as_str().into();
        }
        json!({ "id": encode(&self.id), "response": response })
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let mut data = digest(&SHA256, self.site.as_bytes()).as_ref().to_vec();
        data.push(flags);
        data.extend(self.count.unwrap_or_default().to_be_bytes());
        data
    }

    fn client(&self, kind: &str, options: &Value) -> Vec<u8> {
        let kind = self.kind.as_deref().unwrap_or(kind);
        let client = json!({
            "type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": self.cross_origin,
        });
        client.to_string().into_bytes()
    }

    /// RFC 9053.
    fn cose(&self) -> Vec<u8> {
        match &self.key {
            Key::P256(key) => {
                let point = key.public_key().as_ref();
                let mut bytes = vec![0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32];
                bytes.extend(&point[1..33]);
                bytes.extend([0x22, 0x58, 32]);
                bytes.extend(&point[33..]);
                bytes
            }
            Key::Ed25519(key) => {
                let mut bytes = vec![0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32];
                bytes.extend(key.public_key().as_ref());
                bytes
            }
        }
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
