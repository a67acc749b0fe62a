//! Secrets in entities: kept, used, never shown.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::thread::LocalKey;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::problem::{FieldProblem, token};

/// What is shown in the place of a secret. A document that brings it back keeps the secret that is stored.
pub const MASK: &str = "********";

/// The bytes of a secret, at most.
const MAX_BYTES: usize = 8192;

thread_local! {
    /// Whether this thread writes secrets as they are, see [`revealed`].
    static REVEALED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread reads masks as they are, see [`with_masks`].
    static MASKS: Cell<bool> = const { Cell::new(false) };
}

/// A password, a key or an address with a token in it. At most 8192 bytes without control characters; empty means there
/// is none. It is written as [`MASK`] wherever it is serialised, but for the store, and its `Debug` form hides it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself; empty where there is none, or a file has only its mask. Not for logs, events, errors and
    /// answers.
    #[must_use]
    pub fn reveal(&self) -> &str {
        if self.is_mask() { "" } else { &self.0 }
    }

    /// Whether all that is known is that there is one elsewhere, as in a file that was exported.
    #[must_use]
    pub fn is_mask(&self) -> bool {
        self.0 == MASK
    }

    /// Whether there is one, be it elsewhere.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Secret {
        Secret(secret.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { MASK } else { "unset" })
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "null"],
            "writeOnly": true,
            "description": "A secret: shown as `********`, and kept where that is sent back.",
        })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hidden = self.is_set() && !REVEALED.get();
        serializer.serialize_str(if hidden { MASK } else { &self.0 })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        // By way of a value, because serde's own errors repeat what was sent.
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Secret::default()),
            Value::String(text) if text == MASK && !MASKS.get() => Err(D::Error::custom(format!(
                "`{MASK}` means the stored secret, and none is stored, expected the secret itself"
            ))),
            Value::String(text) if text.len() > MAX_BYTES || text.chars().any(char::is_control) => {
                Err(D::Error::custom(format!(
                    "the secret is too long or has control characters in it, expected at most {MAX_BYTES} bytes of text"
                )))
            }
            Value::String(text) => Ok(Secret(text)),
            _ => Err(D::Error::custom("a secret is text, expected a string")),
        }
    }
}

/// Runs `work` with secrets written as they are. The result goes to the store and nowhere else.
pub(super) fn revealed<T>(work: impl FnOnce() -> T) -> T {
    with(&REVEALED, work)
}

/// Runs `work` with masks read as they are: a file that was exported has them, and the secrets are where it came from.
pub fn with_masks<T>(work: impl FnOnce() -> T) -> T {
    with(&MASKS, work)
}

