//! The history of an entity: `<collection>/<id>/_history`, one version of it, and `_revert`; what was deleted: `<collection>/_deleted`.

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{self, Body};
use super::collections::{answer, audited, each, write};
use super::describe::collections::Collection;
use super::describe::history as describe;
use super::list::{self, DEFAULT_PAGE_SIZE};
use super::path::Place;
use super::surface::Surface;
use super::{AppState, etag};
use crate::access::Author;
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::{PAGES, Parameters, positive};
use base::clock;
use entities::{EntityVersion, Kind, VersionState, WriteError, typed};
use events::AuditAction;
use store::AuthorKind;
use store::history::VersionHead;

/// The longest body of `_revert`, in bytes.
const MAX_BODY: usize = 4096;

/// The routes of all collections on one side.
pub(super) fn router(surface: Surface<'_>) -> Routes<AppState> {
    let below = |name: &str| surface.pattern(&format!("/{{collection}}/{{id}}/{name}"));
    let all = surface.pattern("/{collection}/_deleted");
    Routes::new()
        .on_each(&Method::GET, &all, each(surface, Collection::deleted), deleted)
        .on_each(&Method::GET, &below("_history"), each(surface, Collection::history), versions)
        .on_each(&Method::GET, &below("_history/{version}"), each(surface, Collection::version), version)
        .on_each(&Method::POST, &below("_revert"), each(surface, Collection::revert), revert)
        .schema_as("EntityVersion", describe::version())
        .schema_as("VersionChanges", describe::changes())
        .schema_as("DeletedEntity", describe::deleted())
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

/// The body of `_revert`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revert {
    version: u64,
}

/// The part of a list that is asked for: without `page` and `pageSize` all of it.
struct Paging {
    skip: u32,
    size: u32,
    pretty: bool,
}

impl Paging {
    fn read(parameters: &[(String, String)]) -> Result<Paging, ApiError> {
        let (mut page, mut size) = (None, None);
        for (name, value) in parameters {
            match name.as_str() {
                "page" => page = Some(positive(name, value)?),
                "pageSize" => size = Some(positive(name, value)?),
                _ => {}
            }
        }
        let otherwise = if page.is_some() { DEFAULT_PAGE_SIZE } else { usize::MAX };
        let size = size.unwrap_or(otherwise);
        let skip = page.unwrap_or(1).saturating_sub(1).saturating_mul(size);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Paging { skip: number(skip), size: number(size), pretty: list::on(parameters, "pretty")? })
    }

    /// The answer with this part of a list of `total` entries.
    fn answer(&self, part: Value, total: u32) -> Response {
        let mut response = write(StatusCode::OK, part, self.pretty);
        response.headers_mut().insert(PAGES, HeaderValue::from(total.div_ceil(self.size).max(1)));
        response
    }
}

async fn versions(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let (kind, id) = (place.kind(&state)?, place.id.as_str());
    let paging = Paging::read(&parameters)?;
    let found = state.entities.versions(kind, id, paging.skip, paging.size).await?;
    let current = state.entities.current().slot(kind.collection, id).map(|slot| slot.revision);
    if found.total == 0 && current.is_none() {
        let message =
            format!("there is no entity `{}` in {}, and no history of one", id.escape_debug(), kind.collection);
        return Err(ApiError::not_found(message));
    }
    let list = found.versions.iter().map(|head| Value::Object(shown(head, current))).collect();
    Ok(paging.answer(list, found.total))
}

async fn deleted(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let paging = Paging::read(&parameters)?;
    let found = state.entities.deleted(kind, paging.skip, paging.size).await?;
    let list = found.entities.iter().map(|entity| {
        let mut shown = shown(&entity.deletion, None);
        shown.insert("id".to_owned(), json!(entity.id));
        shown.insert("last_version".to_owned(), json!(entity.last));
        Value::Object(shown)
    });
    Ok(paging.answer(list.collect(), found.total))
}

async fn version(
    State(state): State<AppState>,
    place: Place,
    Query(parameters): Parameters,
) -> Result<Response, ApiError> {
    let (kind, id) = (place.kind(&state)?, place.id.as_str());
    let number = &place.version;
    let number = number
        .parse()
        .map_err(|_| ApiError::not_found(format!("a version is a whole number, not `{}`", number.escape_debug())))?;
    let found = kept(&state, kind, id, number).await?;
    let since = match parameters.iter().rev().find(|(name, _)| name == "since") {
        Some((_, since)) => Some(kept(&state, kind, id, other_version(since)?).await?),
        None => None,
    };
    let pretty = list::on(&parameters, "pretty")?;
    let current = state.entities.current().slot(kind.collection, id).map(|slot| slot.revision);
    // A contract has up to 80 MiB.
    let shown = tokio::task::spawn_blocking(move || {
        let mut shown = shown(&found.head, current);
        let (document, problems) = match &found.state {
            VersionState::Deleted => (Value::Null, Value::Null),
            VersionState::Is(entity) => (entity.shown(), Value::Null),
            VersionState::Unreadable(problems) => (Value::Null, json!(problems)),
        };
        shown.insert("document".to_owned(), document);
        shown.insert("problems".to_owned(), problems);
        if let Some(since) = since {
            let changes = found.changes_since(&since).map(
                |changes| json!({ "since": since.head.number, "patch": changes.patch, "secrets": changes.secrets }),
            );
            shown.insert("changes".to_owned(), changes.unwrap_or(Value::Null));
        }
        shown
    });
    let shown = shown.await.map_err(|_| ApiError::from(store::StoreError::Closed))?;
    Ok(write(StatusCode::OK, Value::Object(shown), pretty))
}

async fn revert(
    State(state): State<AppState>,
    author: Author,
    place: Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let kind = place.kind(&state)?;
    let body = body::document_within(&headers, body, "the body exceeds 4096 bytes")?;
    let Revert { version } = typed(body).map_err(|problem| ApiError::invalid(vec![problem]))?;
    let precondition = etag::if_match(&headers);
    let entities = state.entities.by(author.history_author(), "");
    let write = async move { entities.revert(kind, &place.id, version, precondition).await };
    let written = audited(&state, author, AuditAction::Revert, kind, Some(format!("version {version}")), write);
    Ok(answer(StatusCode::OK, written.await?))
}

/// A version of an entity; 404 if it is not kept.
async fn kept(state: &AppState, kind: &'static Kind, id: &str, number: u64) -> Result<EntityVersion, ApiError> {
    Ok(state.entities.version(kind, id, number).await?.ok_or(WriteError::NotKept { number })?)
}

/// The number that `since` has.
fn other_version(since: &str) -> Result<u64, ApiError> {
    since.parse().map_err(|_| {
        let message = format!("`since` is the number of a version, not `{}`", since.escape_debug());
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message)
    })
}

/// A version as lists have it; `current` is the revision that is in force.
fn shown(head: &VersionHead, current: Option<u64>) -> Map<String, Value> {
    let VersionHead { number, origin, .. } = head;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let author = (origin.author.kind != AuthorKind::Unknown).then(|| {
        let author = &origin.author;
        json!({ "kind": author.kind.as_str(), "id": text(&author.id), "name": text(&author.name) })
    });
    let at = (origin.at_millis > 0).then(|| clock::rfc3339(origin.at_millis));
    [
        ("version", json!(number)),
        ("at", json!(at)),
        ("author", json!(author)),
        ("action", json!(text(&origin.action).unwrap_or_else(|| "unknown".to_owned()))),
        ("detail", json!(text(&origin.detail))),
        ("in_force", json!(current == Some(*number))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}
