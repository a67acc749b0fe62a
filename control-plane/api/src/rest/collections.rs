//! The entity collections: `/apis/{entity_group}/v1/<collection>`.

use axum::Extension;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::collections::Collection;
use super::fields::Fields;
use super::list::{self, ListQuery};
use super::path::Segments;
use super::{AppState, etag, warnings};
use crate::access::Caller;
use crate::error::ApiError;
use crate::openapi::{FIELDS, Operation, Routes, component_name, entity_schema, part_schema};
use crate::query::{PAGES, Parameters};
use entities::{FieldProblem, Kind, Replacement, Slot, WriteError, Written, registry};
use events::{Audit, AuditAction};
use store::StoreError;
use telemetry::spawn_within;

/// The routes of all collections.
pub(super) fn router(state: &AppState) -> Routes<AppState> {
    const ALL: &str = "/apis/{group}/v1/{collection}";
    const ONE: &str = "/apis/{group}/v1/{collection}/{id}";
    let below = |name: &str| format!("{ALL}/{name}");
    let group = state.config.entity_group.as_str();
    let routes = Routes::new()
        .on_each(&Method::GET, ALL, each(group, Collection::list), list)
        .on_each(&Method::POST, ALL, each(group, Collection::create), create)
        .on_each(&Method::GET, ONE, each(group, Collection::read), read)
        .on_each(&Method::PUT, ONE, each(group, Collection::replace), replace)
        .on_each(&Method::PATCH, ONE, each(group, Collection::patch), patch)
        .on_each(&Method::DELETE, ONE, each(group, Collection::delete), remove)
        .on_each(&Method::GET, &below("_count"), each(group, Collection::count), count)
        .on_each(&Method::GET, &below("_schema"), each(group, Collection::schema), schema)
        .on_each(&Method::GET, &below("_template"), each(group, Collection::template), template)
        .answer_schema::<FieldProblem>()
        .schema_as(FIELDS, part_schema());
    let routes = registry::KINDS
        .iter()
        .fold(routes, |routes, kind| routes.schema_as(&component_name(kind), entity_schema(kind)));
    let general = state.config.max_body_bytes;
    routes.layered(|router| {
        router.layer(axum::middleware::map_request(move |mut request: axum::extract::Request| async move {
            DefaultBodyLimit::max(longest_body(request.uri().path(), general)).apply(&mut request);
            request
        }))
    })
}

/// The longest body of a request by its path, in bytes: some collections have documents that are longer than others.
fn longest_body(path: &str, general: usize) -> usize {
    // `/apis/{group}/v1/{collection}`
    let collection = path.split('/').nth(4).unwrap_or_default();
    let own = registry::KINDS.iter().find(|kind| kind.collection == collection).map_or(0, |kind| kind.max_document);
    general.max(own)
}

/// The description of an operation for each collection.
fn each<'a>(group: &'a str, describe: fn(Collection<'a>) -> Operation) -> Vec<Operation> {
    registry::KINDS.iter().map(|kind| describe(Collection { kind, group })).collect()
}

