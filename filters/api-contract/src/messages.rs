//! The compiled configuration of a step.

use prost::Message;

/// Configuration of an `api-contract` step.
#[derive(Clone, PartialEq, Message)]
pub struct ApiContractStep {
    /// The hash of the part with the compiled contract; empty where it does not compile.
    #[prost(bytes = "vec", tag = "1")]
    pub contract: Vec<u8>,
    /// The contract's name, for logs.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Why it does not compile; empty where it does.
    #[prost(string, tag = "3")]
    pub broken: String,
    /// Requests that do not match are refused.
    #[prost(bool, tag = "4")]
    pub enforce: bool,
    /// Refusals say what does not match.
    #[prost(bool, tag = "5")]
    pub expose_errors: bool,
    /// Mismatches add to the score.
    #[prost(bool, tag = "6")]
    pub contribute: bool,
    /// Query parameters that are not declared are mismatches.
    #[prost(bool, tag = "7")]
    pub reject_unknown_query_params: bool,
    /// The most bytes of a body that are checked.
    #[prost(uint64, tag = "8")]
    pub max_body_bytes: u64,
    /// Responses are checked as well.
    #[prost(bool, tag = "9")]
    pub validate_responses: bool,
    /// What a path or a method outside of the contract adds to the score, 0 to 100.
    #[prost(double, tag = "10")]
    pub unknown_path_weight: f64,
    /// What other mismatches add to the score, 0 to 100.
    #[prost(double, tag = "11")]
    pub violation_weight: f64,
    /// The API report counts calls.
    #[prost(bool, tag = "12")]
    pub inventory: bool,
    /// How much time is between two payloads of an operation that are looked at, in milliseconds; 0 for none.
    #[prost(uint64, tag = "13")]
    pub drift_sampling_millis: u64,
    /// The contract's id.
    #[prost(string, tag = "14")]
    pub id: String,
    /// The most records of the inventory on a worker.
    #[prost(uint32, tag = "15")]
    pub max_records: u32,
}
