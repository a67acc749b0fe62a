//! The credentials audit of a route, as the report shows it.

use credentials::RouteAudit;
use serde_json::{Value, json};

/// What checks credentials on a route, and what is wrong with that.
#[derive(Debug, Default)]
pub(super) struct Auth {
    /// The plugins that check credentials.
    pub(super) checks: Vec<Value>,
    /// What the audit has found; each has a `severity`.
    pub(super) findings: Vec<Value>,
}

/// The severities, the gravest first.
pub(super) const SEVERITIES: [&str; 4] = ["high", "medium", "low", "info"];

impl Auth {
    /// What the audit of a route says.
    pub(super) fn of(audit: &RouteAudit) -> Auth {
        Auth {
            checks: audit.checks.iter().map(|check| json!(check)).collect(),
            findings: audit.findings.iter().map(|finding| json!(finding)).collect(),
        }
    }

    /// How many findings have a severity.
    pub(super) fn count(&self, severity: &str) -> usize {
        self.findings.iter().filter(|finding| finding.get("severity").is_some_and(|own| own == severity)).count()
    }

    /// As the report shows it.
    pub(super) fn shown(&self) -> Value {
        json!({ "checks": self.checks, "findings": self.findings })
    }
}