async fn list(
    State(state): State<AppState>,
    Segments((group, collection)): Segments<(String, String)>,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
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
    Segments((group, collection, id)): Segments<(String, String, String)>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let query = ListQuery::read(&parameters, &Fields::of_kind(kind))?;
    let set = state.entities.current();
    let slot = set.slot(kind.collection, &id).ok_or_else(|| {
        ApiError::not_found(format!("there is no entity `{}` in {}", id.escape_debug(), kind.collection))
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
    Segments((group, collection)): Segments<(String, String)>,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let count = state.entities.current().slots(kind.collection).count();
    Ok(write(StatusCode::OK, json!({ "count": count }), list::on(&parameters, "pretty")?))
}

async fn schema(
    State(state): State<AppState>,
    Segments((group, collection)): Segments<(String, String)>,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    Ok(write(StatusCode::OK, entities::registry::schema(kind).clone(), list::on(&parameters, "pretty")?))
}

async fn template(
    State(state): State<AppState>,
    Segments((group, collection)): Segments<(String, String)>,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    Ok(write(StatusCode::OK, kind.template(), list::on(&parameters, "pretty")?))
}

async fn create(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    Segments((group, collection)): Segments<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let document = body::document(&headers, body)?;
    if let Some(id) = kind.singleton {
        let message = format!("there is one {} only; PUT or PATCH {}/{id}", kind.kind, kind.collection);
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    let entities = state.entities.clone();
    let write = async move { entities.create(kind, document).await };
    let written = audited(&state, caller, AuditAction::Create, kind, write).await?;
    let location = format!("/apis/{group}/v1/{collection}/{}", written.slot.entity.head().id);
    let mut response = answer(StatusCode::CREATED, written);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn replace(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    Segments((group, collection, id)): Segments<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let document = Replacement::Whole(body::document(&headers, body)?);
    update(&state, caller, kind, id, document, &headers).await
}

async fn patch(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    Segments((group, collection, id)): Segments<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let patch = body::patch(&headers, body)?;
    update(&state, caller, kind, id, patch, &headers).await
}

async fn remove(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    Segments((group, collection, id)): Segments<(String, String, String)>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kind = kind(&state, &group, &collection)?;
    let forced = list::on(&parameters, "force")?;
    let (entities, precondition) = (state.entities.clone(), etag::if_match(&headers));
    let write = async move {
        if forced {
            entities.delete_anyway(kind, &id, precondition).await
        } else {
            entities.delete(kind, &id, precondition).await
        }
    };
    Ok(answer(StatusCode::OK, audited(&state, caller, AuditAction::Delete, kind, write).await?))
}

async fn update(
    state: &AppState,
    caller: Caller,
    kind: &'static Kind,
    id: String,
    change: Replacement,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let (entities, precondition) = (state.entities.clone(), etag::if_match(headers));
    let write = async move { entities.update(kind, &id, change, precondition).await };
    Ok(answer(StatusCode::OK, audited(state, caller, AuditAction::Update, kind, write).await?))
}

/// Makes a write and tells who has made it. In a task of its own, as the write is: a caller who goes away in between must
/// not have changed anything without its being told.
async fn audited(
    state: &AppState,
    caller: Caller,
    action: AuditAction,
    kind: &'static Kind,
    write: impl Future<Output = Result<Written, WriteError>> + Send + 'static,
) -> Result<Written, WriteError> {
    let events = state.events.clone();
    let task = spawn_within(async move {
        let written = write.await?;
        let Slot { revision, entity } = &written.slot;
        let audit = Audit::new(action).admin_key(&caller.key_id, &caller.key_name).from(caller.source);
        let reference = format!("{}/{}", kind.collection, entity.head().id);
        events.audit(audit.of(reference).detail(format!("revision {revision}")));
        Ok(written)
    });
    task.await.unwrap_or(Err(WriteError::Store(StoreError::Closed)))
}

/// The collection of this name, where the group is the control plane's own.
pub(super) fn kind(state: &AppState, group: &str, collection: &str) -> Result<&'static Kind, ApiError> {
    own_group(state, group)?;
    registry::by_collection(collection).ok_or_else(|| ApiError::not_found(registry::unknown_collection(collection)))
}

/// Whether the entities are under this group.
pub(super) fn own_group(state: &AppState, group: &str) -> Result<(), ApiError> {
    let own = &state.config.entity_group;
    if group == own {
        return Ok(());
    }
    let message = format!("there is no API group `{}`; the entities are under /apis/{own}/v1/", group.escape_debug());
    Err(ApiError::not_found(message))
}

fn answer(status: StatusCode, written: Written) -> Response {
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

fn write(status: StatusCode, value: Value, pretty: bool) -> Response {
    let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
