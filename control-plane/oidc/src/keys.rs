//! The provider's keys (RFC 7517) and signatures by them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::error::foreign;

/// The keys of a set that are read, at most; further ones are left out.
const MAX_KEYS: usize = 100;

/// `Ed25519` is the newer name of what `EdDSA` is with a key of this curve (RFC 9864); providers use either.
pub(super) const ED25519_NAMES: [&str; 2] = ["EdDSA", "Ed25519"];

/// The algorithms of RSA, of P-256 and of Ed25519, each by its names.
const ALGORITHMS: [&[&str]; 3] = [&["RS256"], &["ES256"], &ED25519_NAMES];

/// The keys that a message names, at most.
const MAX_NAMED: usize = 8;

/// The keys that signatures are checked by: those of the set that can be used.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys(Vec<Key>);

/// A public key. Its kind alone says which algorithm its signatures have: what a token names has to be that one. So there is no
/// algorithm `none`, and no public key is ever taken for a secret of HMAC.
#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// What a signature turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    Right,
    Wrong,
    /// There is no such key; a newer set may have it.
    NoKey,
    /// No key that is read has this algorithm, whatever the set.
    NoAlgorithm,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

// === impl Keys ===

impl Keys {
    /// Reads a key set; keys of other kinds or uses are left out.
    pub(super) fn read(bytes: &[u8]) -> Result<Keys, String> {
        let set: Set = serde_json::from_slice(bytes).map_err(|error| format!("the key set cannot be read: {error}"))?;
        let keys = set.keys.into_iter().take(MAX_KEYS).filter_map(|key| Key::of(serde_json::from_value(key).ok()?));
        Ok(Keys(keys.collect()))
    }

    /// The keys for a message: `one` (RS256), `two` (ES256).
    pub(super) fn named(&self) -> String {
        let name = |key: &Key| {
            let id =
                key.id.as_deref().map_or_else(|| "one without an id".to_owned(), |id| format!("`{}`", foreign(id)));
            format!("{id} ({})", key.material.algorithms().first().copied().unwrap_or_default())
        };
        let mut named = self.0.iter().take(MAX_NAMED).map(name).collect::<Vec<_>>().join(", ");
        let more = self.0.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            named.push_str(&format!(" and {more} more"));
        }
        if named.is_empty() { "no key that can be used".to_owned() } else { named }
    }

    /// Checks a signature by the key of this id, or, where the token names none, by each key of the algorithm.
    pub(super) fn check(&self, algorithm: &str, id: Option<&str>, message: &[u8], signature: &[u8]) -> Checked {
        if !ALGORITHMS.iter().any(|names| names.contains(&algorithm)) {
            return Checked::NoAlgorithm;
        }
        let mut fitting = self
            .0
            .iter()
            .filter(|key| key.material.algorithms().contains(&algorithm) && (id.is_none() || key.id.as_deref() == id));
        let mut checked = Checked::NoKey;
        if fitting.any(|key| {
            checked = Checked::Wrong;
            key.material.has_signed(message, signature)
        }) {
            checked = Checked::Right;
        }
        checked
    }
}

impl Key {
    fn of(jwk: Jwk) -> Option<Key> {
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: bytes(jwk.n)?, e: bytes(jwk.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x)?, bytes(jwk.y)?);
                ((x.len(), y.len()) == (32, 32)).then(|| Material::P256([vec![4], x, y].concat()))?
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(jwk.x)?),
            _ => return None,
        };
        let signs = jwk.usage.is_none_or(|usage| usage == "sig");
        let fits = jwk.alg.is_none_or(|algorithm| material.algorithms().contains(&algorithm.as_str()));
        (signs && fits).then_some(Key { id: jwk.kid, material })
    }
}

impl Material {
    /// The names of its algorithm (RFC 7518, RFC 8037, RFC 9864).
    fn algorithms(&self) -> &'static [&'static str] {
        let [rsa, p256, ed25519] = ALGORITHMS;
        match self {
            Material::Rsa { .. } => rsa,
            Material::P256(_) => p256,
            Material::Ed25519(_) => ed25519,
        }
    }

    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Material::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515, appendix A.3, and RFC 8037, appendix A.
    #[test]
    fn signatures_of_the_rfcs_are_right() {
        let keys = Keys::read(
            br#"{"keys": [
                {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "kid": "ec"},
                {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
                {"kty": "EC", "crv": "P-256", "x": "f83O", "y": "x_FE", "kid": "short"},
                {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "kid": "enc", "use": "enc"},
                {"kty": "oct", "k": "AAAA", "kid": "hmac"}, 7]}"#,
        )
        .unwrap();
        assert_eq!(keys.0.len(), 2);
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let message = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = bytes("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
        assert_eq!(keys.check("ES256", Some("ec"), message, &signature), Checked::Right);
        assert_eq!(keys.check("ES256", None, message, &signature), Checked::Right);
        assert_eq!(keys.check("ES256", None, b"other", &signature), Checked::Wrong);
        for (algorithm, id, checked) in [
            ("ES256", Some("enc"), Checked::NoKey),
            ("RS256", Some("ec"), Checked::NoKey),
            ("HS256", None, Checked::NoAlgorithm),
            ("none", None, Checked::NoAlgorithm),
            ("", Some("ec"), Checked::NoAlgorithm),
        ] {
            assert_eq!(keys.check(algorithm, id, message, &signature), checked, "{algorithm} {id:?}");
        }
        assert_eq!(keys.named(), "`ec` (ES256), one without an id (EdDSA)");
        assert_eq!(Keys::default().named(), "no key that can be used");
        let signature = bytes("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        assert_eq!(keys.check("EdDSA", None, message, &signature), Checked::Right);
    }

    /// The same key and signature as in RFC 8037: neither depends on the name.
    #[test]
    fn a_key_of_ed25519_has_both_names_of_its_algorithm() {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let signature = bytes("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        for (name, checked) in [
            ("EdDSA", Checked::Right),
            ("Ed25519", Checked::Right),
            ("Ed448", Checked::NoKey),
            ("ES256", Checked::NoKey),
        ] {
            let set = format!(
                r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "alg": "{name}"}}]}}"#
            );
            let keys = Keys::read(set.as_bytes()).unwrap();
            for algorithm in ["EdDSA", "Ed25519"] {
                assert_eq!(keys.check(algorithm, None, message, &signature), checked, "{name} {algorithm}");
            }
        }
    }
}
