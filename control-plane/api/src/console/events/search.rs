//! `_search`: stored events, newest first.

use axum::Json;
use axum::extract::{Query, State};
use serde_json::{Value, json};

use super::Events;
use super::query::{self, cursor_text};
use crate::error::ApiError;
use crate::query::Parameters;
use base::clock;
use store::events::{EventPage, FoundEvent, place_millis};

pub(super) async fn search(State((_, events)): Events, Query(parameters): Parameters) -> Result<Json<Value>, ApiError> {
    let query = query::search(&parameters)?;
    let page = match &events.stored {
        Some((stored, _)) => stored.search(query).await?,
        None => EventPage { complete: true, ..EventPage::default() },
    };
    let from = page.next.filter(|_| !page.complete).map(|place| clock::rfc3339(place_millis(place)));
    Ok(Json(json!({
        "events": page.events.iter().map(shown).collect::<Vec<_>>(),
        "next": page.next.map(cursor_text),
        "complete": page.complete,
        "searched_from": from,
        "examined": page.examined,
    })))
}

/// An event as lists have it.
pub(super) fn shown(event: &FoundEvent) -> Value {
    entry(event.at_millis, &event.line)
}

pub(super) fn entry(at_millis: u64, line: &[u8]) -> Value {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    json!({ "id": event.get("@id"), "at": clock::rfc3339(at_millis), "event": event })
}
