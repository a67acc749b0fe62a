//! Events as log records of OpenTelemetry.

use serde_json::{Map, Value};

use super::attributes::Attributes;
use super::proto::{
    ExportLogsServiceRequest, InstrumentationScope, KeyValue, LogRecord, Resource, ResourceLogs, ScopeLogs,
};
use super::value::text;
use crate::queue::Line;
use crate::sinks::ecs;
use crate::sinks::facts::{Facts, Level};

/// The scope of all records.
const SCOPE: &str = "palisade.events";
const NANOS_PER_MILLI: u64 = 1_000_000;

/// What the records come from: this process.
pub(super) fn resource(host: &str, instance: &str) -> Resource {
    let attributes = [
        ("service.name", "palisade"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", instance),
        ("host.name", host),
    ];
    let known = attributes.into_iter().filter(|(_, value)| !value.is_empty());
    let attribute = |(name, value): (&str, &str)| KeyValue { key: name.to_owned(), value: Some(text(value)) };
    Resource { attributes: known.map(attribute).collect() }
}

/// The request with a record for each event, in their order.
pub(super) fn request(resource: Resource, batch: &[Line], now_millis: u64) -> ExportLogsServiceRequest {
    let scope = InstrumentationScope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let log_records = batch.iter().map(|line| record(line, now_millis)).collect();
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { resource: Some(resource), scope_logs }] }
}

/// The record of an event: its message is the body, the fields of its format are the attributes. An event without a message
/// has its JSON as the body, and so has what is no object of JSON.
fn record(line: &[u8], now_millis: u64) -> LogRecord {
    let mut event = serde_json::from_slice::<Map<String, Value>>(line).unwrap_or_default();
    let facts = Facts::of(&event);
    let (severity_number, severity_text) = severity(facts.level);
    let message = match event.shift_remove("message") {
        Some(Value::String(message)) => message,
        Some(other) => {
            event.insert("message".to_owned(), other);
            String::from_utf8_lossy(line).into_owned()
        }
        None => String::from_utf8_lossy(line).into_owned(),
    };
    let time = facts.time.and_then(event_nanos);
    if !event.is_empty() && !facts.is_ocsf {
        if time.is_some() {
            event.shift_remove("@timestamp");
        }
        ecs::complete(&mut event);
    }
    let attributes = Attributes::of(&event, line.len());
    LogRecord {
        time_unix_nano: time.unwrap_or_default(),
        severity_number,
        severity_text: severity_text.to_owned(),
        body: Some(text(message)),
        attributes: attributes.list,
        dropped_attributes_count: attributes.dropped,
        observed_time_unix_nano: now_millis.saturating_mul(NANOS_PER_MILLI),
        event_name: event_name(&facts.kind).to_owned(),
    }
}

/// The time of an event in nanoseconds; `None` from the year 2262 on. A gateway may send any number, and servers that keep times in 64 bits
/// with a sign would refuse the request with all other events in it.
fn event_nanos(millis: u64) -> Option<u64> {
    millis.checked_mul(NANOS_PER_MILLI).filter(|nanos| i64::try_from(*nanos).is_ok())
}

/// The number and the short name of the log data model, as its mapping of syslog's severities has them.
fn severity(level: Level) -> (i32, &'static str) {
    match level {
        Level::Info => (9, "INFO"),
        Level::Notice => (10, "INFO2"),
        Level::Warning => (13, "WARN"),
        Level::Error => (17, "ERROR"),
    }
}

/// The name of a class of events: those with the same name have the same attributes.
fn event_name(kind: &str) -> &'static str {
    match kind {
        "SvcSecurityEvent" => "palisade.security_event",
        "SvcWafSecurityAudit" => "palisade.security_audit",
        "SvcWafTrailEvent" => "palisade.waf_trail",
        _ => "palisade.event",
    }
}
