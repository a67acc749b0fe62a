//! How an operation of a plugin changes entities.

use serde_json::Value;

/// Writes entities as the API does: the result is checked and admitted.
pub trait EntityWriter {
    /// Makes all edits, or none. Blocks until they are durable.
    ///
    /// # Errors
    /// See [`EditError`]. Nothing has changed then.
    fn write(&self, edits: Vec<EntityEdit>) -> Result<(), EditError>;
}

/// A change of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityEdit {
    /// Its collection, such as `waf-configs`.
    pub collection: &'static str,
    /// Its id.
    pub id: String,
    /// The change.
    pub edit: Edit,
}

/// A change of an entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// It is new: its document, with its id.
    Create(Value),
    /// Fields of it change.
    Merge {
        /// A JSON merge patch (RFC 7396).
        patch: Value,
        /// The revision that the patch was made for.
        seen: u64,
    },
}

/// Why entities were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// Another writer has changed one of them meanwhile.
    Conflict,
    /// They are not admitted; for people.
    Refused(String),
    /// The store failed; for people.
    Failed(String),
}

/// The writer of an operation, and who it writes for.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// The writer.
    pub writer: &'a dyn EntityWriter,
    /// The name of the operator who calls.
    pub operator: &'a str,
}
