//! `events/…`: stored events, what they add up to, and those that come.

mod describe;
mod live;
mod overview;
pub(super) mod query;
mod reference;
mod search;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::guard::protect;
use super::state::Console;
use crate::openapi::Routes;
use base::clock;
use events::{LiveEvents, MAX_LISTENERS, STORE};
use store::EventStore;
use store::events::EventLimits;

/// What the endpoints of events need beside the console. Cheap to clone.
#[derive(Clone)]
pub struct StoredEvents {
    /// The stored events and how many of them are kept; `None` if they are not stored.
    pub stored: Option<(Arc<dyn EventStore>, EventLimits)>,
    /// Those that come.
    pub live: LiveEvents,
    /// Becomes true when the control plane stops: streams end then.
    pub stopping: watch::Receiver<bool>,
}

/// What a handler gets.
type Events = State<(Console, StoredEvents)>;

/// The endpoints of this module, for those with a session of `console`.
pub fn router(console: &Console, events: StoredEvents) -> Routes {
    let routes = Routes::new()
        .on(describe::search(), search::search)
        .on(describe::reference(), reference::reference)
        .on(describe::overview(), overview::overview)
        .on(describe::status(), status)
        .on(describe::live(), live::live);
    protect(describe::schemas(routes).with_state((console.clone(), events)), console.clone())
}

/// It answers whatever fails: that is what it is asked for then.
async fn status(State((console, events)): Events) -> Json<Value> {
    Json(state(&console, &events).await)
}

async fn state(console: &Console, events: &StoredEvents) -> Value {
    let exporters = console.inner.events.exporters();
    let exporter = exporters.into_iter().find(|exporter| exporter.name == STORE);
    let (mut kept, mut retention, mut error) = (None, Value::Null, None);
    if let Some((stored, limits)) = &events.stored {
        match stored.status().await {
            Ok(status) => kept = Some(status),
            Err(why) => error = Some(why.to_string()),
        }
        retention = json!({
            "days": limits.age_millis / 86_400_000, "max_mib": limits.bytes >> 20, "max_events": limits.events,
        });
    }
    let (waiting, dropped) = exporter.as_ref().map_or((0, 0), |exporter| (exporter.waiting, exporter.dropped));
    let oldest = kept.as_ref().and_then(|kept| kept.oldest_millis).map(clock::rfc3339);
    json!({
        "enabled": events.stored.is_some(),
        "events": kept.as_ref().map_or(0, |kept| kept.events),
        "bytes": kept.as_ref().map_or(0, |kept| kept.bytes),
        "oldest": oldest,
        "retention": retention,
        "waiting": waiting,
        "dropped": dropped,
        "error": error.or_else(|| exporter.and_then(|exporter| exporter.error)),
        "live_clients": events.live.listeners(),
        "live_clients_max": MAX_LISTENERS.0,
    })
}
