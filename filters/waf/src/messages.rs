//! The compiled configuration of a step.

use prost::Message;

/// Configuration of a `waf` step.
#[derive(Clone, PartialEq, Message)]
pub struct WafStep {
    /// Id of the WAF config.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Name of the WAF config.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Hash of the part that holds the rule program.
    #[prost(bytes = "vec", tag = "3")]
    pub program: Vec<u8>,
    /// False: matches are reported and contribute, nothing is denied.
    #[prost(bool, tag = "4")]
    pub block: bool,
    /// Matches become signals.
    #[prost(bool, tag = "5")]
    pub contribute: bool,
    /// Weight of the signal for a request that the rules deny.
    #[prost(double, tag = "6")]
    pub block_weight: f64,
    /// Weight of the signal for a match that denies nothing.
    #[prost(double, tag = "7")]
    pub match_weight: f64,
    /// Request bodies are inspected.
    #[prost(bool, tag = "8")]
    pub inspect_input_body: bool,
    /// The most bytes of a request body that are inspected.
    #[prost(uint64, tag = "9")]
    pub input_body_limit: u64,
    /// Response bodies are inspected.
    #[prost(bool, tag = "10")]
    pub inspect_output_body: bool,
    /// The most bytes of a response body that are inspected.
    #[prost(uint64, tag = "11")]
    pub output_body_limit: u64,
    /// A request body over its limit is refused with 413; otherwise its beginning is inspected.
    #[prost(bool, tag = "12")]
    pub reject_oversize: bool,
    /// The most bytes that a compressed request body may grow to.
    #[prost(uint64, tag = "13")]
    pub decompressed_input_body_limit: u64,
    /// The most that a compressed request body may grow by, as a ratio.
    #[prost(uint32, tag = "14")]
    pub max_input_compression_ratio: u32,
    /// A request body that cannot be decoded is inspected as it is; otherwise it is refused.
    #[prost(bool, tag = "15")]
    pub inspect_undecodable: bool,
    /// A request that the rule engine could not judge, because it met a limit of its own, goes on; otherwise it is
    /// answered with 503.
    #[prost(bool, tag = "16")]
    pub fail_open: bool,
    /// XML bodies may have a document type that declares something or refers to another file.
    #[prost(bool, tag = "17")]
    pub allow_xml_doctype: bool,
    /// The most bytes of a multipart request body, its files included; the content of files does not count for
    /// `input_body_limit`. 0 in configurations from before this field: then `input_body_limit` is the limit of both.
    #[prost(uint64, tag = "18")]
    pub input_files_limit: u64,
    /// What the rules may cost in one exchange; without it the engine's own ceilings apply.
    #[prost(message, optional, tag = "24")]
    pub budget: Option<WafBudget>,
    /// A rule looks up where addresses are.
    #[prost(bool, tag = "25")]
    pub places: bool,
    /// The zones of DNS blocklists that rules name, of those that are asked.
    #[prost(message, repeated, tag = "26")]
    pub zones: Vec<WafZone>,
}

/// A zone of a DNS blocklist.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WafZone {
    /// Its name, in lower case without a dot at its end.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What verdicts call it by.
    #[prost(string, tag = "2")]
    pub key: String,
}

/// What the rules may cost in one exchange: the request, and its response as much work again and a quarter of the memory.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WafBudget {
    /// Units of work that every request may take; a unit is about one instruction.
    #[prost(uint64, tag = "1")]
    pub work: u64,
    /// How many more for each byte of the target, the headers and the body, decompressed.
    #[prost(uint64, tag = "2")]
    pub work_per_byte: u64,
    /// Bytes of memory that every request may take.
    #[prost(uint64, tag = "3")]
    pub memory: u64,
    /// How many more for each of these bytes.
    #[prost(uint64, tag = "4")]
    pub memory_per_byte: u64,
}
