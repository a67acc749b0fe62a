//! Incidents and nodes.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::openapi::{Group, Operation, reference};

fn group() -> Group {
    let about = "What gateways and the control plane report, for pipelines and people with a key of scope `report`.";
    Group { name: "reports".to_owned(), about: about.to_owned() }
}

pub(in crate::rest) fn incidents() -> Operation {
    let schema = json!({
        "type": "object",
        "required": ["incidents"],
        "properties": { "incidents": { "type": "array", "items": reference("Incident") } },
    });
    let summary = "Incidents: the events of one identity, close together in time";
    Operation::new(Method::GET, "/api/extensions/svc/waf/api/_incidents", "incidents", group(), summary).answers(
        StatusCode::OK,
        "The incidents, the most recent first.",
        schema,
    )
}

pub(in crate::rest) fn nodes() -> Operation {
    let schema = json!({
        "type": "object",
        "required": ["nodes", "publication", "problems", "exporters"],
        "properties": {
            "nodes": { "type": "array", "items": reference("NodeStatus") },
            "publication": reference("PublicationStatus"),
            "problems": { "type": "array", "items": reference("Trouble") },
            "exporters": { "type": "array", "items": reference("ExporterStatus") },
        },
    });
    let summary = "Nodes: what each took and refused; what was published and what was not; and how the exporters of events are doing";
    let boolean = || json!({ "type": "string", "enum": ["true", "false"] });
    let orders = ["id", "group", "since", "behind_since"];
    let orders: Vec<String> =
        orders.iter().flat_map(|field| ["", ":asc", ":desc"].map(|way| format!("{field}{way}"))).collect();
    Operation::new(Method::GET, "/api/extensions/svc/waf/api/_nodes", "nodes", group(), summary)
        .in_query("group", json!({ "type": "string" }), "Only nodes of this group.")
        .in_query("connected", boolean(), "Only nodes that have a stream, or that have none.")
        .in_query("behind", boolean(), "Only nodes that have not all that their group is served, or that have.")
        .in_query("sorted", json!({ "type": "string", "enum": orders, "default": "id" }), "What they are ordered by.")
        .answers(StatusCode::OK, "The nodes that were seen, every group and every exporter.", schema)
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a parameter of the query cannot be read.")
}
