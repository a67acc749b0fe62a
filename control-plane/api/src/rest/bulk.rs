//! Many changes in one request: `_bulk`, a line of JSON each (`application/x-ndjson`), and a line of the answer each.

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{self, Body};
use super::describe::bulk::MAX_LINES;
use super::describe::collections::Collection;
use super::path::Place;
use super::surface::Surface;
use super::{AppState, depth, describe, etag, list, warnings};
use crate::access::Author;
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::Parameters;
use accounts::Role;
use entities::{
    BatchEntry, BatchOptions, BatchOutcome, BatchWrite, FieldProblem, Kind, Replacement, Slot, WriteError, exactly,
    registry, typed,
};
use events::AuditAction;
use store::StoreError;
use telemetry::spawn_within;

const NDJSON: &str = "application/x-ndjson";

/// The routes on one side.
pub(super) fn router(state: &AppState, surface: Surface<'_>) -> Routes<AppState> {
    let (all, one) = (surface.pattern("/_bulk"), surface.pattern("/{collection}/_bulk"));
    let routes = Routes::new()
        .on_each(&Method::POST, &all, vec![describe::bulk::everything(surface)], everything)
        .schema_as("BulkChange", describe::bulk::change())
        .schema_as("BulkAnswer", describe::bulk::answer())
        .schema_as("JsonPatch", describe::bulk::json_patch());
    let routes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].iter().fold(routes, |routes, method| {
        let of = |kind| describe::bulk::collection(Collection { kind, surface }, method);
        let operations = registry::KINDS.iter().map(of).collect();
        routes.on_each(method, &one, operations, collection)
    });
    routes.layered(|router| router.layer(DefaultBodyLimit::max(state.config.max_body_bytes)))
}

/// A line of `_bulk` over all collections.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    op: Op,
    collection: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    entity: Option<Value>,
    #[serde(default)]
    patch: Option<Value>,
    #[serde(default)]
    if_match: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Create,
    Update,
    Patch,
    Delete,
}

/// `_bulk` of a collection: every line is an entity, and the method is what is done with each.
async fn collection(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    Query(parameters): Parameters,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let op = match method {
        Method::PUT => Op::Update,
        Method::PATCH => Op::Patch,
        Method::DELETE => Op::Delete,
        _ => Op::Create,
    };
    let read = |document: Value| entry(kind, op, None, document, None);
    let options = options(&author, &parameters)?;
    answer(state, author, options, false, lines(&headers, body)?.into_iter().map(|line| read(line?))).await
}

/// `_bulk` of all collections: every line says what is done to which entity.
async fn everything(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    Query(parameters): Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    place.own_group(&state)?;
    let options = options(&author, &parameters)?;
    let lines = lines(&headers, body)?;
    answer(state, author, options, true, lines.into_iter().map(|line| operation(line?))).await
}

fn options(author: &Author, parameters: &[(String, String)]) -> Result<BatchOptions, ApiError> {
    let on = |name| list::on(parameters, name);
    let options = BatchOptions { atomic: on("atomic")?, dry_run: on("dry_run")? };
    if !options.dry_run {
        author.demand(Role::Admin)?;
    }
    Ok(options)
}

/// The lines of the body; one that is not JSON is an error of its own.
fn lines(headers: &HeaderMap, body: Body) -> Result<Vec<Result<Value, ApiError>>, ApiError> {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !declared.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(NDJSON) {
        return Err(body::unsupported(NDJSON));
    }
    let body = body::whole(body)?;
    let numbered = body.split(|byte| *byte == b'\n').enumerate();
    let filled: Vec<(usize, &[u8])> = numbered.filter(|(_, line)| !line.trim_ascii().is_empty()).collect();
    if filled.is_empty() {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", "the body has no lines"));
    }
    if filled.len() > MAX_LINES {
        let message = format!("{} lines are too many; send at most {MAX_LINES} at once", filled.len());
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_lines", message));
    }
    Ok(filled.into_iter().map(|(index, line)| json(index + 1, line)).collect())
}

