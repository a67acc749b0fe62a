//! The readings of which the two detectors are made, one by one: for comparisons with libinjection.

pub use super::html::Handlers;
use super::html::{self, CONTEXTS};
use super::sql::{self, Dialect, Verdict};

/// A reading of a value as SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlReading {
    /// A letter for each token that is left, at most five.
    pub fingerprint: Vec<u8>,
    /// Whether it is one of an injection.
    pub is_injection: bool,
}

/// Reads a value as SQL from its beginning: in a string that `quote` has begun, as MySQL does or other databases, and as
/// version 3 of libinjection does or version 4.
pub fn read_sql(value: &[u8], quote: Option<u8>, mysql: bool, version_3: bool) -> SqlReading {
    let (fingerprint, is_injection) = sql::reading(value, quote, Dialect { mysql, version_3 });
    SqlReading { fingerprint: fingerprint.letters().to_vec(), is_injection }
}

/// What libinjection as a whole answers for SQL.
pub fn is_sql_to_libinjection(value: &[u8]) -> bool {
    sql::is_injection_to_libinjection(value)
}

/// What `@detectSQLi` answers; `None` if it gives up. With the steps that it took.
pub fn is_sql(value: &[u8]) -> (Option<bool>, usize) {
    let (verdict, cost) = sql::detect(value, u64::MAX);
    let answer = match verdict {
        Verdict::Harmless => Some(false),
        Verdict::Injection(_) => Some(true),
        Verdict::GaveUp => None,
    };
    (answer, cost.steps)
}

/// How many contexts a value is read in as HTML: a page, a tag, and an attribute in each of three quotes.
pub const HTML_CONTEXTS: usize = CONTEXTS.len();

/// The tokens of a value as HTML in one context: a letter for what each is, and its length.
pub fn html_tokens(value: &[u8], context: usize) -> Vec<(u8, usize)> {
    CONTEXTS.get(context).map(|context| html::tokens(value, *context)).unwrap_or_default()
}

/// Whether a value runs a script in one context.
pub fn is_script_in(value: &[u8], context: usize, handlers: Handlers) -> bool {
    CONTEXTS.get(context).is_some_and(|context| html::detect_in(value, *context, handlers))
}

/// What `@detectXSS` answers.
pub fn is_script(value: &[u8]) -> bool {
    html::detect(value).0
}
