//! The list of tests that are known to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Tests whose failure does not count, each with its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignore(BTreeMap<String, String>);

/// One test of the list, after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The test, as `RULE-NUMBER`.
    pub test: String,
    /// Why it may fail.
    pub reason: String,
}

impl Ignore {
    /// Reads a list: a line is a test and, behind a colon, the reason; `#` begins a comment line.
    ///
    /// # Errors
    ///
    /// The line that has no reason, or names a test twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let split = line.split_once(':').map(|(test, reason)| (test.trim(), reason.trim()));
            let Some((test, reason)) = split.filter(|(test, reason)| !test.is_empty() && !reason.is_empty()) else {
                return Err(format!("line {}: write `RULE-NUMBER: the reason`, not `{line}`", number + 1));
            };
            if list.insert(test.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("line {}: {test} is there already", number + 1));
            }
        }
        Ok(Self(list))
    }

    /// Reads a list from a file.
    ///
    /// # Errors
    ///
    /// As [`Ignore::parse`], and a file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    /// Why a test may fail.
    #[must_use]
    pub fn reason(&self, test: &str) -> Option<&str> {
        self.0.get(test).map(String::as_str)
    }

    /// The entries of tests that ran and passed.
    #[must_use]
    pub fn stale(&self, passed: &BTreeSet<String>) -> Vec<String> {
        self.0.keys().filter(|test| passed.contains(*test)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_reasons_and_stale_entries_show() {
        let list = Ignore::parse("# of the server\n1-2: it: merges\n\n 3-4 : late\n").unwrap();
        assert_eq!((list.reason("1-2"), list.reason("9-9")), (Some("it: merges"), None));
        assert_eq!(list.stale(&BTreeSet::from(["3-4".to_owned(), "5-6".to_owned()])), ["3-4"]);
        assert!(Ignore::parse("1-2").unwrap_err().contains("line 1"));
        assert!(Ignore::parse("1-2: a\n1-2: b").unwrap_err().contains("line 2"));
    }
}
