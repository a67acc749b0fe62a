//! The compiled configuration of a step, and the reports of what endpoints are asked for.

use prost::Message;

/// Configuration of a `query-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct QueryGuardStep {
    /// The endpoints, in the order of the configuration: the first one whose path fits counts.
    #[prost(message, repeated, tag = "1")]
    pub endpoints: Vec<Endpoint>,
    /// Requests that do not match are refused.
    #[prost(bool, tag = "2")]
    pub enforce: bool,
    /// Refusals say what does not match.
    #[prost(bool, tag = "3")]
    pub expose_errors: bool,
    /// Mismatches add to the score.
    #[prost(bool, tag = "4")]
    pub contribute: bool,
    /// What a mismatch adds to the score, 0 to 100.
    #[prost(double, tag = "5")]
    pub violation_weight: f64,
    /// Operations are counted and reported.
    #[prost(bool, tag = "6")]
    pub inventory: bool,
}

/// One endpoint.
#[derive(Clone, PartialEq, Message)]
pub struct Endpoint {
    /// Its path, as the configuration has it.
    #[prost(string, tag = "1")]
    pub path: String,
    /// What it speaks.
    #[prost(enumeration = "EndpointKind", tag = "2")]
    pub kind: i32,
    /// Its limits.
    #[prost(message, optional, tag = "3")]
    pub limits: Option<Limits>,
    /// The hash of the part with the schema: a [`Schema`] of GraphQL, or a contract with an operation for each tool or method. Empty
    /// without a schema.
    #[prost(bytes = "vec", tag = "4")]
    pub schema: Vec<u8>,
    /// GraphQL: introspection is allowed.
    #[prost(bool, tag = "5")]
    pub introspection: bool,
    /// GraphQL: what persisted queries are taken.
    #[prost(enumeration = "Persisted", tag = "6")]
    pub persisted: i32,
    /// JSON-RPC: the methods that are allowed, a trailing `*` for a prefix; empty for all. MCP: the tools.
    #[prost(string, repeated, tag = "7")]
    pub allowed: Vec<String>,
    /// JSON-RPC and MCP: the names whose parameters or arguments have a schema; their place is that of the operation in the contract.
    #[prost(string, repeated, tag = "8")]
    pub names: Vec<String>,
    /// MCP: only tools of `names` are called.
    #[prost(bool, tag = "9")]
    pub closed: bool,
}

/// What an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum EndpointKind {
    /// GraphQL over HTTP.
    Graphql = 0,
    /// JSON-RPC 2.0.
    JsonRpc = 1,
    /// The Model Context Protocol, streamable HTTP.
    Mcp = 2,
}

/// What is done with queries that come as a reference to a stored document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Persisted {
    /// They are taken, and so are texts.
    Allow = 0,
    /// They are refused.
    Deny = 1,
    /// Only they are taken.
    Only = 2,
}

/// Limits of an endpoint.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Limits {
    /// The most bytes of a body.
    #[prost(uint64, tag = "1")]
    pub body_bytes: u64,
    /// The most requests of a batch; 0 refuses batches.
    #[prost(uint32, tag = "2")]
    pub batch: u32,
    /// The most bytes of a GraphQL document.
    #[prost(uint64, tag = "3")]
    pub document_bytes: u64,
    /// The deepest nesting of fields.
    #[prost(uint32, tag = "4")]
    pub depth: u32,
    /// The most fields of an operation or a fragment, fragments expanded.
    #[prost(uint32, tag = "5")]
    pub fields: u32,
    /// The most aliases.
    #[prost(uint32, tag = "6")]
    pub aliases: u32,
    /// The most directives.
    #[prost(uint32, tag = "7")]
    pub directives: u32,
}

/// A GraphQL schema.
#[derive(Clone, PartialEq, Message)]
pub struct Schema {
    /// The types, sorted by their names.
    #[prost(message, repeated, tag = "1")]
    pub types: Vec<TypeRecord>,
    /// The types of queries, mutations and subscriptions; empty where there is none.
    #[prost(string, repeated, tag = "2")]
    pub roots: Vec<String>,
    /// The directives that documents may have.
    #[prost(string, repeated, tag = "3")]
    pub directives: Vec<String>,
}

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct TypeRecord {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it is.
    #[prost(enumeration = "TypeKind", tag = "2")]
    pub kind: i32,
    /// Fields of objects, interfaces and input objects, sorted by their names.
    #[prost(message, repeated, tag = "3")]
    pub fields: Vec<FieldRecord>,
    /// Values of an enum, sorted.
    #[prost(string, repeated, tag = "4")]
    pub values: Vec<String>,
}

/// A field, or an argument.
#[derive(Clone, PartialEq, Message)]
pub struct FieldRecord {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its type, as `[ID!]!`.
    #[prost(string, tag = "2")]
    pub of: String,
    /// It has a default.
    #[prost(bool, tag = "3")]
    pub defaulted: bool,
    /// Arguments of a field, sorted by their names.
    #[prost(message, repeated, tag = "4")]
    pub arguments: Vec<FieldRecord>,
}

/// What a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum TypeKind {
    /// A scalar.
    Scalar = 0,
    /// An object.
    Object = 1,
    /// An interface.
    Interface = 2,
    /// A union.
    Union = 3,
    /// An enum.
    Enum = 4,
    /// An input object.
    Input = 5,
}

/// The kind of [`OperationsSeen`] reports.
pub const OPERATIONS: &str = "query_operations";

/// What the endpoints of a route were asked for since the last report of a worker.
#[derive(Clone, PartialEq, Message)]
pub struct OperationsSeen {
    /// The operations.
    #[prost(message, repeated, tag = "1")]
    pub operations: Vec<OperationSeen>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct OperationSeen {
    /// The route.
    #[prost(string, tag = "1")]
    pub route: String,
    /// The path of the endpoint.
    #[prost(string, tag = "2")]
    pub path: String,
    /// `query`, `mutation`, `subscription`, `persisted`, `method`, or `tool`.
    #[prost(string, tag = "3")]
    pub kind: String,
    /// Its name.
    #[prost(string, tag = "4")]
    pub name: String,
    /// How often.
    #[prost(uint64, tag = "5")]
    pub count: u64,
    /// How often with a mismatch.
    #[prost(uint64, tag = "6")]
    pub mismatches: u64,
}
