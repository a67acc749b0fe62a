//! The plugin's configuration.

use files::json::Field;
use files::{DENIED_EXTENSIONS, DENIED_TYPES, is_type_word, type_words};
use kit::{FieldProblem, checks, did_you_mean, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{JsonField, UploadStep};

/// The largest `body_limit`, in bytes: 32 MiB.
const MAX_BODY_LIMIT: u64 = 32 << 20;
/// The most entries of a list.
const MAX_ENTRIES: usize = 512;
/// The most entries of `json_fields`.
const MAX_JSON_FIELDS: usize = 32;
/// The longest extension, in bytes.
const MAX_EXTENSION: usize = 32;
/// The most files that a configuration may allow.
const MAX_FILES: u32 = 1000;

/// Whether findings have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadMode {
    /// The request is refused.
    #[default]
    Enforce,
    /// They are reported.
    Monitor,
}

/// What is done about what cannot be read or scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectAction {
    /// The request is refused.
    #[default]
    Reject,
    /// It goes on.
    Allow,
}

/// A field of JSON that holds a file in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonFieldConfig {
    /// Its path: keys joined by `.`, `[]` behind a key for each element of an array (`files[].content`).
    pub path: String,
    /// The key of the same object that has the file's name; empty for none.
    #[serde(default)]
    pub name: String,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UploadGuardConfig {
    /// Whether findings have consequences.
    pub mode: UploadMode,
    /// The extensions that files may have; empty for all that are not denied.
    pub allowed_extensions: Vec<String>,
    /// The extensions that are refused; absent for the usual 46, without those that `allowed_extensions` has.
    pub denied_extensions: Option<Vec<String>>,
    /// The types that files may have: families and formats; empty for all that are not denied.
    pub allowed_types: Vec<String>,
    /// The types that are refused; absent for `executable`, `script`, `html`, without those that `allowed_types` has.
    pub denied_types: Option<Vec<String>>,
    /// Whether the content must be what the extension and the media type say.
    pub check_mismatch: bool,
    /// The most files of a request: 1 to 1000.
    pub max_files: u32,
    /// The longest file in bytes; 0 for any length.
    pub max_file_size: u64,
    /// How deep archives may lie in each other: 1 to 10.
    pub archive_max_depth: u32,
    /// The most entries of the archives of a request: 1 to 1000000.
    pub archive_max_entries: u64,
    /// The most bytes that the archives of a request may expand to: 1 KiB to 64 GiB.
    pub archive_max_expanded_size: u64,
    /// The most bytes that an archive may expand to for each of its own: 1 to 10000.
    pub archive_max_ratio: u64,
    /// What is done about archives that cannot be read.
    pub unreadable_archive_action: RejectAction,
    /// Whether extensions and types of the entries of archives are checked as those of files.
    pub check_archive_entry_extensions: bool,
    /// The most bytes of a body that are inspected: 1 KiB to 32 MiB.
    pub body_limit: u64,
    /// The scanner that files are sent to.
    pub scanner: Option<String>,
    /// What is done where the scanner does not answer.
    pub scan_failure_action: RejectAction,
    /// Fields of JSON that hold files in base64, at most 32.
    pub json_fields: Vec<JsonFieldConfig>,
    /// What a reason that shows an attack adds to the score: 0 to 100.
    pub weight: f64,
}

impl Default for UploadGuardConfig {
    fn default() -> Self {
        Self {
            mode: UploadMode::Enforce,
            allowed_extensions: Vec::new(),
            denied_extensions: None,
            allowed_types: Vec::new(),
            denied_types: None,
            check_mismatch: true,
            max_files: 100,
            max_file_size: 0,
            archive_max_depth: 3,
            archive_max_entries: 10_000,
            archive_max_expanded_size: 268_435_456,
            archive_max_ratio: 100,
            unreadable_archive_action: RejectAction::Reject,
            check_archive_entry_extensions: false,
            body_limit: 1_048_576,
            scanner: None,
            scan_failure_action: RejectAction::Reject,
            json_fields: Vec::new(),
            weight: 20.0,
        }
    }
}

