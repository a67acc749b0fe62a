//! Reports of plugins: documents that operators read in the console, and pipelines with an admin key.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{NamedSchema, OperationContext, OperationGroup};

/// A report of a plugin. It has two endpoints with the same query and the same answer: `GET` in the console, with a session, and `GET`
/// beside the other reports, with an admin key of the scope `report`.
#[derive(Debug)]
pub struct Report {
    /// Its path below the console's namespace, such as `/security/_api_report`.
    pub console_path: &'static str,
    /// Its path below that of reports, such as `/_report`.
    pub admin_path: &'static str,
    /// Its id, unique among the operations of all plugins; it stays the same over releases.
    pub id: &'static str,
    /// The operations of the console that the description shows it with.
    pub group: &'static OperationGroup,
    /// What it tells, in a few words.
    pub summary: &'static str,
    /// More than the summary says, CommonMark.
    pub description: &'static str,
    /// Its query parameters, each of which may be left out.
    pub query: &'static [ReportParameter],
    /// Makes it. It may take seconds: it runs in a thread that may block, and is given up after 30 seconds.
    pub make: MakeReport,
    /// What the answer is, in a sentence.
    pub answer_text: &'static str,
    /// The schema of the answer.
    pub answer: fn() -> Value,
    /// Schemas that the one of the answer refers to.
    pub schemas: &'static [NamedSchema],
}

/// Makes a report of the query's parameters.
///
/// # Errors
///
/// See [`NoReport`].
pub type MakeReport = fn(&BTreeMap<String, String>, &OperationContext<'_>) -> Result<Value, NoReport>;

/// Why there is no report: a sentence without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReport {
    /// What is wrong with a parameter of the query; 400.
    Query(String),
    /// What is not there yet; 503.
    NotYet(String),
}

/// A query parameter.
#[derive(Debug)]
pub struct ReportParameter {
    /// Its name.
    pub name: &'static str,
    /// Its schema.
    pub schema: fn() -> Value,
    /// What it is, in a sentence.
    pub about: &'static str,
}
