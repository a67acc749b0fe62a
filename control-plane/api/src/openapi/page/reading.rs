//! What the page reads of the document.

use serde_json::Value;

/// An operation with where it is.
pub(super) struct Entry<'a> {
    pub(super) path: &'a str,
    pub(super) method: &'a str,
    pub(super) operation: &'a Value,
}

/// The status and the text of an answer.
pub(super) type Told<'a> = (&'a str, &'a str);

/// The value at a pointer; null where there is none.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// The text in a field; empty where there is none.
pub(super) fn string<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn object<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    at(value, pointer).as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}