fn json(number: usize, line: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(line).map_err(|error| {
        if let Some(problem) = depth::problem(line) {
            return ApiError::invalid(vec![problem]);
        }
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        let message = format!("line {number} column {}: not JSON: {what}", error.column());
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", message)
    })
}

fn operation(line: Value) -> Result<BatchEntry, ApiError> {
    let Operation { op, collection, id, entity, patch, if_match } =
        typed(line).map_err(|problem| ApiError::invalid(vec![problem]))?;
    let kind = registry::by_collection(&collection).ok_or_else(|| {
        ApiError::invalid(vec![FieldProblem::new("/collection", registry::unknown_collection(&collection))])
    })?;
    let one = |pointer: &str, message: &str| ApiError::invalid(vec![FieldProblem::new(pointer, message)]);
    let document = match (op, entity, patch) {
        (Op::Create | Op::Update, Some(entity), None) => entity,
        (Op::Create | Op::Update, ..) => {
            return Err(one("/entity", "the document is given as `entity`, without `patch`"));
        }
        (Op::Patch, None, Some(patch)) => patch,
        (Op::Patch, ..) => return Err(one("/patch", "the change is given as `patch`, without `entity`")),
        (Op::Delete, None, None) => Value::Null,
        (Op::Delete, ..) => return Err(one("", "a deletion has neither `entity` nor `patch`")),
    };
    let expected = match (op, if_match) {
        (_, None) => None,
        (Op::Create, Some(_)) => return Err(one("/if_match", "a new entity has no revision yet")),
        (_, Some(tag)) => Some(etag::revision(&tag).ok_or_else(|| {
            let problem = FieldProblem::new("/if_match", "not an entity tag of an entity");
            ApiError::invalid(vec![problem.expected("the ETag as it was answered, such as `\"7\"` with its quotes")])
        })?),
    };
    if matches!(op, Op::Create) && id.is_some() {
        return Err(one("/id", "the id of a new entity belongs into its document"));
    }
    entry(kind, op, id, document, expected)
}

/// The change that a line asks for. The id is `id`, or stands in the document.
fn entry(
    kind: &'static Kind,
    op: Op,
    id: Option<String>,
    document: Value,
    expected: Option<u64>,
) -> Result<BatchEntry, ApiError> {
    let id = |document: &Value| {
        id.or_else(|| document.get("id")?.as_str().map(ToOwned::to_owned)).ok_or_else(|| {
            let problem = FieldProblem::new("/id", "the line does not say which entity is meant");
            ApiError::invalid(vec![problem.expected("the id of an entity")])
        })
    };
    let write = match op {
        Op::Create => BatchWrite::Create(document),
        Op::Update => BatchWrite::Update(id(&document)?, Replacement::Whole(document)),
        Op::Patch => BatchWrite::Update(id(&document)?, body::replacement(document)?),
        Op::Delete => BatchWrite::Delete(id(&document)?),
    };
    Ok(BatchEntry { kind, write, precondition: expected.map(exactly) })
}

