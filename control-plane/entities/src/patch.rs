//! JSON patches (RFC 6902), with a bound on what they may make of a document.

use json_patch::{Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::WriteError;

/// What all `copy` and `move` operations of one patch may touch, in bytes of memory. A few dozen copies, each of what the last has
/// made, would otherwise fill any memory.
pub(super) const MAX_COPIED: usize = 8 * 1024 * 1024;

/// How deep a patch may nest a document. What is stored must be read again, and the JSON reader stops at 128.
const MAX_DEPTH: usize = 100;

/// Applies a patch that may copy up to `most` bytes of memory, and at most [`MAX_COPIED`]. Returns how many it has copied. The document is
/// of no use after an error.
pub(super) fn apply(document: &mut Value, patch: Patch, most: usize) -> Result<usize, WriteError> {
    let mut copied = Size::default();
    for (index, operation) in patch.0.into_iter().enumerate() {
        let path = operation.path().to_string();
        let fails = |what: &str| WriteError::Patch(format!("operation {index} at `{}` {what}", path.escape_debug()));
        let brought = match &operation {
            PatchOperation::Add(add) => Size::of(&add.value),
            PatchOperation::Replace(replace) => Size::of(&replace.value),
            PatchOperation::Copy(copy) => document.pointer(copy.from.as_str()).map(Size::of).unwrap_or_default(),
            PatchOperation::Move(moved) => document.pointer(moved.from.as_str()).map(Size::of).unwrap_or_default(),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => Size::default(),
        };
        if path.matches('/').count() + brought.depth > MAX_DEPTH {
            return Err(fails("nests the document too deep"));
        }
        if matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_)) {
            copied.weight = copied.weight.saturating_add(brought.weight);
        }
        if copied.weight > most.min(MAX_COPIED) {
            return Err(fails("copies too much"));
        }
        json_patch::patch(document, &[operation]).map_err(|error| match error.kind {
            PatchErrorKind::TestFailed => WriteError::PatchTest(format!(
                "the test of operation {index} at `{}` did not hold",
                path.escape_debug()
            )),
            other => fails(&format!("fails: {other}")),
        })?;
    }
    Ok(copied.weight)
}

/// How large a value is.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The bytes of memory that it takes, about.
    weight: usize,
    /// 1 for a scalar, one more for each object or list around it.
    depth: usize,
}

impl Size {
    /// A value by itself: a list of a million nulls takes far more memory than text.
    const VALUE: usize = size_of::<Value>();
    /// A name of a field: its text elsewhere, and its place in the index of names.
    const NAME: usize = size_of::<String>() + 3 * size_of::<usize>();

    fn of(value: &Value) -> Size {
        let around = |own: usize, parts: &mut dyn Iterator<Item = Size>| {
            parts.fold(Size { weight: Self::VALUE + own, depth: 1 }, |all, part| Size {
                weight: all.weight.saturating_add(part.weight),
                depth: all.depth.max(part.depth + 1),
            })
        };
        match value {
            Value::String(text) => Size { weight: Self::VALUE + text.len(), depth: 1 },
            Value::Array(entries) => around(0, &mut entries.iter().map(Size::of)),
            Value::Object(fields) => {
                let names = fields.keys().map(|name| Self::NAME + name.len()).sum();
                around(names, &mut fields.values().map(Size::of))
            }
            _ => Size { weight: Self::VALUE, depth: 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: Value, patch: Value) -> Result<Value, WriteError> {
        let mut document = document;
        apply(&mut document, serde_json::from_value(patch).unwrap(), MAX_COPIED).map(|_| document)
    }

    #[test]
    fn operations_apply_in_order_and_errors_name_the_one() {
        let patch = json!([
            {"op": "add", "path": "/b", "value": [1]},
            {"op": "copy", "from": "/b", "path": "/c"},
            {"op": "move", "from": "/a", "path": "/b/-"},
            {"op": "test", "path": "/b", "value": [1, 0]},
            {"op": "replace", "path": "/c/0", "value": 2}
        ]);
        assert_eq!(patched(json!({"a": 0}), patch), Ok(json!({"b": [1, 0], "c": [2]})));
        let missing = json!([{"op": "add", "path": "/b", "value": 1}, {"op": "remove", "path": "/x"}]);
        let text = match patched(json!({}), missing) {
            Err(WriteError::Patch(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(text.starts_with("operation 1 at `/x` fails: "), "{text}");
        let test = json!([{"op": "test", "path": "/a", "value": 2}]);
        assert!(matches!(patched(json!({"a": 1}), test), Err(WriteError::PatchTest(_))));
    }

    #[test]
    fn copies_of_copies_are_bounded() {
        let double = json!({"op": "copy", "from": "/l", "path": "/l/-"});
        let text = match patched(json!({"l": ["x".repeat(100)]}), Value::from(vec![double; 50])) {
            Err(WriteError::Patch(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(text.ends_with("copies too much"), "{text}");
        // Nulls have no text, and each takes the memory of a value.
        let nulls = |count: usize| json!({"l": vec![Value::Null; count]});
        let double = json!([{"op": "copy", "from": "/l", "path": "/m"}]);
        assert!(patched(nulls(MAX_COPIED / size_of::<Value>() / 2), double.clone()).is_ok());
        assert!(matches!(patched(nulls(MAX_COPIED / size_of::<Value>() + 1), double), Err(WriteError::Patch(_))));
    }

    #[test]
    fn what_a_patch_has_copied_is_told_and_may_be_bounded_further() {
        let patch: Patch = serde_json::from_value(json!([{"op": "copy", "from": "/a", "path": "/b"}])).unwrap();
        let copied = apply(&mut json!({"a": "x".repeat(100)}), patch.clone(), MAX_COPIED).unwrap();
        assert_eq!(copied, size_of::<Value>() + 100);
        assert!(apply(&mut json!({"a": "x".repeat(100)}), patch.clone(), copied).is_ok());
        assert!(apply(&mut json!({"a": "x".repeat(100)}), patch, copied - 1).is_err());
    }

    #[test]
    fn a_patch_cannot_nest_what_the_reader_refuses() {
        let nest = json!({"op": "copy", "from": "/a", "path": "/a/a"});
        let deepen = |times| patched(json!({"a": {}}), Value::from(vec![nest.clone(); times]));
        let deep = deepen(90).unwrap().to_string();
        assert!(serde_json::from_str::<Value>(&deep).is_ok());
        assert!(matches!(deepen(200_000), Err(WriteError::Patch(_))));
        let far = format!("/a{}", "/a".repeat(200));
        let patch = json!([{"op": "add", "path": far, "value": 1}]);
        assert!(matches!(patched(json!({"a": {}}), patch), Err(WriteError::Patch(_))));
    }
}
