//! Key sets (RFC 7517) and cards that have one, as far as they are for signatures of requests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::VerifyingKey;
use serde::Deserialize;
use serde_json::Value;
use snapshot::content_hash;

use crate::SignerKey;

/// The usable keys of a directory, at most: each is a row of the table of every worker.
pub(super) const MAX_KEYS: usize = 64;
/// Times above this are in milliseconds, as early drafts had them; in seconds it is the year 5138.
const MILLISECONDS_FROM: u64 = 100_000_000_000;
/// The thumbprints of keys whose private halves are published: those of RFC 9421 (B.1.4) and RFC 8037 (A.1).
const PUBLISHED: [&str; 2] =
    ["poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"];

/// The keys of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet {
    /// Those that can be used, each once.
    pub(super) keys: Vec<SignerKey>,
    /// How many cannot: of another type, for another purpose, not in their format, or known to everyone.
    pub(super) ignored: u64,
}

/// What a card (client ID metadata document) says of keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Card {
    Keys(KeySet),
    /// They are at this URL.
    Elsewhere(String),
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct CardDocument {
    client_id: String,
    jwks: Option<Jwks>,
    jwks_uri: Option<String>,
}

/// A key as a directory has it. Members of no use are not read; those of another type make a key that is ignored.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    x: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    /// The private key.
    d: Option<Value>,
    nbf: Option<f64>,
    exp: Option<f64>,
}

/// The keys of a key set. A set without any that can be used is one: so a directory withdraws all of them.
///
/// # Errors
/// It is no key set, or has too many; for people.
pub(super) fn key_set(body: &[u8]) -> Result<KeySet, String> {
    let set: Jwks =
        serde_json::from_slice(body).map_err(|_| "the answer is no key set (JSON with `keys`)".to_owned())?;
    usable(set)
}

/// What a card at this URL says.
///
/// # Errors
/// It is no card of that URL, or says nothing or two things of keys; for people.
pub(super) fn card(body: &[u8], url: &str) -> Result<Card, String> {
    let document: CardDocument =
        serde_json::from_slice(body).map_err(|_| "the answer is no card (JSON with `client_id`)".to_owned())?;
    if document.client_id != url {
        return Err("the `client_id` of the card is not its URL".to_owned());
    }
    match (document.jwks, document.jwks_uri) {
        (Some(set), None) => usable(set).map(Card::Keys),
        (None, Some(elsewhere)) => Ok(Card::Elsewhere(elsewhere)),
        (None, None) => Err("the card has neither `jwks` nor `jwks_uri`".to_owned()),
        (Some(_), Some(_)) => Err("the card has both `jwks` and `jwks_uri`".to_owned()),
    }
}

fn usable(set: Jwks) -> Result<KeySet, String> {
    let mut found = KeySet::default();
    for value in set.keys {
        match serde_json::from_value(value).ok().and_then(key) {
            Some(key) if !found.keys.iter().any(|known| known.public == key.public) => {
                if found.keys.len() >= MAX_KEYS {
                    return Err(format!("the directory has more than {MAX_KEYS} keys"));
                }
                found.keys.push(key);
            }
            Some(_) => {}
            None => found.ignored = found.ignored.saturating_add(1),
        }
    }
    Ok(found)
}

fn key(jwk: Jwk) -> Option<SignerKey> {
    let for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
        && jwk.key_ops.is_none_or(|ops| ops.iter().any(|op| op == "verify" || op == "sign"))
        && jwk.alg.as_deref().is_none_or(|alg| ["EdDSA", "Ed25519", "ed25519"].contains(&alg));
    // Everyone who has seen the directory could sign with a key whose private half is in it.
    if jwk.kty != "OKP" || jwk.crv != "Ed25519" || !for_signatures || jwk.d.is_some() {
        return None;
    }
    let public: [u8; 32] = URL_SAFE_NO_PAD.decode(&jwk.x).ok()?.try_into().ok()?;
    let is_sane = VerifyingKey::from_bytes(&public).is_ok_and(|key| !key.is_weak());
    if !is_sane || PUBLISHED.contains(&URL_SAFE_NO_PAD.encode(thumbprint(&public)).as_str()) {
        return None;
    }
    let (from, until) = (jwk.nbf.map_or(Some(0), millis)?, jwk.exp.map_or(Some(u64::MAX), millis)?);
    Some(SignerKey { public, from, until })
}

/// A time of a key in milliseconds; `None` for what is none.
fn millis(time: f64) -> Option<u64> {
    if !time.is_finite() || time < 0.0 {
        return None;
    }
    // Saturates; fractions of seconds make no difference.
    let time = time as u64;
    Some(if time >= MILLISECONDS_FROM { time } else { time.saturating_mul(1000) })
}

