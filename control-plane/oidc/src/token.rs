//! ID tokens: a JWT (RFC 7519) with a signature (RFC 7515), checked as OpenID Connect Core, section 3.1.3.7, wants it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use super::error::foreign;
use super::keys::{Checked, ED25519_NAMES, Keys};

/// How far the clocks of provider and control plane may be apart, in seconds.
const SKEW: u64 = 60;
/// How old a token may be when it comes, in seconds: it was made for this login.
const MAX_AGE: u64 = 600;
/// The characters of a subject, at most (OpenID Connect Core, section 2).
const MAX_SUBJECT: usize = 255;

/// The claims of an ID token that was checked.
pub(super) type Claims = Map<String, Value>;

/// What a token has to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// The access token that came with it.
    pub(super) access_token: Option<&'a str>,
    pub(super) now_seconds: u64,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenProblem {
    /// No key of the set has its id and kind; a newer set may have one. It says which key has signed.
    NoKey(String),
    /// Anything else.
    Wrong(String),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// Checks a token, the signature first, and returns its claims.
pub(super) fn check(token: &str, keys: &Keys, expected: &Expected<'_>) -> Result<Claims, TokenProblem> {
    let wrong = |what: &str| TokenProblem::Wrong(format!("the ID token {what}"));
    let (signed, signature) = token.rsplit_once('.').ok_or_else(|| wrong("is no JWT"))?;
    let (header, payload) = signed.split_once('.').ok_or_else(|| wrong("is no signed JWT"))?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| wrong("is not base64url"));
    let header: Header =
        serde_json::from_slice(&decode(header)?).map_err(|_| wrong("has a header that cannot be read"))?;
    if header.crit.is_some() {
        return Err(wrong("has critical headers, of which none is known"));
    }
    if header.typ.as_ref().is_some_and(|kind| !kind.eq_ignore_ascii_case("JWT")) {
        return Err(wrong("is a token of another type"));
    }
    match keys.check(&header.alg, header.kid.as_deref(), signed.as_bytes(), &decode(signature)?) {
        Checked::Right => {}
        Checked::Wrong => return Err(wrong("has a wrong signature")),
        Checked::NoAlgorithm => {
            return Err(wrong(&format!(
                "is signed with `{}`; RS256, ES256 and EdDSA (Ed25519) are supported: choose one of them for this client at the provider",
                foreign(&header.alg)
            )));
        }
        Checked::NoKey => {
            let alg = foreign(&header.alg);
            let key = header.kid.as_deref().map(|kid| format!("the key `{}` ({alg})", foreign(kid)));
            return Err(TokenProblem::NoKey(key.unwrap_or_else(|| format!("a key without an id ({alg})"))));
        }
    }
    let claims: Claims =
        serde_json::from_slice(&decode(payload)?).map_err(|_| wrong("has claims that cannot be read"))?;
    check_claims(&claims, expected).map_err(|what| wrong(&what))?;
    if !ED25519_NAMES.contains(&header.alg.as_str()) {
        check_access_token(&claims, expected.access_token).map_err(wrong)?;
    }
    Ok(claims)
}

/// Whom a token is for.
pub(super) fn audiences(claims: &Claims) -> Vec<&str> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn check_claims(claims: &Claims, expected: &Expected<'_>) -> Result<(), String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err("is of another issuer".to_owned());
    }
    let audiences = audiences(claims);
    if !audiences.contains(&expected.client_id) {
        return Err("is for another client (`aud`)".to_owned());
    }
    if (claims.contains_key("azp") || audiences.len() > 1) && text("azp") != Some(expected.client_id) {
        return Err("was made for another client (`azp`)".to_owned());
    }
    // NumericDate may have a fraction (RFC 7519, section 2).
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Some(seconds)),
            _ => Err(format!("has a claim `{name}` that is no time")),
        },
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact in 53 bits")]
    let (now, skew, age) = (expected.now_seconds as f64, SKEW as f64, MAX_AGE as f64);
    let (Some(expires), Some(issued)) = (time("exp")?, time("iat")?) else {
        return Err("lacks `exp` or `iat`".to_owned());
    };
    if now >= expires + skew {
        return Err("has expired".to_owned());
    }
    if issued > now + skew || time("nbf")?.is_some_and(|from| from > now + skew) {
        return Err("is of the future; compare the clocks of provider and control plane".to_owned());
    }
    if issued + age + skew < now {
        return Err("is too old; compare the clocks of provider and control plane".to_owned());
    }
    let same: bool = text("nonce").unwrap_or_default().as_bytes().ct_eq(expected.nonce.as_bytes()).into();
    if !same {
        return Err("is of another login (`nonce`)".to_owned());
    }
    let subject = text("sub").unwrap_or_default();
    if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.chars().any(char::is_control) {
        return Err("has no usable `sub`".to_owned());
    }
    Ok(())
}

/// OpenID Connect Core, section 3.1.3.6: half of the hash of the access token. Its hash for EdDSA is not specified.
fn check_access_token(claims: &Claims, access_token: Option<&str>) -> Result<(), &'static str> {
    let (Some(expected), Some(token)) = (claims.get("at_hash"), access_token) else { return Ok(()) };
    let half: Vec<u8> = Sha256::digest(token.as_bytes()).iter().take(16).copied().collect();
    match expected.as_str() == Some(&URL_SAFE_NO_PAD.encode(half)) {
        true => Ok(()),
        false => Err("is not of the access token (`at_hash`)"),
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    /// By either name, and with the `at_hash` that providers make for it: by SHA-512, which no specification says.
    #[test]
    fn a_token_signed_by_ed25519_is_accepted_by_both_names() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one" }] });
        let keys = Keys::read(set.to_string().as_bytes()).unwrap();
        let half = URL_SAFE_NO_PAD.encode(sha2::Sha512::digest(b"access").get(..32).unwrap());
        let claims = json!({
            "iss": "https://id.example", "aud": "palisade", "sub": "1", "nonce": "n", "iat": 1000, "exp": 1300, "at_hash": half,
        });
        let expected = Expected {
            issuer: "https://id.example",
            client_id: "palisade",
            nonce: "n",
            access_token: Some("access"),
            now_seconds: 1000,
        };
        let checked = |algorithm: &str| {
            let header = json!({ "alg": algorithm, "kid": "one" });
            let [header, payload] = [header, claims.clone()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
            let signature = URL_SAFE_NO_PAD.encode(pair.sign(format!("{header}.{payload}").as_bytes()));
            check(&format!("{header}.{payload}.{signature}"), &keys, &expected)
        };
        for name in ["EdDSA", "Ed25519"] {
            assert_eq!(checked(name).map(|claims| claims["sub"].clone()), Ok("1".into()), "{name}");
        }
        assert_eq!(checked("ES256"), Err(TokenProblem::NoKey("the key `one` (ES256)".to_owned())));
        let Err(TokenProblem::Wrong(told)) = checked("Ed448") else { panic!("no such algorithm") };
        assert!(told.starts_with("the ID token is signed with `Ed448`; RS256,"), "{told}");
    }
}
