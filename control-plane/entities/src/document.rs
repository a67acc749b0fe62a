//! How a document changes before it is read.

use serde_json::Value;

use super::change::{Precondition, Replacement, WriteError};
use super::{FieldProblem, Slot, patch};
use base::clock;

/// The fields that have a second spelling, that of the specification, and the one that they are shown in.
const SPELLINGS: [(&str, &str); 3] =
    [("max-keys", "max_keys"), ("max-records", "max_records"), ("fail-open", "fail_open")];

/// Gives the document the id of its path, and refuses another one.
pub(super) fn keep_id(document: &mut Value, id: &str) -> Result<(), WriteError> {
    let Some(fields) = document.as_object_mut() else {
        return Ok(());
    };
    match fields.get("id").filter(|found| !found.is_null()) {
        Some(found) if found.as_str() != Some(id) => {
            let message = format!("the path names `{id}`, the document {found}: an id cannot change");
            Err(WriteError::Invalid(vec![FieldProblem::new("/id", message).expected(format!("`{id}`"))]))
        }
        _ => {
            fields.insert("id".to_owned(), Value::from(id));
            Ok(())
        }
    }
}

/// Whether the precondition holds for the revision of the entity. None holds for an entity that is gone (RFC 9110, section 13.1.1).
pub(super) fn demand(precondition: Option<&Precondition>, current: Option<u64>) -> Result<(), WriteError> {
    let accepted = precondition.is_none_or(|accepts| current.is_some_and(|current| accepts(current)));
    if accepted { Ok(()) } else { Err(WriteError::Stale { current: current.unwrap_or(0) }) }
}

/// The document that is to be read in the place of the current one. The change is made on what is shown, so that no
/// patch finds a secret out, and what brings the mask back keeps the secret. With it comes what the change has copied within the document, in
/// bytes of memory: `most` at most.
pub(super) fn apply(slot: &Slot, replacement: Replacement, most: usize) -> Result<(Value, usize), WriteError> {
    let shown = slot.entity.shown();
    let mut document = shown.clone();
    let mut copied = 0;
    match replacement {
        Replacement::Whole(whole) => document = whole,
        Replacement::Merge(mut patch) => {
            respell(&mut patch, &shown);
            json_patch::merge(&mut document, &patch);
        }
        Replacement::Patch(patch) => copied = patch::apply(&mut document, patch, most)?,
    }
    let edited = kit::restore(&mut document, &shown, &slot.entity.stored());
    if edited.is_empty() { Ok((document, copied)) } else { Err(WriteError::Invalid(edited)) }
}

/// Names fields of a merge patch as they are shown: one that is written in its other spelling would otherwise be there twice.
fn respell(patch: &mut Value, shown: &Value) {
    let (Some(fields), Some(shown)) = (patch.as_object_mut(), shown.as_object()) else { return };
    for (other, name) in SPELLINGS {
        if shown.contains_key(name)
            && !fields.contains_key(name)
            && let Some(value) = fields.remove(other)
        {
            fields.insert(name.to_owned(), value);
        }
    }
    for (name, value) in fields {
        if let Some(shown) = shown.get(name) {
            respell(value, shown);
        }
    }
}

/// Keeps the times that the server notes in the metadata, whatever the document says about them.
pub(super) fn stamp(document: &mut Value, before: Option<&Slot>) {
    let now = Value::from(clock::rfc3339(clock::now_millis()));
    let created = before.and_then(|slot| slot.entity.head().metadata.get("created_at").cloned());
    let Some(fields) = document.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()));
    // Metadata of another type is left for the reader to find fault with.
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("created_at".to_owned(), created.unwrap_or_else(|| now.clone()));
        metadata.insert("updated_at".to_owned(), now);
    }
}
