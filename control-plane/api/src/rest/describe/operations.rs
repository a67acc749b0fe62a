//! Health, readiness, metrics.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::openapi::{Group, Operation, reference};

fn group() -> Group {
    let about = "Health and metrics for operations. They need no key and accept any host name.";
    Group { name: "health".to_owned(), about: about.to_owned() }
}

pub(in crate::rest) fn health() -> Operation {
    let schema = json!({ "type": "object", "required": ["status"], "properties": { "status": { "const": "ok" } } });
    Operation::new(Method::GET, "/healthz", "health", group(), "Whether the process answers").takes_any_query().answers(
        StatusCode::OK,
        "The process answers.",
        schema,
    )
}

pub(in crate::rest) fn ready() -> Operation {
    let problems = json!({
        "type": "array", "items": reference("Trouble"),
        "description": "The current problems; empty if there are none.",
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
            "missing": { "type": "array", "items": { "type": "string" }, "description": "The parts that are not ready." },
            "problems": problems,
        },
    });
    Operation::new(Method::GET, "/readyz", "ready", group(), "Whether the control plane is ready to serve")
        .takes_any_query()
        .answers(StatusCode::OK, "Ready; `degraded` if there are problems.", ready)
        .answers(StatusCode::SERVICE_UNAVAILABLE, "Not ready.", waiting)
}

pub(in crate::rest) fn metrics() -> Operation {
    Operation::new(Method::GET, "/metrics", "metrics", group(), "Metrics in Prometheus' text format")
        .takes_any_query()
        .answers_as(StatusCode::OK, "All metrics of the process.", "text/plain", json!({ "type": "string" }))
}
