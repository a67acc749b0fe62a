//! What is logged.

use axum::http::{Method, StatusCode};
use serde_json::json;

use super::collections::Common as _;
use crate::openapi::{Group, JSON, Operation, reference};

const PATH: &str = "/api/extensions/svc/waf/api/_log-level";

fn group() -> Group {
    Group { name: "logs".to_owned(), about: "The logs of this process on standard error.".to_owned() }
}

pub(in crate::rest) fn show() -> Operation {
    Operation::new(Method::GET, PATH, "logLevel", group(), "Read the log level").answers(
        StatusCode::OK,
        "The current level, and the one after a temporary level.",
        reference("LogLevel"),
    )
}

pub(in crate::rest) fn change() -> Operation {
    Operation::new(Method::PUT, PATH, "setLogLevel", group(), "Change the log level")
        .describe("Until the process ends, or for a limited time. The change is audited.")
        .takes("The level.", [(JSON, reference("LogLevelChange"))])
        .example(json!({ "level": "info,palisade::xds=debug", "for_seconds": 600 }))
        .answers(StatusCode::OK, "The current level.", reference("LogLevel"))
        .fails(StatusCode::BAD_REQUEST, "invalid_entity", "the level or the time is invalid.")
        .fails(StatusCode::CONFLICT, "unavailable", "this process does not use this logger.")
        .reads_a_body()
}
