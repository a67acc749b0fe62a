//! Databases of networks and of places in the console: their state, their refresh, and where addresses are.

use std::net::IpAddr;

use exchange::canonical;
use kit::{Item, OperationAnswer, OperationBody, OperationContext, View};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::databases::DatabaseKind;
use super::super::locate;
use super::super::runtime::{Ordered, Reputation, Want};
use super::super::{AsnDatabase, GeoDatabase, MAX_DATABASES};
use super::{not_done, with_runtime};

/// Addresses of one call, at most.
const MAX_ADDRESSES: usize = 500;

/// Addresses.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GeoBody {
    /// IPv4 or IPv6, at most 500.
    ips: Vec<String>,
}

impl OperationBody for GeoBody {
    const SCHEMA: &'static str = "ReputationGeoBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        if self.ips.len() > MAX_ADDRESSES {
            return not_done(format!("{} addresses are too many: at most {MAX_ADDRESSES} at once", self.ips.len()));
        }
        let mut addresses: Vec<(&String, IpAddr)> = Vec::with_capacity(self.ips.len());
        for ip in &self.ips {
            match ip.trim().parse::<IpAddr>() {
                Ok(address) => addresses.push((ip, canonical(address))),
                Err(_) => return not_done(format!("`{}` is not an address", ip.escape_debug())),
            }
        }
        let view = View::new(context.entities);
        with_runtime(context, |runtime| {
            let place =
                |(ip, address): &(&String, IpAddr)| ((*ip).clone(), json!(locate::place(*address, &view, runtime)));
            let results: Map<String, Value> = addresses.iter().map(place).collect();
            json!({
                "done": true,
                "sources": locate::sources(&view, runtime),
                "attributions": locate::attributions(&view, runtime),
                "results": results,
            })
        })
    }
}

/// The state of all databases of networks.
pub(super) fn networks(view: &View<'_>, runtime: &Reputation) -> Vec<Value> {
    let shown = view.all::<AsnDatabase>().map(|database: &Item<AsnDatabase>| {
        let id = &database.head.id;
        let snapshot = runtime.database(&(DatabaseKind::Asn, id.clone())).snapshot(id);
        json!({ "id": id, "name": database.head.name, "enabled": database.enabled, "url": database.url,
                "format": database.format, "snapshot": snapshot })
    });
    shown.collect()
}

/// The state of all databases of places.
pub(super) fn places(view: &View<'_>, runtime: &Reputation) -> Vec<Value> {
    let shown = view.all::<GeoDatabase>().map(|database: &Item<GeoDatabase>| {
        let id = &database.head.id;
        let snapshot = runtime.database(&(DatabaseKind::Geo, id.clone())).snapshot(id);
        json!({ "id": id, "name": database.head.name, "enabled": database.enabled, "url": database.url,
                "snapshot": snapshot })
    });
    shown.collect()
}

/// Fetches the enabled databases of some kinds now.
pub(super) fn refresh(context: &OperationContext<'_>, kinds: &[DatabaseKind], force: bool) -> OperationAnswer {
    let view = View::new(context.entities);
    let mut keys = Vec::new();
    for kind in kinds {
        let ids: Vec<String> = match kind {
            DatabaseKind::Asn => enabled(view.all::<AsnDatabase>()),
            DatabaseKind::Geo => enabled(view.all::<GeoDatabase>()),
        };
        keys.extend(ids.into_iter().map(|id| (*kind, id)));
    }
    with_runtime(context, |runtime| {
        let want = |key: &(DatabaseKind, String)| Want::RefreshDatabase { key: key.clone(), force };
        let outcomes = runtime.order(keys.iter().map(want).collect());
        let snapshots = keys.iter().zip(&outcomes).map(|(key, outcome)| {
            let mut snapshot = runtime.database(key).snapshot(&key.1);
            if let Some(fields) = snapshot.as_object_mut() {
                fields.insert("refreshing".to_owned(), (*outcome == Ordered::Begun).into());
                if let Ordered::Refused(why) = outcome {
                    fields.insert("error".to_owned(), why.clone().into());
                }
            }
            snapshot
        });
        json!({ "done": true, "snapshots": snapshots.collect::<Vec<_>>() })
    })
}

fn enabled<'a, E: kit::Entity>(all: impl Iterator<Item = &'a Item<E>>) -> Vec<String> {
    let enabled = all.filter(|database| database.is_enabled()).take(MAX_DATABASES);
    enabled.map(|database| database.head.id.clone()).collect()
}