fn with<T>(flag: &'static LocalKey<Cell<bool>>, work: impl FnOnce() -> T) -> T {
    struct Reset(&'static LocalKey<Cell<bool>>, bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _reset = Reset(flag, flag.replace(true));
    work()
}

/// Puts the stored secrets back where a document has the mask in their places. `shown` and `stored` are the two forms
/// of the entity that the document replaces.
///
/// Answers the places of secrets whose new text has the mask and more in it: the mask was edited there, and is no part of a secret.
#[must_use]
pub fn restore(document: &mut Value, shown: &Value, stored: &Value) -> Vec<FieldProblem> {
    let mut edited = Vec::new();
    restore_at(document, "", shown, stored, &mut edited);
    edited
}

fn restore_at(place: &mut Value, pointer: &str, shown: &Value, stored: &Value, edited: &mut Vec<FieldProblem>) {
    match place {
        Value::String(text) if text.contains(MASK) => {
            let (true, Some(secret)) =
                (shown.pointer(pointer).and_then(Value::as_str) == Some(MASK), stored.pointer(pointer))
            else {
                return;
            };
            if text == MASK {
                *place = secret.clone();
            } else if secret.as_str() != Some(text) {
                let problem = FieldProblem::new(pointer, format!("`{MASK}` stands for the whole stored secret"));
                edited.push(problem.expected(format!("`{MASK}` alone, or the secret itself without it")));
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter_mut().enumerate() {
                restore_at(entry, &format!("{pointer}/{index}"), shown, stored, edited);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                restore_at(value, &format!("{pointer}/{}", token(name)), shown, stored, edited);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_hidden_but_from_the_store() {
        let secret = Secret::from("hunter2");
        assert_eq!(serde_json::to_value(&secret).unwrap(), MASK);
        assert_eq!(format!("{secret:?} {:?}", Secret::default()), "******** unset");
        assert_eq!(revealed(|| serde_json::to_value(&secret).unwrap()), "hunter2");
        let broken = std::panic::catch_unwind(|| revealed(|| panic!("while revealed")));
        assert!(broken.is_err());
        assert_eq!(serde_json::to_value(&secret).unwrap(), MASK, "hidden again whatever happened");
        assert_eq!(serde_json::to_value(Secret::default()).unwrap(), "", "that there is none is no secret");
    }

    #[test]
    fn a_mask_is_read_from_files_alone_and_is_no_secret() {
        let mask = with_masks(|| serde_json::from_value::<Secret>(json!(MASK)).unwrap());
        assert!(mask.is_set() && mask.is_mask() && mask.reveal().is_empty());
        assert_eq!(revealed(|| serde_json::to_value(&mask).unwrap()), MASK);
        assert!(serde_json::from_value::<Secret>(json!(MASK)).is_err(), "strict again");
    }

    #[test]
    fn errors_do_not_repeat_the_secret() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (wrong, says) in [
            (json!(12345678), "a string"),
            (json!(["hunter2"]), "a string"),
            (json!("hunter2\r\nX: y"), "control characters"),
            (json!(long), "at most 8192 bytes"),
            (json!(MASK), "none is stored"),
        ] {
            let error = serde_json::from_value::<Secret>(wrong).unwrap_err().to_string();
            assert!(error.contains(says) && error.len() < 200, "{error}");
            assert!(!error.contains("hunter2") && !error.contains("12345678"), "{error}");
        }
        let most = "x".repeat(MAX_BYTES);
        assert_eq!(serde_json::from_value::<Secret>(json!(most)).unwrap().reveal(), most);
        assert!(!serde_json::from_value::<Secret>(json!(null)).unwrap().is_set());
    }

    #[test]
    fn masks_give_way_where_a_secret_is_stored_and_only_there() {
        let shown = json!({"key": MASK, "headers": {"a/b": MASK}, "name": "x", "list": [{"k": MASK}]});
        let stored = json!({"key": "1", "headers": {"a/b": "2"}, "name": "x", "list": [{"k": "3"}]});
        let mut document =
            json!({"key": MASK, "headers": {"a/b": MASK, "c": MASK}, "name": MASK, "list": [{"k": MASK}]});
        assert!(restore(&mut document, &shown, &stored).is_empty());
        let expected = json!({"key": "1", "headers": {"a/b": "2", "c": MASK}, "name": MASK, "list": [{"k": "3"}]});
        assert_eq!(document, expected);
    }

    #[test]
    fn a_mask_that_was_edited_is_no_secret() {
        let shown = json!({"key": MASK, "headers": {"a/b": MASK}, "name": "x"});
        let stored = json!({"key": "1", "headers": {"a/b": "2********"}, "name": "x"});
        let edited = |document: Value| restore(&mut document.clone(), &shown, &stored);
        let pointers = |document: Value| edited(document).into_iter().map(|one| one.pointer).collect::<Vec<_>>();
        assert_eq!(
            pointers(json!({"key": "********NEW", "headers": {"a/b": "x********"}, "name": "a ********"})),
            ["/key", "/headers/a~1b"]
        );
        // What is stored, from a file; a new secret; a text that is none.
        assert_eq!(pointers(json!({"key": "N*w", "headers": {"a/b": "2********"}})), [] as [&str; 0]);
    }
}