/// The thumbprint of an Ed25519 key (RFC 7638, RFC 8037).
pub(super) fn thumbprint(public: &[u8; 32]) -> [u8; 32] {
    let x = URL_SAFE_NO_PAD.encode(public);
    content_hash(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A key of its own for each number.
    fn public(number: u8) -> [u8; 32] {
        ed25519_dalek::SigningKey::from_bytes(&[number; 32]).verifying_key().to_bytes()
    }

    fn jwk(number: u8) -> Value {
        json!({ "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(public(number)) })
    }

    fn read(keys: Vec<Value>) -> Result<KeySet, String> {
        key_set(json!({ "keys": keys }).to_string().as_bytes())
    }

    fn with(number: u8, field: &str, value: Value) -> Value {
        let mut jwk = jwk(number);
        jwk[field] = value;
        jwk
    }

    #[test]
    fn thumbprints_are_those_of_the_rfcs() {
        for (x, expected) in [
            ("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", PUBLISHED[0]),
            ("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", PUBLISHED[1]),
        ] {
            let public: [u8; 32] = URL_SAFE_NO_PAD.decode(x).unwrap().try_into().unwrap();
            assert_eq!(URL_SAFE_NO_PAD.encode(thumbprint(&public)), expected);
            let set = read(vec![json!({ "kty": "OKP", "crv": "Ed25519", "x": x })]).unwrap();
            assert_eq!((set.keys.len(), set.ignored), (0, 1), "anyone has the private half of {x}");
        }
    }

    #[test]
    fn keys_of_other_kinds_are_ignored() {
        let ignored = vec![
            json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }),
            json!({ "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB" }),
            json!("text"),
            json!(null),
            with(1, "crv", json!("X25519")),
            with(2, "use", json!("enc")),
            with(3, "key_ops", json!(["encrypt"])),
            with(4, "alg", json!("HS256")),
            with(5, "d", json!("AQAB")),
            with(6, "x", json!("AQAB")),
            with(7, "x", json!(7)),
            with(8, "x", json!(format!("{}=", URL_SAFE_NO_PAD.encode(public(8))))),
            with(9, "nbf", json!(-1)),
            with(10, "exp", json!("tomorrow")),
            // A point of small order: it verifies signatures of everything.
            with(11, "x", json!(URL_SAFE_NO_PAD.encode([[1].as_slice(), &[0; 31]].concat()))),
            // No point at all.
            with(12, "x", json!(URL_SAFE_NO_PAD.encode([[2].as_slice(), &[0; 31]].concat()))),
        ];
        let count = ignored.len() as u64;
        let taken = [
            jwk(20),
            with(21, "use", json!("sig")),
            with(22, "key_ops", json!(["verify"])),
            with(23, "alg", json!("EdDSA")),
            with(24, "kid", json!("any")),
            jwk(20),
        ];
        let set = read(ignored.into_iter().chain(taken).collect()).unwrap();
        let publics: Vec<_> = set.keys.iter().map(|key| key.public).collect();
        assert_eq!((publics, set.ignored), ([20, 21, 22, 23, 24].map(public).to_vec(), count));
    }

    #[test]
    fn times_of_keys_are_in_seconds_or_milliseconds() {
        let mut key = with(1, "nbf", json!(1_712_793_600));
        key["exp"] = json!(1_715_385_600_000_u64);
        let expected = SignerKey { public: public(1), from: 1_712_793_600_000, until: 1_715_385_600_000 };
        assert_eq!(read(vec![key]).unwrap().keys, [expected]);
        assert_eq!(read(vec![jwk(1)]).unwrap().keys, [SignerKey { public: public(1), from: 0, until: u64::MAX }]);
        assert!(expected.counts_at(expected.from) && !expected.counts_at(expected.until));
    }

    #[test]
    fn a_set_is_bounded_and_may_be_empty() {
        assert_eq!(read(Vec::new()), Ok(KeySet::default()));
        assert_eq!(read((0..64).map(jwk).collect()).unwrap().keys.len(), 64);
        assert!(read((0..65).map(jwk).collect()).unwrap_err().contains("more than 64 keys"));
        for wrong in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[}"#, "<html>", &"[".repeat(10_000)] {
            assert!(key_set(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_card_is_that_of_its_url_and_says_one_thing() {
        let url = "https://example.com/bot";
        let read = |card: Value| super::card(card.to_string().as_bytes(), url);
        let elsewhere = "https://example.com/keys.json";
        assert_eq!(read(json!({ "client_id": url, "jwks_uri": elsewhere })), Ok(Card::Elsewhere(elsewhere.to_owned())));
        let Ok(Card::Keys(set)) = read(json!({ "client_id": url, "jwks": { "keys": [jwk(1)] } })) else { panic!() };
        assert_eq!(set.keys.len(), 1);
        for wrong in [
            json!({ "client_id": "https://example.com/other", "jwks_uri": elsewhere }),
            json!({ "client_id": url }),
            json!({ "client_id": url, "jwks_uri": elsewhere, "jwks": { "keys": [] } }),
            json!({ "jwks_uri": elsewhere }),
            json!({ "client_id": url, "jwks": [] }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
