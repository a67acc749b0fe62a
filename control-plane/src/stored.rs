//! The event store of a control plane: a file beside that of the store, or a stream of the server that has it.

use std::sync::Arc;

use crate::config::ServeConfig;
use events::{EventHub, LiveEvents, keep_events};
use link::ReportReceiver;
use snapshot::Message as _;
use store::events::{EventFile, EventLimits};
use store::{EventStore, Store, StoreError};
use store_redis::{RedisOptions, SharedEvents};
use threat_gate::TrafficReport;
use tokio::sync::watch;

use base::clock;

/// The stored events, and how many of them are kept.
pub type Opened = Option<(Arc<dyn EventStore>, EventLimits)>;

/// Opens the event store that the configuration asks for. The file or the server need not work yet.
///
/// # Errors
/// The URL of the server is wrong, or the copy of its events cannot be made.
pub async fn open(config: &ServeConfig) -> Result<Opened, String> {
    let Some(limits) = config.events.store_limits(config.store.is_some()) else { return Ok(None) };
    let stored: Arc<dyn EventStore> = match &config.store {
        Some(url) => {
            let options = RedisOptions::parse(url).map_err(|error| format!("the URL of the store: {error}"))?;
            let opened = SharedEvents::open(options, &config.data, limits).await;
            Arc::new(opened.map_err(|error: StoreError| error.to_string())?)
        }
        None => Arc::new(EventFile::new(&config.data, limits)),
    };
    Ok(Some((stored, limits)))
}

/// Looks after the stored events, and gives them to the console.
#[must_use]
pub fn start(
    opened: &Opened,
    store: Arc<dyn Store>,
    events: &EventHub,
    stopping: watch::Receiver<bool>,
) -> api::console::StoredEvents {
    if let Some((stored, _)) = opened {
        tokio::spawn(keep_events(Arc::clone(stored), store, clock::now_millis));
    }
    let stored = opened.as_ref().map(|(stored, _)| Arc::clone(stored));
    let live = LiveEvents::new(events.clone(), stored);
    api::console::StoredEvents { stored: opened.clone(), live, stopping }
}

/// Counts the requests that gateways report, for as long as they do. For a task of its own.
pub async fn count_requests(mut reported: ReportReceiver, events: EventHub) {
    while let Some(reports) = reported.next().await {
        let decoded = reports.reports.iter().filter_map(|report| TrafficReport::decode(report.as_slice()).ok());
        for route in decoded.flat_map(|report| report.routes) {
            events.count_requests(&route.route, route.requests);
        }
    }
}
