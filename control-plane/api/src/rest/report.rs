//! What pipelines and people read with an admin key of scope `report`: incidents and nodes.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::describe;
use super::nodes::NodesQuery;
use crate::error::ApiError;
use crate::openapi::Routes;
use events::{EventHub, ExporterStatus, Incident, IncidentState, Trouble};
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

async fn incidents(State(reports): State<Reports>) -> Response {
    let parts = IncidentParts::of(reports.events.incidents_since(0));
    let body = Body::from_stream(tokio_stream::iter(parts.map(Ok::<_, std::convert::Infallible>)));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The answer with all incidents, in parts: there may be a hundred megabytes of them, and few readers take them as fast as they are made.
struct IncidentParts {
    incidents: std::vec::IntoIter<(Arc<Incident>, IncidentState)>,
    /// What comes before the next one; `None` at the end.
    before: Option<&'static str>,
}

/// The bytes after which a part is sent.
const PART: usize = 64 << 10;

impl IncidentParts {
    fn of(incidents: Vec<(Arc<Incident>, IncidentState)>) -> IncidentParts {
        IncidentParts { incidents: incidents.into_iter(), before: Some("{\"incidents\":[") }
    }
}

impl Iterator for IncidentParts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut part = Vec::new();
        part.extend_from_slice(self.before?.as_bytes());
        while part.len() < PART {
            let Some((incident, state)) = self.incidents.next() else {
                self.before = None;
                part.extend_from_slice(b"]}");
                return Some(part.into());
            };
            // One that cannot be written is left out, with its comma.
            let Ok(line) = serde_json::to_vec(&*incident.in_state(state)) else { continue };
            // The first one follows the bracket.
            if !part.ends_with(b"[") {
                part.push(b',');
            }
            part.extend_from_slice(&line);
        }
        self.before = Some("");
        Some(part.into())
    }
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
