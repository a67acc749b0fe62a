//! The plugin's configuration.

use kit::{FieldProblem, checks, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::tools;
use crate::graphql::sdl;
use crate::{Endpoint, EndpointKind, Limits, Persisted};

/// The most endpoints.
const MAX_ENDPOINTS: usize = 32;
/// The longest schema, in bytes: 4 MiB.
const MAX_SCHEMA: usize = 4 << 20;
/// The most names of `allow`.
const MAX_ALLOWED: usize = 1000;
/// The largest `max_body_bytes`: 4 MiB.
const MAX_BODY: u64 = 4 << 20;
/// The most levels that documents are read to.
const MAX_DEPTH: u32 = 100;

/// Whether mismatches have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryGuardMode {
    /// They are reported.
    #[default]
    Monitor,
    /// The request is refused.
    Enforce,
}

/// What an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryEndpointKind {
    /// GraphQL over HTTP.
    Graphql,
    /// JSON-RPC 2.0.
    JsonRpc,
    /// The Model Context Protocol.
    Mcp,
}

/// What is done with queries that come as a reference to a stored document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersistedQueries {
    /// They are taken, and so are texts.
    #[default]
    Allow,
    /// They are refused.
    Deny,
    /// Only they are taken.
    Only,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueryGuardConfig {
    /// The endpoints.
    pub endpoints: Vec<EndpointConfig>,
    /// Whether mismatches have consequences.
    pub mode: QueryGuardMode,
    /// Refusals say what does not match.
    pub expose_errors: bool,
    /// Mismatches add to the score.
    pub contribute: bool,
    /// What a mismatch adds to the score: 0 to 100.
    pub violation_weight: f64,
    /// Operations are counted.
    pub inventory: bool,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointConfig {
    /// Its path.
    pub path: String,
    /// What it speaks.
    pub kind: QueryEndpointKind,
    /// GraphQL: the schema language. JSON-RPC: an object of methods with the JSON Schemas of their parameters. MCP: the answer of
    /// `tools/list`. Both as JSON.
    #[serde(default)]
    pub schema: Value,
    /// The most bytes of a body: 1 KiB to 4 MiB.
    #[serde(default = "body")]
    pub max_body_bytes: u64,
    /// The most requests of a batch: 0 to 1000; 0 refuses batches.
    #[serde(default = "batch")]
    pub max_batch: u32,
    /// GraphQL: the most bytes of a document: 256 to 1 MiB.
    #[serde(default = "document")]
    pub max_document_bytes: u64,
    /// GraphQL: the deepest nesting of fields: 1 to 100.
    #[serde(default = "depth")]
    pub max_depth: u32,
    /// GraphQL: the most fields of an operation or a fragment: 1 to 100000.
    #[serde(default = "fields")]
    pub max_fields: u32,
    /// GraphQL: the most aliases of an operation or a fragment: 0 to 10000.
    #[serde(default = "aliases")]
    pub max_aliases: u32,
    /// GraphQL: the most directives of an operation or a fragment: 0 to 10000.
    #[serde(default = "directives")]
    pub max_directives: u32,
    /// GraphQL: whether the schema may be asked for.
    #[serde(default)]
    pub introspection: bool,
    /// GraphQL: what persisted queries are taken.
    #[serde(default)]
    pub persisted_queries: PersistedQueries,
    /// JSON-RPC: the methods that are taken; MCP: the tools. Empty for all.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// An endpoint of a step, and what it needs beside.
#[derive(Debug)]
pub(super) struct CompiledEndpoint {
    /// The endpoint, without the hash of its schema.
    pub(super) endpoint: Endpoint,
    /// The compiled schema.
    pub(super) schema: Option<Vec<u8>>,
    /// What checks nothing.
    pub(super) warnings: Vec<String>,
}

fn body() -> u64 {
    256 << 10
}

fn batch() -> u32 {
    10
}

fn document() -> u64 {
    64 << 10
}

fn depth() -> u32 {
    15
}

fn fields() -> u32 {
    1000
}

fn aliases() -> u32 {
    30
}

fn directives() -> u32 {
    50
}

impl Default for QueryGuardConfig {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            mode: QueryGuardMode::Monitor,
            expose_errors: false,
            contribute: false,
            violation_weight: 30.0,
            inventory: true,
        }
    }
}

