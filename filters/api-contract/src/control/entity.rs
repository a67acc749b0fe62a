//! `api-contracts`: what an API promises to take and to answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{required, text};
use kit::{Entity, FieldProblem, Head, References};

/// An OpenAPI document. One that does not compile is stored and checks nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiContract {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// The document, OpenAPI 3.0 or 3.1 as JSON or YAML; at most 67108864 bytes.
    pub spec: String,
    /// The prefix of the document's paths on the route; empty means the path of its first server.
    pub base_path: String,
}

// === impl ApiContract ===

impl ApiContract {
    /// The bytes of a document, at most.
    pub const MAX_BYTES: usize = 64 * 1024 * 1024;
}

impl Default for ApiContract {
    fn default() -> ApiContract {
        ApiContract { enabled: true, spec: String::new(), base_path: String::new() }
    }
}

impl Entity for ApiContract {
    const COLLECTION: &'static str = "api-contracts";
    const KIND: &'static str = "api-contract";
    /// A document as a text of JSON: with the escapes of its quotes and lines.
    const MAX_DOCUMENT: usize = Self::MAX_BYTES / 4 * 5;

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let present = !self.spec.trim().is_empty() || !self.enabled;
        problems.extend(required("/spec", present, "an enabled contract is a document"));
        problems.extend(text("/spec", &self.spec, ApiContract::MAX_BYTES));
        let wrong = |byte: u8| byte.is_ascii_control() || b"?# ".contains(&byte);
        if !self.base_path.is_empty() && (!self.base_path.starts_with('/') || self.base_path.bytes().any(wrong)) {
            let message = format!("`{}` is not a path", self.base_path.escape_debug());
            let problem = FieldProblem::new("/base_path", message);
            problems.push(problem.expected("a path that begins with /, without query and spaces, or nothing"));
        }
        problems.extend(text("/base_path", &self.base_path, 1024));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}
