//! Health, readiness, metrics.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::openapi::{Group, Operation, reference};

fn group() -> Group {
    let about = "What those who run the control plane ask it. No key is needed, and any host will do.";
    Group { name: "health".to_owned(), about: about.to_owned() }
}

pub(in crate::rest) fn health() -> Operation {
    Operation::new(Method::GET, "/healthz", "health", group(), "Whether the process answers").answers(
        StatusCode::OK,
        "It does.",
        json!({ "type": "object", "required": ["status"], "properties": { "status": { "const": "ok" } } }),
    )
}

pub(in crate::rest) fn ready() -> Operation {
    let problems = json!({
        "type": "array", "items": reference("Trouble"),
        "description": "What does not work as it should; empty where everything does.",
    });
    let ready = json!({
        "type": "object",
        "required": ["status", "revision", "problems"],
        "properties": {
            "status": { "enum": ["ready", "degraded"] },
            "revision": { "type": "integer", "minimum": 0, "description": "The revision of the entities." },
            "problems": problems,
        },
    });
    let waiting = json!({
        "type": "object",
        "required": ["status", "missing", "problems"],
        "properties": {
            "status": { "const": "not ready" },
            "missing": { "type": "array", "items": { "type": "string" }, "description": "What is not up." },
            "problems": problems,
        },
    });
    Operation::new(Method::GET, "/readyz", "ready", group(), "Whether the store can be read and everything is up")
        .answers(StatusCode::OK, "Ready; `degraded` where something works in part only.", ready)
        .answers(StatusCode::SERVICE_UNAVAILABLE, "Not ready.", waiting)
}

pub(in crate::rest) fn metrics() -> Operation {
    Operation::new(Method::GET, "/metrics", "metrics", group(), "Metrics in Prometheus' text format").answers_as(
        StatusCode::OK,
        "All metrics of the process.",
        "text/plain",
        json!({ "type": "string" }),
    )
}