impl QueryGuardConfig {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// Everything that is wrong but the schemas.
    pub fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let mut problems: Vec<FieldProblem> = [
            checks::weight("/violation_weight", config.violation_weight),
            checks::count("/endpoints", config.endpoints.len(), MAX_ENDPOINTS),
        ]
        .into_iter()
        .flatten()
        .collect();
        for (place, endpoint) in config.endpoints.iter().enumerate() {
            problems.extend(endpoint.problems(&format!("/endpoints/{place}")));
        }
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

impl EndpointConfig {
    fn problems(&self, at: &str) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let wrong = |byte: u8| !byte.is_ascii_graphic() || b"?#*".contains(&byte);
        if !self.path.starts_with('/') || self.path.bytes().any(wrong) || self.path.len() > 1024 {
            let message = format!("`{}` is not a path", self.path.escape_debug());
            let problem = FieldProblem::new(format!("{at}/path"), message);
            problems.push(problem.expected("a path that begins with /, without query and patterns"));
        }
        problems.extend(checks::within(&format!("{at}/max_body_bytes"), self.max_body_bytes, 1024..=MAX_BODY));
        problems.extend(checks::within(&format!("{at}/max_batch"), self.max_batch, 0..=1000));
        problems.extend(checks::within(&format!("{at}/max_document_bytes"), self.max_document_bytes, 256..=1 << 20));
        problems.extend(checks::within(&format!("{at}/max_depth"), self.max_depth, 1..=MAX_DEPTH));
        problems.extend(checks::within(&format!("{at}/max_fields"), self.max_fields, 1..=100_000));
        problems.extend(checks::within(&format!("{at}/max_aliases"), self.max_aliases, 0..=10_000));
        problems.extend(checks::within(&format!("{at}/max_directives"), self.max_directives, 0..=10_000));
        problems.extend(checks::count(&format!("{at}/allow"), self.allow.len(), MAX_ALLOWED));
        for (place, name) in self.allow.iter().enumerate() {
            problems.extend(checks::text(&format!("{at}/allow/{place}"), name, 256));
        }
        if self.kind == QueryEndpointKind::Graphql && !self.allow.is_empty() {
            let message = "GraphQL has no list of operations".to_owned();
            let problem = FieldProblem::new(format!("{at}/allow"), message);
            problems.push(problem.expected("nothing; `persisted_queries: only` limits what is asked"));
        }
        problems
    }

    /// The endpoint of a step.
    pub(super) fn compile(&self, at: &str) -> Result<CompiledEndpoint, Vec<FieldProblem>> {
        let limits = Limits {
            body_bytes: self.max_body_bytes,
            batch: self.max_batch,
            document_bytes: self.max_document_bytes,
            depth: self.max_depth,
            fields: self.max_fields,
            aliases: self.max_aliases,
            directives: self.max_directives,
        };
        let kind = match self.kind {
            QueryEndpointKind::Graphql => EndpointKind::Graphql,
            QueryEndpointKind::JsonRpc => EndpointKind::JsonRpc,
            QueryEndpointKind::Mcp => EndpointKind::Mcp,
        };
        let persisted = match self.persisted_queries {
            PersistedQueries::Allow => Persisted::Allow,
            PersistedQueries::Deny => Persisted::Deny,
            PersistedQueries::Only => Persisted::Only,
        };
        let mut endpoint = Endpoint {
            path: self.path.clone(),
            kind: kind.into(),
            limits: Some(limits),
            introspection: self.introspection,
            persisted: persisted.into(),
            allowed: self.allow.clone(),
            ..Endpoint::default()
        };
        let problem = |message: String, expected: &str| {
            vec![FieldProblem::new(format!("{at}/schema"), message).expected(expected.to_owned())]
        };
        if self.schema.is_null() {
            return Ok(CompiledEndpoint { endpoint, schema: None, warnings: Vec::new() });
        }
        if self.schema.as_str().map_or_else(|| self.schema.to_string().len(), str::len) > MAX_SCHEMA {
            return Err(problem("the schema is too long".to_owned(), "at most 4 MiB"));
        }
        match (kind, &self.schema) {
            (EndpointKind::Graphql, Value::String(text)) => {
                let schema =
                    sdl::compile(text).map_err(|error| problem(error, "a schema in the schema language of GraphQL"))?;
                Ok(CompiledEndpoint { endpoint, schema: Some(schema), warnings: Vec::new() })
            }
            (EndpointKind::Graphql, _) => {
                Err(problem("this is no text".to_owned(), "a schema in the schema language of GraphQL"))
            }
            (kind, schema) => {
                let mcp = kind == EndpointKind::Mcp;
                let expected = if mcp {
                    "an object with `tools`, each with `name` and `inputSchema`"
                } else {
                    "an object with a JSON Schema for each method"
                };
                let compiled = tools::compile(schema, mcp).map_err(|error| problem(error, expected))?;
                endpoint.names = compiled.names;
                endpoint.closed = mcp;
                Ok(CompiledEndpoint { endpoint, schema: Some(compiled.image), warnings: compiled.warnings })
            }
        }
    }
}
