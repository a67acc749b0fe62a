//! What is logged.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::collections::Common as _;
use crate::openapi::{Group, JSON, Operation, reference};

const PATH: &str = "/api/extensions/svc/waf/api/_log-level";

fn group() -> Group {
    Group { name: "logs".to_owned(), about: "What this process logs on standard error.".to_owned() }
}

pub(in crate::rest) fn show() -> Operation {
    Operation::new(Method::GET, PATH, "logLevel", group(), "What is logged").answers(
        StatusCode::OK,
        "What is logged now, and what after a passing level.",
        reference("LogLevel"),
    )
}

pub(in crate::rest) fn change() -> Operation {
    Operation::new(Method::PUT, PATH, "setLogLevel", group(), "Log more, or less")
        .describe("For good, which means until the process ends, or for a time. It leaves an audit event.")
        .takes("The level.", [(JSON, reference("LogLevelChange"))])
        .example(json!({ "level": "info,palisade::xds=debug", "for_seconds": 600 }))
        .answers(StatusCode::OK, "What is logged now.", reference("LogLevel"))
        .fails(StatusCode::BAD_REQUEST, "invalid_entity", "the level cannot be read, or the time is out of its limits.")
        .fails(StatusCode::CONFLICT, "unavailable", "this process does not log by these means.")
        .reads_a_body()
}
