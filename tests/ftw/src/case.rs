//! The suite's files, as far as they matter here.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// One file: the tests of one rule.
#[derive(Debug, Clone, Deserialize)]
pub struct File {
    /// The rule.
    pub rule_id: u64,
    /// Its tests.
    #[serde(default)]
    pub tests: Vec<Test>,
}

/// One test: stages that all have to be right.
#[derive(Debug, Clone, Deserialize)]
pub struct Test {
    /// Its number in the file.
    pub test_id: u64,
    /// What it is about.
    #[serde(default)]
    pub desc: String,
    /// Its exchanges in their order.
    pub stages: Vec<Stage>,
}

/// One exchange of a test.
#[derive(Debug, Clone, Deserialize)]
pub struct Stage {
    /// The request.
    pub input: Input,
    /// What is expected.
    #[serde(default)]
    pub output: Output,
}

/// A request.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Input {
    /// `GET` where it is missing.
    pub method: Option<String>,
    /// `/` where it is missing.
    pub uri: Option<String>,
    /// `HTTP/1.1` where it is missing.
    pub version: Option<String>,
    /// In their order.
    #[serde(default, deserialize_with = "pairs")]
    pub headers: Vec<(String, String)>,
    /// The body.
    pub data: Option<String>,
    /// `false` sends nothing but what is written here.
    pub autocomplete_headers: Option<bool>,
    /// The whole request as it is on the wire, in base64; everything else is then left out of account.
    pub encoded_request: Option<String>,
}

/// What is expected.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Output {
    /// Of the log.
    #[serde(default)]
    pub log: Log,
    /// The status that the client gets.
    pub status: Option<u16>,
    /// The server is expected not to answer.
    pub expect_error: Option<bool>,
}

/// What is expected of the log.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Log {
    /// Rules that are logged.
    #[serde(default)]
    pub expect_ids: Vec<u64>,
    /// Rules that are not logged.
    #[serde(default)]
    pub no_expect_ids: Vec<u64>,
    /// A pattern that a line of the log matches.
    pub match_regex: Option<String>,
    /// A pattern that no line of the log matches.
    pub no_match_regex: Option<String>,
}

/// Reads a file.
///
/// # Errors
///
/// It is no YAML, or of another shape; with its name, and line and column as far as they are known.
pub fn read(path: &Path) -> Result<File, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the text of a file.
///
/// # Errors
///
/// As [`read`].
pub fn parse(text: &str) -> Result<File, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// All YAML files under a folder, sorted.
///
/// # Errors
///
/// A folder that cannot be listed.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("yaml" | "yml") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A map as pairs in their order; a name may come twice.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("headers by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, Option<String>>()? {
                pairs.push((name, value.unwrap_or_default()));
            }
            Ok(pairs)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(Pairs)
}