impl UploadGuardConfig {
    /// Reads a configuration and checks it.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let denied_extensions = self.denied_extensions.as_deref().unwrap_or_default();
        let denied_types = self.denied_types.as_deref().unwrap_or_default();
        let fields = self.json_fields.iter().enumerate().filter_map(|(place, field)| {
            let why = Field::parse(&field.path, &field.name).err()?;
            let problem = FieldProblem::new(format!("/json_fields/{place}/path"), why);
            Some(problem.expected("the path of a field, such as `files[].content`"))
        });
        [
            check_extensions("/allowed_extensions", &self.allowed_extensions).err(),
            check_extensions("/denied_extensions", denied_extensions).err(),
            check_types("/allowed_types", &self.allowed_types),
            check_types("/denied_types", denied_types),
            checks::within("/max_files", self.max_files, 1..=MAX_FILES),
            checks::within("/archive_max_depth", self.archive_max_depth, 1..=10),
            checks::within("/archive_max_entries", self.archive_max_entries, 1..=1_000_000),
            checks::within("/archive_max_expanded_size", self.archive_max_expanded_size, 1024..=64 << 30),
            checks::within("/archive_max_ratio", self.archive_max_ratio, 1..=10_000),
            checks::within("/body_limit", self.body_limit, 1024..=MAX_BODY_LIMIT),
            checks::count("/json_fields", self.json_fields.len(), MAX_JSON_FIELDS),
            checks::weight("/weight", self.weight),
        ]
        .into_iter()
        .flatten()
        .chain(fields)
        .collect()
    }

    /// What has no effect in it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let both = |allowed: &[String], denied: &Option<Vec<String>>| {
            let denied = denied.as_deref().unwrap_or_default();
            allowed.iter().filter(|word| denied.contains(word)).cloned().collect::<Vec<_>>().join("`, `")
        };
        let lists = [
            ("extensions", both(&self.allowed_extensions, &self.denied_extensions)),
            ("types", both(&self.allowed_types, &self.denied_types)),
        ];
        let named = lists.into_iter().filter(|(_, words)| !words.is_empty());
        let long = (self.max_file_size > self.body_limit).then(|| {
            "the upload guard's `max_file_size` is above its `body_limit`: of files in forms and JSON no more than that is measured"
                .to_owned()
        });
        named
            .map(|(what, words)| {
                format!("the upload guard allows and denies the {what} `{words}`; files that have them are refused")
            })
            .chain(long)
            .collect()
    }

    /// The step.
    pub(super) fn step(&self) -> UploadStep {
        let without = |usual: &[&str], allowed: &[String]| {
            usual
                .iter()
                .filter(|word| !allowed.iter().any(|own| own == **word))
                .map(|word| (*word).to_owned())
                .collect()
        };
        let denied_extensions = self.denied_extensions.clone();
        let denied_types = self.denied_types.clone();
        let field = |field: &JsonFieldConfig| JsonField { path: field.path.clone(), name: field.name.clone() };
        UploadStep {
            monitor: self.mode == UploadMode::Monitor,
            body_limit: self.body_limit,
            allowed_extensions: self.allowed_extensions.clone(),
            denied_extensions: denied_extensions
                .unwrap_or_else(|| without(&DENIED_EXTENSIONS, &self.allowed_extensions)),
            allowed_types: self.allowed_types.clone(),
            denied_types: denied_types.unwrap_or_else(|| without(&DENIED_TYPES, &self.allowed_types)),
            check_mismatch: self.check_mismatch,
            max_files: self.max_files,
            max_file_size: self.max_file_size,
            archive_max_depth: self.archive_max_depth,
            archive_max_entries: self.archive_max_entries,
            archive_max_expanded_size: self.archive_max_expanded_size,
            archive_max_ratio: self.archive_max_ratio,
            reject_unreadable: self.unreadable_archive_action == RejectAction::Reject,
            check_entries: self.check_archive_entry_extensions,
            json_fields: self.json_fields.iter().map(field).collect(),
            weight: self.weight,
            scanner: self.scanner.clone().unwrap_or_default(),
            scan_millis: 0,
            allow_unscanned: self.scan_failure_action == RejectAction::Allow,
        }
    }
}

/// Whether all words are extensions: lower-case letters and digits, without a dot in front.
pub(super) fn check_extensions(pointer: &str, words: &[String]) -> Result<(), FieldProblem> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-+".contains(&byte);
    let wrong = words
        .iter()
        .enumerate()
        .find(|(_, word)| !(1..=MAX_EXTENSION).contains(&word.len()) || !word.bytes().all(plain));
    if let Some((place, word)) = wrong {
        let message = format!("`{}` is no extension", word.escape_debug());
        return Err(FieldProblem::new(format!("{pointer}/{place}"), message)
            .expected("lower-case letters and digits without the dot, such as `pdf`"));
    }
    checks::count(pointer, words.len(), MAX_ENTRIES).map_or(Ok(()), Err)
}

fn check_types(pointer: &str, words: &[String]) -> Option<FieldProblem> {
    let unknown = words.iter().enumerate().find(|(_, word)| !is_type_word(word));
    if let Some((place, word)) = unknown {
        let hint = did_you_mean(word, type_words()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        let message = format!("there is no type `{}`{hint}", word.escape_debug());
        let expected = "a family such as `image`, or a format such as `png`";
        return Some(FieldProblem::new(format!("{pointer}/{place}"), message).expected(expected));
    }
    checks::count(pointer, words.len(), MAX_ENTRIES)
}
