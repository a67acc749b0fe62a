//! How the fabric is doing.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{describe, shapes};
use crate::entities::{AlertRule, ThreatPolicy};
use crate::events::WINDOW_MILLIS;
use crate::fabric::{Fabric, Ledger};
use crate::openapi::Routes;
use crate::rest::ApiError;

/// After this many seconds without news from a gateway, what it told is old.
const STALE_SECONDS: u64 = 300;

pub(super) fn routes() -> Routes<Fabric> {
    Routes::new().on(describe::status(), status)
}

async fn status(State(fabric): State<Fabric>) -> Result<Json<Value>, ApiError> {
    let now = fabric.now();
    let (bans, allowed) = (fabric.store().bans(now).await?.len(), fabric.store().allowlist(now).await?.len());
    let entities = fabric.entities().current();
    let policies: Vec<Value> = entities
        .all::<ThreatPolicy>()
        .map(|policy| json!({ "id": policy.head.id, "name": policy.head.name, "dry_run": policy.dry_run }))
        .collect();
    let rules = entities.all::<AlertRule>().filter(|rule| rule.enabled).count();
    let ledger = Ledger::of(fabric.entities());
    let settings = ledger.settings();
    let node = node();
    Ok(Json(json!({
        "node": node,
        "enabled": true,
        "bans": { "bans": bans, "last_refresh": now, "last_error": null, "node": node },
        "allowlist": { "entries": allowed, "last_refresh": now, "last_error": null },
        "shared_state": {
            "dedicated_store": false,
            "distributed": true,
            "warning": "The state is in the file of this control plane: all its gateways share it, another control plane \
                        does not.",
        },
        "incidents": {
            "held": fabric.events().incidents().len(),
            "window_seconds": WINDOW_MILLIS / 1000,
            "stale_after_sec": STALE_SECONDS,
        },
        "ledger": {
            "enabled": settings.enabled,
            "window_seconds": settings.window_seconds,
            "ban_threshold": shapes::number(settings.ban_threshold),
            "ban_duration_seconds": settings.ban_duration_seconds,
        },
        "policies": policies,
        "tarpit": { "max_held": entities.global().security.tarpit.max_held },
        "alerts": { "enabled": rules > 0, "rules": rules },
    })))
}

/// The name of the host that this control plane runs on.
fn node() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "control plane".to_owned() } else { name.to_owned() }
}