/// Writes what could be read, and answers a line for each line. A batch that was to be written as a whole and was refused
/// answers with the status of the first line that is at fault; everything else with 200.
async fn answer(
    state: AppState,
    author: Author,
    options: BatchOptions,
    named: bool,
    lines: impl Iterator<Item = Result<BatchEntry, ApiError>>,
) -> Result<Response, ApiError> {
    let (mut entries, mut answers) = (Vec::new(), Vec::new());
    for line in lines {
        answers.push(line.map(|entry| entries.push(entry)));
    }
    let whats: Vec<What> = entries.iter().map(What::of).collect();
    let unread = answers.iter().any(Result::is_err);
    let outcome = if options.atomic && unread {
        let results = whats.iter().map(|_| Err(WriteError::NotApplied)).collect();
        BatchOutcome { results, warnings: Vec::new() }
    } else {
        write(&state, author, entries, &whats, options).await
    };
    if let Some(Err(WriteError::Store(error))) =
        outcome.results.iter().find(|result| matches!(result, Err(WriteError::Store(_))))
    {
        tracing::error!(%error, "the store failed");
    }
    let mut done = outcome.results.into_iter().zip(&whats);
    let mut text = String::new();
    let mut worst = None;
    for answered in answers {
        let (status, line) = match answered {
            Err(error) => (error.status(), error.line()),
            Ok(()) => match done.next() {
                Some((result, what)) => what.line(result, named),
                None => continue,
            },
        };
        if !status.is_success() && status != StatusCode::FAILED_DEPENDENCY {
            worst = worst.or(Some(status));
        }
        text.push_str(&Value::Object(line).to_string());
        text.push('\n');
    }
    let status = worst.filter(|_| options.atomic).unwrap_or(StatusCode::OK);
    let mut response = (status, [(CONTENT_TYPE, NDJSON)], text).into_response();
    warnings::add(&mut response, outcome.warnings.iter().map(|(_, warning)| warning.as_str()));
    Ok(response)
}

/// Makes the changes and tells who has made them; in a task of its own, as for a single one.
async fn write(
    state: &AppState,
    author: Author,
    entries: Vec<BatchEntry>,
    whats: &[What],
    options: BatchOptions,
) -> BatchOutcome {
    let (events, whats) = (state.events.clone(), whats.to_vec());
    let entities = state.entities.by(author.history_author(), "_bulk");
    let count = entries.len();
    let task = spawn_within(async move {
        let outcome = entities.write_all(entries, options).await;
        if !options.dry_run {
            for (slot, what) in
                outcome.results.iter().zip(&whats).filter_map(|(result, what)| Some((result.as_ref().ok()?, what)))
            {
                let audit = author.audit(what.action);
                let reference = format!("{}/{}", what.collection, slot.entity.head().id);
                events.audit(audit.of(reference).detail(format!("revision {}", slot.revision)));
            }
        }
        outcome
    });
    let closed =
        || BatchOutcome { results: vec![Err(WriteError::Store(StoreError::Closed)); count], warnings: Vec::new() };
    task.await.unwrap_or_else(|_| closed())
}

/// What an answer says about an entry besides its result.
#[derive(Clone)]
struct What {
    action: AuditAction,
    collection: &'static str,
    id: Option<String>,
}

impl What {
    fn of(entry: &BatchEntry) -> What {
        let (action, id) = match &entry.write {
            BatchWrite::Create(document) => (AuditAction::Create, document.get("id").and_then(Value::as_str)),
            BatchWrite::Update(id, _) | BatchWrite::Restore(id, _) => (AuditAction::Update, Some(id.as_str())),
            BatchWrite::Delete(id) | BatchWrite::DeleteAnyway(id) => (AuditAction::Delete, Some(id.as_str())),
        };
        What { action, collection: entry.kind.collection, id: id.map(ToOwned::to_owned) }
    }

    fn line(&self, result: Result<Slot, WriteError>, named: bool) -> (StatusCode, Map<String, Value>) {
        let (status, mut line, id) = match result {
            Ok(Slot { revision, entity }) => {
                let status = if self.action == AuditAction::Create { StatusCode::CREATED } else { StatusCode::OK };
                let mut line = Map::from_iter([("status".to_owned(), status.as_u16().into())]);
                if self.action != AuditAction::Delete {
                    line.insert("etag".to_owned(), etag::tag(revision).into());
                }
                (status, line, Some(entity.head().id.clone()))
            }
            Err(error) => {
                let error = match error {
                    // Told once for all lines.
                    WriteError::Store(error) => ApiError::store(&error),
                    other => other.into(),
                };
                (error.status(), error.line(), self.id.clone())
            }
        };
        if let Some(id) = id {
            line.insert("id".to_owned(), id.into());
        }
        if named {
            line.insert("collection".to_owned(), json!(self.collection));
        }
        (status, line)
    }
}
