//! What workers report of what APIs are asked for. The control plane believes none of it: every number has a bound there.

use prost::Message;

/// The kind of the reports of counts.
pub const INVENTORY: &str = "api-inventory";
/// The kind of the reports of payloads' shapes.
pub const DRIFT: &str = "api-drift";

/// What a worker has counted since its last report.
#[derive(Clone, PartialEq, Message)]
pub struct InventoryReport {
    /// A random number of the worker.
    #[prost(fixed64, tag = "1")]
    pub worker: u64,
    /// The number of the report, from 1 on. A report is sent twice, and counts once.
    #[prost(uint64, tag = "2")]
    pub sequence: u64,
    /// The ids of the contracts that the worker has.
    #[prost(string, repeated, tag = "3")]
    pub contracts: Vec<String>,
    /// What was counted, by route.
    #[prost(message, repeated, tag = "4")]
    pub routes: Vec<RouteCounts>,
}

/// What was counted on one route.
#[derive(Clone, PartialEq, Message)]
pub struct RouteCounts {
    /// The id of the route.
    #[prost(string, tag = "1")]
    pub route: String,
    /// Operations of the contract.
    #[prost(message, repeated, tag = "2")]
    pub operations: Vec<OperationCounts>,
    /// Paths outside of it.
    #[prost(message, repeated, tag = "3")]
    pub paths: Vec<PathCount>,
    /// All other paths outside of it.
    #[prost(message, optional, tag = "4")]
    pub others: Option<Counted>,
    /// Requests outside of the contract that enforcing would refuse.
    #[prost(message, optional, tag = "5")]
    pub outside: Option<WouldRefuse>,
}

/// What was counted of an operation.
#[derive(Clone, PartialEq, Message)]
pub struct OperationCounts {
    /// `GET`.
    #[prost(string, tag = "1")]
    pub method: String,
    /// As the contract has it.
    #[prost(string, tag = "2")]
    pub path: String,
    /// Calls and answers.
    #[prost(message, optional, tag = "3")]
    pub counted: Option<Counted>,
    /// What enforcing would refuse of them.
    #[prost(message, optional, tag = "4")]
    pub would_refuse: Option<WouldRefuse>,
}

/// What was counted of a path outside of the contract.
#[derive(Clone, PartialEq, Message)]
pub struct PathCount {
    /// `GET`.
    #[prost(string, tag = "1")]
    pub method: String,
    /// Folded.
    #[prost(string, tag = "2")]
    pub path: String,
    /// Calls and answers.
    #[prost(message, optional, tag = "3")]
    pub counted: Option<Counted>,
}

/// Calls and what was answered to them.
#[derive(Clone, PartialEq, Message)]
pub struct Counted {
    /// All calls.
    #[prost(uint64, tag = "1")]
    pub hits: u64,
    /// Those that a filter of the gateway has refused.
    #[prost(uint64, tag = "2")]
    pub refused: u64,
    /// The answers of the backend by class, 1xx first.
    #[prost(uint64, repeated, tag = "3")]
    pub classes: Vec<u64>,
    /// Those that were answered with 404.
    #[prost(uint64, tag = "4")]
    pub not_found: u64,
    /// How long ago the last call was, in milliseconds; stored, its time.
    #[prost(uint64, tag = "5")]
    pub age: u64,
    /// What the answers with a 2xx look like.
    #[prost(message, optional, tag = "6")]
    pub answer: Option<AnswerSeen>,
}

/// What answers look like.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AnswerSeen {
    /// The status.
    #[prost(uint32, tag = "1")]
    pub status: u32,
    /// The class of the length; 0 where it is not known.
    #[prost(uint32, tag = "2")]
    pub length: u32,
    /// The media type without parameters.
    #[prost(string, tag = "3")]
    pub media: String,
    /// Others looked different.
    #[prost(bool, tag = "4")]
    pub varies: bool,
}

/// Requests that enforcing would refuse.
#[derive(Clone, PartialEq, Message)]
pub struct WouldRefuse {
    /// How many.
    #[prost(uint64, tag = "1")]
    pub requests: u64,
    /// The hashes of their callers, the smallest ones.
    #[prost(fixed64, repeated, tag = "2")]
    pub callers: Vec<u64>,
    /// By the first mismatch of each.
    #[prost(message, repeated, tag = "3")]
    pub kinds: Vec<MismatchCount>,
}

/// Requests with a kind of mismatch, and one of them.
#[derive(Clone, PartialEq, Message)]
pub struct MismatchCount {
    /// The word of the mismatch.
    #[prost(string, tag = "1")]
    pub kind: String,
    /// How many.
    #[prost(uint64, tag = "2")]
    pub requests: u64,
    /// Where one was: `query:limit`, `body:/items/0`.
    #[prost(string, tag = "3")]
    pub place: String,
    /// What is expected there; never a value.
    #[prost(string, tag = "4")]
    pub detail: String,
    /// How long ago it was, in milliseconds; stored, its time.
    #[prost(uint64, tag = "5")]
    pub age: u64,
}

/// A payload that was looked at.
#[derive(Clone, PartialEq, Message)]
pub struct DriftSample {
    /// The id of the route.
    #[prost(string, tag = "1")]
    pub route: String,
    /// The method of the operation.
    #[prost(string, tag = "2")]
    pub method: String,
    /// Its path, as the contract has it.
    #[prost(string, tag = "3")]
    pub path: String,
    /// The status of the response; 0 for a request.
    #[prost(uint32, tag = "4")]
    pub status: u32,
    /// The media type without parameters.
    #[prost(string, tag = "5")]
    pub media: String,
    /// The shape of the body, where it was read.
    #[prost(message, optional, tag = "6")]
    pub shape: Option<Shape>,
}

/// The shape of values at one place: their types and the names of their fields, never a value.
#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    /// Bits of the types that were there, see [`Shape::NULL`] and the others.
    #[prost(uint32, tag = "1")]
    pub types: u32,
    /// How many values were looked at.
    #[prost(uint32, tag = "2")]
    pub values: u32,
    /// How many of them were objects.
    #[prost(uint32, tag = "3")]
    pub objects: u32,
    /// The fields of objects.
    #[prost(message, repeated, tag = "4")]
    pub fields: Vec<Field>,
    /// The items of arrays.
    #[prost(message, optional, boxed, tag = "5")]
    pub items: Option<Box<Shape>>,
    /// Objects have had further fields, which were not looked at.
    #[prost(bool, tag = "6")]
    pub more: bool,
}

/// A field.
#[derive(Clone, PartialEq, Message)]
pub struct Field {
    /// Its name; what looks like an identifier is folded.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it holds.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

impl Shape {
    /// `null`.
    pub const NULL: u32 = 1;
    /// `true`, `false`.
    pub const BOOLEAN: u32 = 2;
    /// An object.
    pub const OBJECT: u32 = 4;
    /// An array.
    pub const ARRAY: u32 = 8;
    /// A number with a fraction.
    pub const NUMBER: u32 = 16;
    /// A text.
    pub const STRING: u32 = 32;
    /// A number without a fraction.
    pub const INTEGER: u32 = 64;
}
