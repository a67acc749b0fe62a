//! The event store of a control plane: a file beside that of the store, or a stream of the server that has it.

use std::sync::Arc;

use crate::config::ServeConfig;
use entities::EventCategory;
use events::{EventHub, LiveEvents, RollupName, keep_events};
use link::ReportReceiver;
use snapshot::{Message as _, TierAction};
use store::events::{EventFile, EventLimits};
use store::{EventStore, Store, StoreError};
use store_redis::{RedisOptions, SharedEvents};
use threat_gate::TrafficReport;
use tokio::sync::watch;

use base::clock;

/// What events of a gateway name as `event.module` beside plugins: the gateway itself, and its link.
const OWN_MODULES: [&str; 2] = ["gateway", "node-link"];

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
        for report in decoded {
            events.count_requests(
                &reports.node,
                report.routes.iter().map(|route| (route.route.as_str(), route.requests)),
            );
        }
    }
}

/// Whether figures are kept by a name that a gateway has sent: those of this release, and routes that there are.
#[must_use]
pub fn is_counted_by(name: RollupName<'_>, is_route: impl FnOnce(&str) -> bool) -> bool {
    match name {
        RollupName::Plugin(plugin) => {
            let is_plugin = || entities::plugins::by_name(plugin).is_some_and(|known| known.name == plugin);
            OWN_MODULES.contains(&plugin) || is_plugin()
        }
        RollupName::Route(id) => is_route(id),
        RollupName::Action(action) => (0..=i32::from(i8::MAX))
            .map_while(|number| TierAction::try_from(number).ok())
            .any(|known| known.word() == action),
        RollupName::Category(category) => serde_json::from_value::<EventCategory>(category.into()).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_kept_by_names_of_this_release_and_routes_that_there_are() {
        let is_counted = |name| is_counted_by(name, |id| id == "shop");
        for (known, made_up) in [
            (RollupName::Plugin("waf"), RollupName::Plugin("made-up")),
            (RollupName::Plugin("threat-response"), RollupName::Plugin("")),
            (RollupName::Plugin("gateway"), RollupName::Plugin("Gateway")),
            (RollupName::Route("shop"), RollupName::Route("made-up")),
            (RollupName::Action("log"), RollupName::Action("Deny")),
            (RollupName::Action("maze"), RollupName::Action("made-up")),
            (RollupName::Category("sensitive_data"), RollupName::Category("SensitiveData")),
            (RollupName::Category("dependency"), RollupName::Category("made-up")),
        ] {
            assert_eq!((is_counted(known), is_counted(made_up)), (true, false), "{known:?}, {made_up:?}");
        }
    }
}
