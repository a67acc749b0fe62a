//! Misses that are known: what passes though it should not, each with a reason.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

/// The list that is built in.
const LIST: &str = include_str!("../known-misses.yaml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    reason: String,
}

/// The list.
#[derive(Debug, Default)]
pub struct Known(Vec<Entry>);

impl Known {
    /// The list that is built in, or that of a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it: an entry without a reason, one that names no case, one that is there twice.
    pub fn read(file: Option<&Path>, ids: &BTreeSet<&str>) -> Result<Self, String> {
        let text = match file {
            None => LIST.to_owned(),
            Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        };
        let entries: Vec<Entry> = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        let mut seen = BTreeSet::new();
        for entry in &entries {
            if entry.reason.trim().is_empty() {
                return Err(format!("known misses: {} has no reason", entry.id));
            }
            if !ids.contains(entry.id.as_str()) {
                return Err(format!("known misses: there is no case {}", entry.id));
            }
            if !seen.insert(&entry.id) {
                return Err(format!("known misses: {} is listed twice", entry.id));
            }
        }
        Ok(Self(entries))
    }

    /// Why a case is on the list.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|entry| entry.id == id).map(|entry| entry.reason.trim())
    }
}
