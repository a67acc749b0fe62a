//! What was replayed, and what of it could not be read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was replayed through what: the head of every output. Nothing in it comes from the clock, unless the caller puts
/// it in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// A line that tells this replay from others.
    pub title: String,
    /// The files of the recording, in the order of their replay.
    #[serde(default)]
    pub recordings: Vec<String>,
    /// What else matters (the filter, the snapshot, the version of the tool), in the order in which it is shown.
    #[serde(default)]
    pub facts: Vec<Fact>,
}

/// Something to know about a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is, a word or two.
    pub name: String,
    /// A line.
    pub value: String,
}

impl About {
    /// Adds a fact.
    pub fn fact(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.facts.push(Fact { name: name.into(), value: value.into() });
    }
}

/// An entry of a recording that could not be read, and so was not replayed. Shown as `FILE#NUMBER: why`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadEntryText {
    /// The recording's file and the entry's number in it (`FILE#NUMBER`).
    pub id: String,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl fmt::Display for BadEntryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.why)
    }
}
