//! `POST .../routes/_import`: what an Envoy checks on routes, from its configuration.

use axum::Json;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::collections::Collection;
use super::describe::routes_import as describe;
use super::path::Place;
use super::surface::Surface;
use super::{AppState, list, warnings};
use crate::access::Author;
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::Parameters;
use accounts::Role;
use credentials::envoy::{self, MAX_BYTES};
use credentials::{ImportPlan, RouteAction, RouteChange};
use entities::{
    BatchEntry, BatchOptions, BatchOutcome, BatchWrite, Entity as _, Kind, Route, WriteError, exactly, registry,
};
use events::AuditAction;
use store::StoreError;
use telemetry::spawn_within;

/// The media types of a configuration.
const TYPES: [&str; 4] = ["application/json", "application/yaml", "application/x-yaml", "text/yaml"];

/// The routes on one side.
pub(super) fn router(surface: Surface<'_>) -> Routes<AppState> {
    let operations = registry::by_collection(Route::COLLECTION)
        .map(|kind| describe::import(Collection { kind, surface }))
        .into_iter()
        .collect();
    let routes = Routes::new()
        .on_each(&Method::POST, &surface.pattern("/{collection}/_import"), operations, import)
        .schema_as("RoutesImport", describe::answer());
    routes.layered(|router| router.layer(DefaultBodyLimit::max(MAX_BYTES)))
}

async fn import(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    Query(parameters): Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    if kind.collection != Route::COLLECTION {
        return Err(ApiError::not_found(format!("nothing is imported into {}; see routes/_import", kind.collection)));
    }
    let dry_run = list::on(&parameters, "dry_run")?;
    if !dry_run {
        author.demand(Role::Admin)?;
    }
    let listener = parameters.iter().rev().find(|(name, _)| name == "listener").map(|(_, value)| value.clone());
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let declared = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !TYPES.contains(&declared.as_str()) {
        return Err(body::unsupported("application/json or application/yaml"));
    }
    let body = body::whole_within(body, "the body exceeds 50 MiB; import single listeners")?;
    let set = state.entities.current();
    // Reading takes seconds where the file is large.
    let read = tokio::task::spawn_blocking(move || {
        let imported = envoy::read(&body, listener.as_deref())?;
        let routes: Vec<(Value, u64)> =
            set.slots(Route::COLLECTION).map(|slot| (slot.entity.shown(), slot.revision)).collect();
        let documents: Vec<Value> = routes.iter().map(|(document, _)| document.clone()).collect();
        let plan = credentials::plan(&imported, &documents);
        let revisions = plan.changes.iter().map(|change| {
            routes
                .iter()
                .find(|(document, _)| document.get("id") == Some(&json!(change.id)))
                .map(|(_, revision)| *revision)
        });
        let revisions: Vec<Option<u64>> = revisions.collect();
        Ok((imported, plan, revisions))
    });
    let (imported, plan, revisions) = match read.await {
        Ok(read) => read.map_err(|error: envoy::ImportError| {
            ApiError::new(StatusCode::BAD_REQUEST, "invalid_configuration", error.to_string())
        })?,
        Err(_) => return Err(StoreError::Closed.into()),
    };
    let outcome = write(&state, author, kind, &plan, &revisions, dry_run).await?;
    let mut response = Json(credentials::summary(&imported, &plan, dry_run)).into_response();
    warnings::add(&mut response, outcome.warnings.iter().map(|(_, warning)| warning.as_str()));
    Ok(response)
}

/// Makes all changes or none, and notes who has made them; in a task of its own, as for other writes.
async fn write(
    state: &AppState,
    author: Author,
    kind: &'static Kind,
    plan: &ImportPlan,
    revisions: &[Option<u64>],
    dry_run: bool,
) -> Result<BatchOutcome, ApiError> {
    let entries: Vec<BatchEntry> = plan
        .changes
        .iter()
        .zip(revisions)
        .map(|(change, revision)| entry(kind, change, *revision))
        .collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Ok(BatchOutcome { results: Vec::new(), warnings: Vec::new() });
    }
    let (entities, events) = (state.entities.by(author.history_author(), "imported from Envoy"), state.events.clone());
    let actions: Vec<RouteAction> = plan.changes.iter().map(|change| change.action).collect();
    let task = spawn_within(async move {
        let outcome = entities.write_all(entries, BatchOptions { atomic: true, dry_run }).await;
        let written =
            outcome.results.iter().zip(&actions).filter_map(|(result, action)| Some((result.as_ref().ok()?, action)));
        for (slot, action) in written.filter(|_| !dry_run) {
            let action = match action {
                RouteAction::Create => AuditAction::Create,
                RouteAction::Change => AuditAction::Update,
            };
            let audit = author.audit(action);
            let reference = format!("{}/{}", Route::COLLECTION, slot.entity.head().id);
            events.audit(audit.of(reference).detail(format!("revision {}, imported from Envoy", slot.revision)));
        }
        outcome
    });
    let outcome = task.await.map_err(|_| ApiError::from(StoreError::Closed))?;
    let refused =
        outcome.results.iter().position(|result| matches!(result, Err(error) if *error != WriteError::NotApplied));
    match (refused, outcome) {
        (None, outcome) => Ok(outcome),
        (Some(index), BatchOutcome { results, .. }) => match results.into_iter().nth(index) {
            Some(Err(error)) => Err(error.into()),
            _ => Err(StoreError::Closed.into()),
        },
    }
}

fn entry(kind: &'static Kind, change: &RouteChange, revision: Option<u64>) -> Result<BatchEntry, ApiError> {
    let write = match change.action {
        RouteAction::Create => BatchWrite::Create(change.value.clone()),
        RouteAction::Change => BatchWrite::Update(change.id.clone(), body::replacement(change.patch())?),
    };
    let precondition = revision.filter(|_| change.action == RouteAction::Change).map(exactly);
    Ok(BatchEntry { kind, write, precondition })
}
