//! Incidents and nodes.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::openapi::{Group, Operation, reference};

fn group() -> Group {
    let about = "Reports of gateways and of the control plane, for keys with the scope `report`.";
    Group { name: "reports".to_owned(), about: about.to_owned() }
}

pub(in crate::rest) fn incidents() -> Operation {
    let schema = json!({
        "type": "object",
        "required": ["incidents"],
        "properties": { "incidents": { "type": "array", "items": reference("Incident") } },
    });
    let summary = "Incidents: events of one identity within a short time";
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
    let summary = "Nodes with what they acknowledged and refused; the state of the publication and of the exporters";
    let boolean = || json!({ "type": "string", "enum": ["true", "false"] });
    let orders = ["id", "group", "since", "behind_since"];
    let orders: Vec<String> =
        orders.iter().flat_map(|field| ["", ":asc", ":desc"].map(|way| format!("{field}{way}"))).collect();
    Operation::new(Method::GET, "/api/extensions/svc/waf/api/_nodes", "nodes", group(), summary)
        .in_query("group", json!({ "type": "string" }), "Only nodes of this group.")
        .in_query("connected", boolean(), "Only nodes with a stream, or without one.")
        .in_query(
            "behind",
            boolean(),
            "Only nodes that are behind the configuration of their group, or only the others.",
        )
        .in_query("sorted", json!({ "type": "string", "enum": orders, "default": "id" }), "The order of the nodes.")
        .answers(StatusCode::OK, "All known nodes, groups and exporters.", schema)
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
}
