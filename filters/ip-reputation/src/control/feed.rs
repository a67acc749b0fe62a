//! `threat-feeds`: lists of addresses from elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{Headers, headers, required, tag, url, weight, within, word};
use kit::{Entity, FieldProblem, Head, References, number};

use super::catalog;

/// A list of addresses and ranges that is fetched periodically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreatFeed {
    /// False: it is neither fetched nor matched. Default true.
    pub enabled: bool,
    /// The address of the list. It is shown in full: put credentials into `headers`.
    pub url: String,
    /// The method of the fetch. Default GET.
    pub method: FetchMethod,
    /// Headers of the fetch; their values are secrets.
    pub headers: Headers,
    /// Whether redirects are followed, at most 5. Default true.
    pub follow_redirects: bool,
    /// Whether the list may be on a loopback address or a private one of IPv4. Default false.
    pub allow_private: bool,
    /// The format of the list. Default `cidr_lines`.
    pub format: FeedFormat,
    /// The position of the addresses in the list, as the format needs it.
    pub options: FeedOptions,
    /// The interval of fetches in seconds, 1 to 31536000. Default 3600.
    pub refresh_interval_seconds: u64,
    /// The timeout of a fetch in milliseconds, 1 to 600000. Default 30000.
    pub timeout_millis: u64,
    /// The maximum number of entries, 1 to 10000000. Default 2000000.
    pub max_entries: u64,
    /// What a match adds to the score, 0 to 100. Default 50.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// Whether a match denies regardless of the score. Default monitor.
    pub action: SourceAction,
    /// The tag of its signals; empty means `feed:<id>`.
    pub tag: String,
    /// The entry of the catalog that it was created from; null for none.
    pub catalog_ref: Option<String>,
}

/// The action of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceAction {
    /// It adds to the score.
    #[default]
    Monitor,
    /// It denies regardless of the score.
    Block,
}

/// The method of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FetchMethod {
    /// GET.
    #[default]
    Get,
    /// POST, without a body.
    Post,
}

/// The format of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedFormat {
    /// An address or CIDR in each line; `#` and `;` begin comments.
    #[default]
    CidrLines,
    /// A column of a table.
    Csv,
    /// A JSON array of strings, or of objects with a field.
    JsonArray,
    /// The values at a path through a JSON document.
    JsonPath,
    /// A MISP event or its attributes.
    Misp,
}

/// The position of the addresses in a list. Only the fields of the format may be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeedOptions {
    /// `csv`: the column, from 0, at most 1023. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// `csv`: the separator of columns, one character. Default a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<char>,
    /// `csv`: whether the first line is skipped. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_header: Option<bool>,
    /// `json_array`: the field of each object; if not set, the entries are strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// `json_path`: names with dots between them; `[]` behind a name means every entry of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

// === impl ThreatFeed ===

impl ThreatFeed {
    /// The tag of its signals.
    #[must_use]
    pub fn tag(&self, head: &Head) -> String {
        if self.tag.is_empty() { format!("feed:{}", head.id) } else { self.tag.clone() }
    }
}

impl Default for ThreatFeed {
    fn default() -> ThreatFeed {
        ThreatFeed {
            enabled: true,
            url: String::new(),
            method: FetchMethod::default(),
            headers: Headers::new(),
            follow_redirects: true,
            allow_private: false,
            format: FeedFormat::default(),
            options: FeedOptions::default(),
            refresh_interval_seconds: 3600,
            timeout_millis: 30_000,
            max_entries: 2_000_000,
            weight: 50.0,
            action: SourceAction::default(),
            tag: String::new(),
            catalog_ref: None,
        }
    }
}

impl Entity for ThreatFeed {
    const COLLECTION: &'static str = "threat-feeds";
    const KIND: &'static str = "threat-feed";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        if self.url.is_empty() {
            problems.extend(required("/url", !self.enabled, "an enabled feed is fetched from somewhere"));
        } else {
            problems.extend(url("/url", &self.url));
        }
        problems.extend(headers("/headers", &self.headers));
        problems.extend(self.options.check(self.format).into_iter().map(|problem| problem.under("/options")));
        problems.extend(within("/refresh_interval_seconds", self.refresh_interval_seconds, 1..=31_536_000));
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=600_000));
        problems.extend(within("/max_entries", self.max_entries, 1..=10_000_000));
        problems.extend(weight("/weight", self.weight));
        problems.extend(tag("/tag", &self.tag));
        if let Some(entry) = &self.catalog_ref {
            problems.extend(word("/catalog_ref", entry, &catalog::IDS));
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

// === impl FeedOptions ===

impl FeedOptions {
    fn check(&self, format: FeedFormat) -> Vec<FieldProblem> {
        let set = [
            ("column", self.column.is_some()),
            ("separator", self.separator.is_some()),
            ("skip_header", self.skip_header.is_some()),
            ("field", self.field.is_some()),
            ("path", self.path.is_some()),
        ];
        let (name, known): (_, &[&str]) = match format {
            FeedFormat::CidrLines => ("cidr_lines", &[]),
            FeedFormat::Csv => ("csv", &["column", "separator", "skip_header"]),
            FeedFormat::JsonArray => ("json_array", &["field"]),
            FeedFormat::JsonPath => ("json_path", &["path"]),
            FeedFormat::Misp => ("misp", &[]),
        };
        let mut problems = Vec::new();
        for (option, _) in set.iter().filter(|(option, is_set)| *is_set && !known.contains(option)) {
            let message = format!("the format `{name}` has no option `{option}`");
            let expected =
                if known.is_empty() { "no options".to_owned() } else { format!("one of `{}`", known.join("`, `")) };
            problems.push(FieldProblem::new(format!("/{option}"), message).expected(expected));
        }
        if let Some(column) = self.column {
            problems.extend(within("/column", column, 0..=1023));
        }
        if let Some(separator) = self.separator.filter(|separator| matches!(separator, '"' | '\r' | '\n')) {
            let message = format!("{separator:?} cannot be between columns");
            problems.push(FieldProblem::new("/separator", message).expected("one character such as `,` or `;`"));
        }
        if self.field.as_deref() == Some("") {
            problems.push(FieldProblem::new("/field", "a field has a name").expected("a name, or null"));
        }
        match &self.path {
            Some(path) if !is_path(path) => {
                let message = format!("`{}` is not a path", path.escape_debug());
                problems.push(FieldProblem::new("/path", message).expected("such as `data[].ipAddress`"));
            }
            None if format == FeedFormat::JsonPath => {
                let message = "the format `json_path` needs the path of the addresses";
                problems.push(FieldProblem::new("/path", message).expected("such as `data[].ipAddress`"));
            }
            _ => {}
        }
        problems
    }
}

/// Whether a text is a path such as `values[].properties.addressPrefixes[]`.
fn is_path(path: &str) -> bool {
    path.len() <= 512
        && path.split('.').all(|step| {
            let name = step.trim_end_matches("[]");
            !step.is_empty() && name.bytes().all(|byte| !byte.is_ascii_control() && !b"[] ".contains(&byte))
        })
}
