//! The entity collections: `/apis/{entity_group}/v1/<collection>` for admin keys, and the same in the console.

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::collections::Collection;
use super::fields::Fields;
use super::list::{self, ListQuery};
use super::path::Place;
use super::surface::Surface;
use super::{AppState, etag, warnings};
use crate::access::Author;
use crate::error::ApiError;
use crate::openapi::{FIELDS, Operation, Routes, component_name, entity_schema, part_schema};
use crate::query::{PAGES, Parameters};
use entities::{FieldProblem, Kind, Replacement, Slot, WriteError, Written, registry};
use events::AuditAction;
use store::StoreError;
use telemetry::spawn_within;

/// The routes of all collections on one side.
pub(super) fn router(state: &AppState, surface: Surface<'_>) -> Routes<AppState> {
    let all = surface.pattern("/{collection}");
    let below = |name: &str| format!("{all}/{name}");
    let one = below("{id}");
    let routes = Routes::new()
        .on_each(&Method::GET, &all, each(surface, Collection::list), list)
        .on_each(&Method::POST, &all, each(surface, Collection::create), create)
        .on_each(&Method::GET, &one, each(surface, Collection::read), read)
        .on_each(&Method::PUT, &one, each(surface, Collection::replace), replace)
        .on_each(&Method::PATCH, &one, each(surface, Collection::patch), patch)
        .on_each(&Method::DELETE, &one, each(surface, Collection::delete), remove)
        .on_each(&Method::GET, &below("_count"), each(surface, Collection::count), count)
        .on_each(&Method::GET, &below("_schema"), each(surface, Collection::schema), schema)
        .on_each(&Method::GET, &below("_template"), each(surface, Collection::template), template)
        .answer_schema::<FieldProblem>()
        .schema_as(FIELDS, part_schema());
    let routes = registry::KINDS
        .iter()
        .fold(routes, |routes, kind| routes.schema_as(&component_name(kind), entity_schema(kind)));
    let general = state.config.max_body_bytes;
    let depth = all.split('/').count();
    routes.layered(|router| {
        router.layer(axum::middleware::map_request(move |mut request: axum::extract::Request| async move {
            DefaultBodyLimit::max(longest_body(request.uri().path(), depth, general)).apply(&mut request);
            request
        }))
    })
}

/// The longest body of a request by its path, in bytes: some collections have documents that are longer than others. The
/// path of a collection has `depth` parts, what precedes its first slash among them.
fn longest_body(path: &str, depth: usize, general: usize) -> usize {
    let collection = path.split('/').take(depth).last().unwrap_or_default();
    let own = registry::KINDS.iter().find(|kind| kind.collection == collection).map_or(0, |kind| kind.max_document);
    general.max(own)
}

/// The description of an operation for each collection.
pub(super) fn each<'a>(surface: Surface<'a>, describe: fn(Collection<'a>) -> Operation) -> Vec<Operation> {
    registry::KINDS.iter().map(|kind| describe(Collection { kind, surface })).collect()
}

async fn list(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let query = ListQuery::read(&parameters, &Fields::of_kind(kind))?;
    let set = state.entities.current();
    let page = query.apply(set.slots(kind.collection));
    let list = Value::Array(page.items);
    let mut response = write(StatusCode::OK, if query.envelope { json!({ "data": list }) } else { list }, query.pretty);
    response.headers_mut().insert(PAGES, HeaderValue::from(page.pages));
    Ok(response)
}

async fn read(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let query = ListQuery::read(&parameters, &Fields::of_kind(kind))?;
    let set = state.entities.current();
    let slot = set.slot(kind.collection, &place.id).ok_or_else(|| {
        ApiError::not_found(format!("there is no entity `{}` in {}", place.id.escape_debug(), kind.collection))
    })?;
    if etag::is_cached(&headers, slot.revision) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        set_tag(&mut response, slot.revision);
        return Ok(response);
    }
    let item = query.project(slot.entity.shown());
    let item = if query.envelope { json!({ "data": item }) } else { item };
    let mut response = write(StatusCode::OK, item, query.pretty);
    set_tag(&mut response, slot.revision);
    Ok(response)
}

async fn count(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let count = state.entities.current().slots(kind.collection).count();
    Ok(write(StatusCode::OK, json!({ "count": count }), list::on(&parameters, "pretty")?))
}

async fn schema(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    Ok(write(StatusCode::OK, entities::registry::schema(kind).clone(), list::on(&parameters, "pretty")?))
}

async fn template(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    Ok(write(StatusCode::OK, kind.template(), list::on(&parameters, "pretty")?))
}

async fn create(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let document = body::document(&headers, body)?;
    if let Some(id) = kind.singleton {
        let message = format!("there is one {} only; PUT or PATCH {}/{id}", kind.kind, kind.collection);
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    let entities = state.entities.by(author.history_author(), "");
    let write = async move { entities.create(kind, document).await };
    let written = audited(&state, author, AuditAction::Create, kind, None, write).await?;
    let location = place.path_of(&written.slot.entity.head().id);
    let mut response = answer(StatusCode::CREATED, written);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn replace(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let document = Replacement::Whole(body::document(&headers, body)?);
    update(&state, author, kind, place.id, document, &headers).await
}

async fn patch(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let patch = body::patch(&headers, body)?;
    update(&state, author, kind, place.id, patch, &headers).await
}

async fn remove(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let forced = list::on(&parameters, "force")?;
    let (entities, precondition) = (state.entities.by(author.history_author(), ""), etag::if_match(&headers));
    let write = async move {
        if forced {
            entities.delete_anyway(kind, &place.id, precondition).await
        } else {
            entities.delete(kind, &place.id, precondition).await
        }
    };
    Ok(answer(StatusCode::OK, audited(&state, author, AuditAction::Delete, kind, None, write).await?))
}

async fn update(
    state: &AppState,
    author: Author,
    kind: &'static Kind,
    id: String,
    change: Replacement,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let (entities, precondition) = (state.entities.by(author.history_author(), ""), etag::if_match(headers));
    let write = async move { entities.update(kind, &id, change, precondition).await };
    Ok(answer(StatusCode::OK, audited(state, author, AuditAction::Update, kind, None, write).await?))
}

/// Makes a write and reports who has made it, in a task of its own, as the write is: if the caller goes away in between, the event is
/// still sent. `more` is what the event says beside the revision.
pub(super) async fn audited(
    state: &AppState,
    author: Author,
    action: AuditAction,
    kind: &'static Kind,
    more: Option<String>,
    write: impl Future<Output = Result<Written, WriteError>> + Send + 'static,
) -> Result<Written, WriteError> {
    let events = state.events.clone();
    let task = spawn_within(async move {
        let written = write.await?;
        let Slot { revision, entity } = &written.slot;
        let reference = format!("{}/{}", kind.collection, entity.head().id);
        let more = more.map(|more| format!(", {more}")).unwrap_or_default();
        events.audit(author.audit(action).of(reference).detail(format!("revision {revision}{more}")));
        Ok(written)
    });
    task.await.unwrap_or(Err(WriteError::Store(StoreError::Closed)))
}

pub(super) fn answer(status: StatusCode, written: Written) -> Response {
    let Written { slot: Slot { revision, entity }, warnings: found } = written;
    let mut response = write(status, entity.shown(), false);
    set_tag(&mut response, revision);
    warnings::add(&mut response, found.iter().map(String::as_str));
    response
}

fn set_tag(response: &mut Response, revision: u64) {
    if let Ok(tag) = HeaderValue::from_str(&etag::tag(revision)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
}

pub(super) fn write(status: StatusCode, value: Value, pretty: bool) -> Response {
    let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
