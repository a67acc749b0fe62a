//! `_start`: a changed policy beside the one in force, as snapshots.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Replaying, State, describe, jobs, refused};
use crate::console::body::{self, Body};
use crate::console::state::{Console, node};
use crate::console::who::Who;
use crate::error::ApiError;
use crate::openapi::Routes;
use compiler::Compiler;
use entities::{
    BatchEntry, BatchWrite, DEFAULT_GROUP, Entity as _, EntitySet, FieldProblem, GlobalConfig, Proposal, Replacement,
    Route, WriteError, registry,
};
use replays::{NewJob, RouteNames};

/// The changes of a replay, at most.
const MAX_CHANGES: usize = 50;
/// How long a call waits for the snapshots of another.
const WAIT: Duration = Duration::from_secs(10);
/// The filter that has all plugins.
const PRESET: &str = "preset";

/// What is replayed with what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayStartBody {
    /// The id of the recording.
    recording: String,
    /// The changes, made as one: 1 to 50.
    changes: Vec<ReplayChangeBody>,
    /// The group of gateways. Default `default`.
    group: Option<String>,
    /// The id of the route that requests take whose recording names none, before and after the changes; where it does not exist, they
    /// take the global chain alone. Without it they take the only route, if it is the same before and after, else the global chain.
    route: Option<String>,
}

/// A change of an entity that is tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayChangeBody {
    /// Its collection, such as `waf-configs`.
    collection: String,
    /// Its id; not needed for a new one.
    id: Option<String>,
    /// The whole document, as a PUT takes it; null deletes the entity.
    document: Option<Value>,
}

pub(super) fn routes() -> Routes<(Console, Replaying)> {
    Routes::new().on(describe::start(), start).schema::<ReplayStartBody>()
}

async fn start(
    axum::extract::State((console, replaying)): State,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let ReplayStartBody { recording, changes, group, route } = body::read(&headers, body)?;
    replaying.replays.may_start(&recording).await.map_err(|error| refused(&error))?;
    let group = group.unwrap_or_else(|| DEFAULT_GROUP.to_owned());
    let Proposal { before, after, warnings } = propose(&console, &changes).await?;
    let route = route.map(|id| route_names(&before, &after, &group, &id)).transpose()?;
    let turn = tokio::time::timeout(WAIT, Arc::clone(&replaying.compiling).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else {
        let message = "the snapshots of another replay are being made; try again in a few seconds";
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).with_header(header::RETRY_AFTER, "5"));
    };
    let (compiler, of_group) = (Arc::clone(&replaying.compiler), group.clone());
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        Ok((snapshot(&compiler, &before, &of_group)?, snapshot(&compiler, &after, &of_group)?))
    });
    let made = made.await.unwrap_or_else(|error| Err(failed(format!("the snapshots could not be made: {error}"))));
    let (before, after) = made?;
    let changes = changes.iter().map(ReplayChangeBody::place).collect();
    let new = NewJob { recording, by: who.operator.name.clone(), changes, group, route, before, after };
    let job = replaying.replays.start(new).await.map_err(|error| refused(&error))?;
    let warnings: Vec<String> = warnings.into_iter().map(|(_, warning)| warning).collect();
    Ok(Json(json!({ "done": true, "node": node(), "job": jobs::shown(&job), "warnings": warnings })))
}

/// The names of a route before and after the changes, each empty where gateways of the group do not have it.
fn route_names(before: &EntitySet, after: &EntitySet, group: &str, id: &str) -> Result<RouteNames, ApiError> {
    let name = |set: &EntitySet| {
        let route = set.get::<Route>(id).filter(|route| route.enabled && route.is_in(group))?;
        Some(route.envoy_route_name(&route.head).to_owned())
    };
    let names = (name(before), name(after));
    if names == (None, None) {
        let shown = id.escape_debug();
        let why = match before.get::<Route>(id).or_else(|| after.get::<Route>(id)) {
            Some(_) => format!("the route `{shown}` is disabled, or not one of the group `{}`", group.escape_debug()),
            None => format!("there is no route `{shown}`"),
        };
        return Err(ApiError::invalid(vec![FieldProblem::new("/route", why).expected("the id of a route")]));
    }
    let (before, after) = names;
    Ok(RouteNames { before: before.unwrap_or_default(), after: after.unwrap_or_default() })
}

