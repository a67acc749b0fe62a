//! `_record_events`: a recording of what stored events say of requests.

use std::collections::BTreeSet;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::recordings::keep;
use super::{Replaying, State, describe, refused};
use crate::console::body::{self, Body};
use crate::console::events::query;
use crate::console::state::Console;
use crate::console::who::Who;
use crate::error::ApiError;
use crate::openapi::Routes;
use base::clock;
use entities::{EntitySet, Route};
use replays::Source;
use store::EventStore;
use store::events::{EventQuery, FoundEvent};

/// The requests of a recording if the call does not say, and at most.
pub(super) const REQUESTS: (u32, u32) = (2_000, 10_000);
/// The pages of events that are looked through, at most.
const PAGES: u32 = 100;
/// What events have in the place of a host and a path with a secret in them.
const HIDDEN: &str = "(hidden)";
/// The port of callers, which events do not have.
const PORT: u16 = 40_000;
const NOTE: &str = "It was made of a stored event: the query, the headers and the body are not known.";

/// Which events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordEventsBody {
    /// The name of the recording.
    name: String,
    /// Only events of this route, by its id.
    route: Option<String>,
    /// Only events of this caller, such as `ip:192.0.2.1`.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Only events of this plugin.
    plugin: Option<String>,
    /// From when, in RFC 3339 (UTC).
    from: Option<String>,
    /// Before when, in RFC 3339 (UTC).
    until: Option<String>,
    /// The most requests: 1 to 10000. Default 2000. The newest are taken.
    limit: Option<u32>,
}

pub(super) fn routes() -> Routes<(Console, Replaying)> {
    Routes::new().on(describe::record_events(), record_events).schema::<RecordEventsBody>()
}

async fn record_events(
    axum::extract::State((console, replaying)): State,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let wanted: RecordEventsBody = body::read(&headers, body)?;
    let Some(stored) = &replaying.stored else {
        let message = "events are not stored here; start the control plane with stored events, or upload a recording";
        return Err(ApiError::new(StatusCode::CONFLICT, "not_stored", message));
    };
    let limit = wanted.limit.unwrap_or(REQUESTS.0);
    if !(1..=REQUESTS.1).contains(&limit) {
        return Err(query::wrong(format!("`limit` is 1 to {}", REQUESTS.1)));
    }
    let mut upload =
        replaying.replays.upload(&wanted.name, Source::Events, None).await.map_err(|error| refused(&error))?;
    let entities = console.inner.entities.current();
    let entries = entries(stored.as_ref(), wanted.query()?, limit, &entities).await?;
    if entries.is_empty() {
        let message = "no stored event of a request fits; take a longer time, or another route";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "no_events", message));
    }
    // Events come newest first.
    for entry in entries.iter().rev() {
        upload.write(format!("{entry}\n").as_bytes()).await.map_err(|error| refused(&error))?;
    }
    keep(&console, &who, upload).await
}

impl RecordEventsBody {
    fn query(&self) -> Result<EventQuery, ApiError> {
        let named = [
            ("filter.route", &self.route),
            ("filter.ref", &self.reference),
            ("filter.plugin", &self.plugin),
            ("from", &self.from),
            ("until", &self.until),
        ];
        let given = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let parameters: Vec<(String, String)> = given.collect();
        Ok(EventQuery { limit: query::PAGE.1, ..query::search(&parameters)? })
    }
}

/// The requests that events are about, each once, newest first.
async fn entries(
    stored: &dyn EventStore,
    mut query: EventQuery,
    limit: u32,
    entities: &EntitySet,
) -> Result<Vec<Value>, ApiError> {
    let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    for _ in 0..PAGES {
        let page = stored.search(query.clone()).await?;
        for event in &page.events {
            let Some((reference, entry)) = entry(event, entities) else { continue };
            if reference.is_none_or(|reference| seen.insert(reference)) {
                entries.push(entry);
            }
            if entries.len() == limit {
                return Ok(entries);
            }
        }
        match page.next {
            Some(next) => query.before = Some(next),
            None => break,
        }
    }
    Ok(entries)
}

/// A line of a recording, and the reference of the request; `None` for an event that is about no request, or has none of it.
fn entry(event: &FoundEvent, entities: &EntitySet) -> Option<(Option<String>, Value)> {
    let found: Value = serde_json::from_slice(&event.line).ok()?;
    let text = |pointer: &str| found.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (method, path) = (text("/http/method")?, text("/http/path")?);
    if path == HIDDEN {
        return None;
    }
    let mut request = Map::from_iter([("method".to_owned(), json!(method)), ("path".to_owned(), json!(path))]);
    if let Some(host) = text("/http/host") {
        request.insert("host".to_owned(), json!(host));
    }
    let mut entry = json!({ "at": event.at_millis, "request": request, "notes": [NOTE] });
    let fields = entry.as_object_mut()?;
    if let Some(ip) = text("/source/ip").and_then(|ip| ip.parse().ok()) {
        fields.insert("peer".to_owned(), json!(std::net::SocketAddr::new(ip, PORT).to_string()));
    }
    if let Some(id) = text("/route/id") {
        fields.insert("route".to_owned(), json!(route_name(entities, id)));
    }
    if let Some(status) = found.pointer("/http/status").and_then(Value::as_u64) {
        fields.insert("status".to_owned(), json!(status));
    }
    Some((text("/http/request_id").map(str::to_owned), entry))
}

/// The name by which snapshots know a route.
fn route_name(entities: &EntitySet, id: &str) -> String {
    entities.get::<Route>(id).map_or(id, |route| route.envoy_route_name(&route.head)).to_owned()
}

/// A time as answers have it.
pub(super) fn time(millis: Option<u64>) -> Option<String> {
    millis.map(clock::rfc3339)
}
