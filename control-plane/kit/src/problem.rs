//! What is wrong with a document, and where.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// One fault of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldProblem {
    /// Where it is: a JSON pointer (RFC 6901) such as `/tiers/0/min_score`; empty for the document as a whole.
    pub pointer: String,
    /// What is wrong, in a sentence without its end.
    pub message: String,
    /// What would be right, such as `a boolean`, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl FieldProblem {
    /// A problem at a JSON pointer.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> FieldProblem {
        FieldProblem { pointer: pointer.into(), message: message.into(), expected: None }
    }

    /// Says what would be right.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> FieldProblem {
        self.expected = Some(expected.into());
        self
    }

    /// The same problem of a document that lies within another, under `prefix`.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> FieldProblem {
        self.pointer.insert_str(0, prefix);
        self
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)?;
        match &self.expected {
            Some(expected) => write!(f, " (expected {expected})"),
            None => Ok(()),
        }
    }
}

/// One token of a JSON pointer, escaped.
#[must_use]
pub fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