/// What the changes lead to, judged as a save would be.
async fn propose(console: &Console, changes: &[ReplayChangeBody]) -> Result<Proposal, ApiError> {
    let one = |pointer: String, message: String| ApiError::invalid(vec![FieldProblem::new(pointer, message)]);
    if changes.is_empty() || changes.len() > MAX_CHANGES {
        return Err(one(
            "/changes".to_owned(),
            format!("1 to {MAX_CHANGES} changes are expected, not {}", changes.len()),
        ));
    }
    let current = console.inner.entities.current();
    let mut entries = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let kind = registry::by_collection(&change.collection).ok_or_else(|| {
            one(format!("/changes/{index}/collection"), registry::unknown_collection(&change.collection))
        })?;
        let id = change.id.clone().or_else(|| Some(change.document.as_ref()?.get("id")?.as_str()?.to_owned()));
        let exists = id.as_ref().is_some_and(|id| current.slot(kind.collection, id).is_some());
        let write = match (id, change.document.clone()) {
            (Some(id), Some(document)) if exists => BatchWrite::Update(id, Replacement::Whole(document)),
            (id, Some(mut document)) => {
                if let (Some(id), Some(fields)) = (id, document.as_object_mut()) {
                    fields.insert("id".to_owned(), id.into());
                }
                BatchWrite::Create(document)
            }
            (Some(id), None) => BatchWrite::Delete(id),
            (None, None) => {
                return Err(one(
                    format!("/changes/{index}/id"),
                    "the change does not say which entity is meant".to_owned(),
                ));
            }
        };
        entries.push(BatchEntry { kind, write, precondition: None });
    }
    console.inner.entities.propose(entries).await.map_err(|errors| wrong(errors, changes.len()))
}

/// What is wrong with the changes, with pointers into the body; into the document if there is one change.
fn wrong(errors: Vec<WriteError>, count: usize) -> ApiError {
    let mut problems = Vec::new();
    for (index, error) in errors.into_iter().enumerate() {
        let under = if count == 1 { String::new() } else { format!("/changes/{index}/document") };
        match error {
            WriteError::NotApplied => {}
            WriteError::Invalid(found) | WriteError::InUse(found) => {
                problems.extend(found.into_iter().map(|problem| problem.under(&under)));
            }
            WriteError::NotFound => {
                problems.push(FieldProblem::new(under, "there is no entity with this id to delete"))
            }
            error => return error.into(),
        }
    }
    if problems.is_empty() {
        problems.push(FieldProblem::new("", "this was refused, and no reason was given"));
    }
    ApiError::invalid(problems)
}

/// The snapshot that gateways of a group would get.
fn snapshot(compiler: &Compiler, set: &EntitySet, group: &str) -> Result<Vec<u8>, ApiError> {
    let mut made = compiler.compile_groups(&with_one_filter(set, group)?).groups;
    let Some(made) = made.remove(group) else {
        let names = made.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let problem = FieldProblem::new("/group", format!("there is no group `{}`", group.escape_debug()));
        return Err(ApiError::invalid(vec![problem.expected(format!("one of {names}"))]));
    };
    let gateway = made.map_err(|reasons| failed(format!("the group cannot be served: {}", reasons.join("; "))))?;
    let first = gateway.filters.into_iter().next();
    first.map(|filter| filter.snapshot).ok_or_else(|| failed("the group has no filter".to_owned()))
}

/// The same entities with one filter in the group: a replay runs one, and the preset does what single filters do beside each other.
fn with_one_filter(set: &EntitySet, group: &str) -> Result<EntitySet, ApiError> {
    let mut set = set.clone();
    let several = set.global().gateways().any(|(name, gateway)| name == group && gateway.filters.len() > 1);
    let place = (
        registry::by_collection(GlobalConfig::COLLECTION),
        set.slot(GlobalConfig::COLLECTION, GlobalConfig::ID).cloned(),
    );
    let (true, (Some(kind), Some(slot))) = (several, place) else { return Ok(set) };
    let mut document = slot.entity.stored();
    let of_group = match group {
        DEFAULT_GROUP => document.get_mut("gateway"),
        named => document.get_mut("groups").and_then(|groups| groups.get_mut(named)),
    };
    // A group without filters of its own has those of the gateway.
    if let Some(fields) = of_group.and_then(Value::as_object_mut) {
        fields.insert("filters".to_owned(), json!([PRESET]));
    }
    let entity = kind.read(document).map_err(ApiError::invalid)?;
    set.insert(kind, entity, slot.revision);
    Ok(set)
}

fn failed(message: String) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "not_servable", message)
}

impl ReplayChangeBody {
    /// `collection/id`, for people.
    fn place(&self) -> String {
        let document = self.document.as_ref();
        let id = self.id.as_deref().or_else(|| document?.get("id")?.as_str()).unwrap_or("(new)");
        let text = format!("{}/{id}", self.collection);
        if document.is_none() { format!("{text} (deleted)") } else { text }
    }
}
