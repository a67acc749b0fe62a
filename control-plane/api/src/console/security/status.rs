//! The status of the decision fabric.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{describe, shapes};
use crate::console::state::node;
use crate::openapi::Routes;
use compiler::acts;
use entities::AlertRule;
use fabric::{Fabric, Ledger, TableStatus};
use policies::ThreatPolicy;
use store::Store;
use xds::{Hub, NodeStatus};

pub(super) fn routes() -> Routes<(Fabric, Hub)> {
    Routes::new().on(describe::status(), status)
}

/// It answers whatever fails: that is what it is asked for then.
async fn status(State((fabric, hub)): State<(Fabric, Hub)>) -> Json<Value> {
    let entities = fabric.entities().current();
    let policies: Vec<Value> = entities
        .all::<ThreatPolicy>()
        .map(|policy| json!({ "id": policy.head.id, "name": policy.head.name, "dry_run": policy.dry_run }))
        .collect();
    let rules = entities.all::<AlertRule>().filter(|rule| rule.enabled).count();
    let ledger = Ledger::of(fabric.entities());
    let settings = ledger.settings();
    let node = node();
    let counts = fabric.counts().await;
    let faults = fabric.store().faults();
    let last_error = counts.error.or_else(|| Some(faults.writes.or(faults.reads)?.to_string()));
    let (refreshed, links) = (fabric.announcer().refreshed(), fabric.announcer().links());
    let security = &entities.global().security;
    Json(json!({
        "node": node,
        "enabled": acts(&entities),
        "bans": { "bans": counts.bans, "last_refresh": refreshed.bans, "last_error": last_error, "node": node },
        "allowlist": { "entries": counts.allowed, "last_refresh": refreshed.allowed, "last_error": last_error },
        "shared_state": {
            "dedicated_store": fabric.store().is_dedicated(),
            "distributed": links > 0,
            "leads": *fabric.store().leads().borrow(),
            "warning": warning(fabric.store(), links, last_error.as_deref()),
        },
        "incidents": {
            "held": fabric.events().incidents_count(),
            "window_seconds": security.incidents.window_seconds,
            "stale_after_sec": security.incidents.stale_after_seconds,
        },
        "ledger": {
            "enabled": settings.enabled,
            "window_seconds": settings.window_seconds,
            "ban_threshold": shapes::number(settings.ban_threshold),
            "ban_duration_seconds": settings.ban_duration_seconds,
        },
        "policies": policies,
        "tarpit": { "max_held": security.tarpit.max_held },
        "alerts": { "enabled": rules > 0, "rules": rules },
        "nodes": nodes(&hub.nodes(), links),
        "tables": fabric.tables().into_iter().map(table).collect::<Vec<_>>(),
        "publication": hub.publication_status(),
        "problems": fabric.events().troubles(),
    }))
}

/// What there is to know of where the state is; null where every gateway of every control plane shares it, durably. `failing` is why the
/// store does not work.
fn warning(store: &dyn Store, links: usize, failing: Option<&str>) -> Option<String> {
    let mut all = Vec::new();
    if links == 0 {
        all.push("No gateway is linked to this control plane: bans take effect once one is.".to_owned());
    }
    if !store.is_dedicated() {
        if links > 0 {
            all.push(
                "The state is in the file of this control plane: its gateways share it, those of another control plane do not."
                    .to_owned(),
            );
        }
    } else if let Some(why) = failing {
        all.push(format!(
            "The shared store does not work ({why}): gateways go on with what they know, and nothing new is shared until it does."
        ));
    }
    all.extend(store.cautions().into_iter().map(|caution| format!("{caution}.")));
    (!all.is_empty()).then(|| all.join(" "))
}

fn nodes(nodes: &[NodeStatus], links: usize) -> Value {
    let count = |holds: fn(&NodeStatus) -> bool| nodes.iter().filter(|node| holds(node)).count();
    json!({
        "known": nodes.len(),
        "connected": count(|node| node.connected),
        "behind": count(|node| node.behind),
        "stale": count(|node| node.stale),
        "links": links,
    })
}

fn table(table: TableStatus) -> Value {
    let TableStatus { name, state, base_bytes, current, behind } = table;
    json!({ "name": name, "state": state, "base_bytes": base_bytes, "workers": { "current": current, "behind": behind } })
}
