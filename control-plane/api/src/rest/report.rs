//! What pipelines and people read with an admin key of scope `report`: incidents and nodes.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::describe;
use super::nodes::NodesQuery;
use crate::error::ApiError;
use crate::openapi::Routes;
use events::{EventHub, ExporterStatus, Incident, Trouble};
use xds::{Hub, NodeStatus, PublicationStatus};

/// What the reports are made of.
#[derive(Clone)]
pub struct Reports {
    /// Events and incidents.
    pub events: EventHub,
    /// What every node acknowledged and refused.
    pub nodes: Hub,
}

/// The reports; the caller guards them.
pub fn router(reports: Reports) -> Routes {
    Routes::new()
        .on(describe::report::incidents(), incidents)
        .on(describe::report::nodes(), nodes)
        .answer_schema::<Incident>()
        .answer_schema::<NodeStatus>()
        .answer_schema::<ExporterStatus>()
        .answer_schema::<PublicationStatus>()
        .answer_schema::<Trouble>()
        .with_state(reports)
}

async fn incidents(State(reports): State<Reports>) -> Json<Value> {
    Json(json!({ "incidents": reports.events.incidents() }))
}

async fn nodes(
    State(reports): State<Reports>,
    query: Result<Query<NodesQuery>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let wrong = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message);
    let Query(query) = query.map_err(|rejection| wrong(rejection.body_text()))?;
    let nodes = query.apply(reports.nodes.nodes()).map_err(|error| wrong(error.to_string()))?;
    Ok(Json(json!({
        "nodes": nodes,
        "publication": reports.nodes.publication_status(),
        "problems": reports.events.troubles(),
        "exporters": reports.events.exporters(),
    })))
}
