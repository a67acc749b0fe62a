//! The API keys of callers, as their digests.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FieldProblem;

/// The maximum number of API keys.
pub(super) const MAX_API_KEYS: usize = 10_000;
/// The bytes of a key: one that is shorter could be guessed from its digest.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;
/// The bytes of an id, at most.
const MAX_ID: usize = 64;

/// An API key. Only its SHA-256 is stored, which is enough for random keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ApiKeyDocument")]
pub struct ApiKey {
    /// Its id in bans and events.
    pub id: String,
    /// The SHA-256 of the key, 64 hexadecimal digits.
    pub sha256: String,
}

/// An API key in a document: the key, which is not stored, or its SHA-256.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiKeyDocument {
    /// Its id in bans and events: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    id: String,
    /// The SHA-256 of the key, 64 hexadecimal digits; not needed if the key itself is given.
    #[serde(default)]
    sha256: Option<String>,
    /// The key, 16 to 4096 bytes; only its SHA-256 is stored.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    secret: Option<String>,
}

impl TryFrom<ApiKeyDocument> for ApiKey {
    type Error = String;

    /// What is wrong is said without the key.
    fn try_from(document: ApiKeyDocument) -> Result<ApiKey, String> {
        let ApiKeyDocument { id, sha256, secret } = document;
        let made = match secret {
            Some(secret) if !KEY_BYTES.contains(&secret.len()) => {
                return Err("an api key has 16 to 4096 bytes: a shorter one can be guessed".to_owned());
            }
            Some(secret) => Some(snapshot::hex(&Sha256::digest(secret.as_bytes()))),
            None => None,
        };
        let given = sha256.map(|digest| digest.to_ascii_lowercase());
        match (given, made) {
            (Some(given), Some(made)) if given != made => Err("`sha256` is not that of `secret`".to_owned()),
            (Some(sha256), _) | (None, Some(sha256)) => Ok(ApiKey { id, sha256 }),
            (None, None) => Err("an api key needs `secret` or `sha256`".to_owned()),
        }
    }
}

impl ApiKey {
    /// The digest; `None` if `sha256` is not 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> Option<[u8; 32]> {
        snapshot::unhex(self.sha256.as_bytes())?.try_into().ok()
    }

    /// What is wrong with these keys. Two of one digest would be one caller with two names.
    pub(super) fn check_all(keys: &[ApiKey]) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let (mut ids, mut digests) = (BTreeSet::new(), BTreeSet::new());
        for (index, key) in keys.iter().enumerate() {
            let sane = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !(1..=MAX_ID).contains(&key.id.len()) || !key.id.bytes().all(sane) {
                let message =
                    format!("`{}` is not an id", key.id.chars().take(MAX_ID).collect::<String>().escape_debug());
                let problem = FieldProblem::new(format!("/{index}/id"), message);
                problems.push(problem.expected("1 to 64 of A-Z a-z 0-9 . _ -"));
            } else if !ids.insert(&key.id) {
                let message = format!("another api key is `{}` already", key.id);
                problems.push(FieldProblem::new(format!("/{index}/id"), message));
            }
            if key.digest().is_none() {
                let problem = FieldProblem::new(format!("/{index}/sha256"), "this is not a SHA-256");
                problems.push(problem.expected("64 hexadecimal digits"));
            } else if !digests.insert(&key.sha256) {
                problems.push(FieldProblem::new(format!("/{index}"), "another entry is the same key already"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(document: Value) -> Result<ApiKey, String> {
        serde_json::from_value(document).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_is_kept_as_its_digest_alone() {
        let key = read(json!({"id": "shop", "secret": "hunter2-hunter2-hunter2"})).unwrap();
        let shown = serde_json::to_value(&key).unwrap();
        assert_eq!(shown, json!({"id": "shop", "sha256": key.sha256}));
        assert_eq!(key.digest(), Some(Sha256::digest(b"hunter2-hunter2-hunter2").into()));
        assert_eq!(read(shown), Ok(key.clone()), "as it was stored");
        let both = json!({"id": "shop", "secret": "hunter2-hunter2-hunter2", "sha256": key.sha256.to_uppercase()});
        assert_eq!(read(both), Ok(key));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_key() {
        for wrong in [
            json!({"id": "shop"}),
            json!({"id": "shop", "secret": "hunter2"}),
            json!({"id": "shop", "secret": "hunter2-hunter2-hunter2", "sha256": "00"}),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let key = |id: &str, sha256: &str| ApiKey { id: id.into(), sha256: sha256.into() };
        let (one, other) = ("0".repeat(64), "1".repeat(64));
        let keys = [
            key("a", &one),
            key("a", &other),
            key("b", &one),
            key("c d", "0"),
            key("e", &"\u{fc}".repeat(32)),
            key("f", &"+f".repeat(32)),
        ];
        let found: Vec<String> = ApiKey::check_all(&keys).into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(found, ["/1/id", "/2", "/3/id", "/3/sha256", "/4/sha256", "/5/sha256"]);
    }
}
