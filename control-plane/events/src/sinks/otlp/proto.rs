//! The messages of OTLP that logs need, with the field numbers of opentelemetry-proto 1.9 (`opentelemetry/proto/logs/v1/logs.proto`,
//! `common/v1/common.proto`, `resource/v1/resource.proto`, `collector/logs/v1/logs_service.proto`). Fields that events do not fill are left
//! out. The crate `opentelemetry-proto` would bring the OpenTelemetry SDK.

use prost::{Message, Oneof};

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportLogsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceLogs {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeLogs {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) log_records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LogRecord {
    /// 0 where it is unknown.
    #[prost(fixed64, tag = "1")]
    pub(super) time_unix_nano: u64,
    #[prost(int32, tag = "2")]
    pub(super) severity_number: i32,
    #[prost(string, tag = "3")]
    pub(super) severity_text: String,
    #[prost(message, optional, tag = "5")]
    pub(super) body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "7")]
    pub(super) dropped_attributes_count: u32,
    #[prost(fixed64, tag = "11")]
    pub(super) observed_time_unix_nano: u64,
    #[prost(string, tag = "12")]
    pub(super) event_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// A value of any type; an empty one is null.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Typed", tags = "1, 2, 3, 4, 5, 6")]
    pub(super) value: Option<Typed>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Typed {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Map(KeyValueList),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<KeyValue>,
}

/// The body of an answer.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportLogsServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<ExportLogsPartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportLogsPartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_log_records: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

/// The body of an answer that reports an error: `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
}
