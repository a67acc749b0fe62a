//! From an imported configuration to changes of the routes that there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::difference::{Difference, differences};
use crate::envoy::{Imported, ImportedRoute};
use crate::facts::EnvoyRoute;

/// What an import changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportPlan {
    /// In the order of the ids.
    pub changes: Vec<RouteChange>,
    /// The routes that are as they should be already.
    pub unchanged: usize,
}

/// A change of one route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteChange {
    /// Whether the route is new.
    pub action: RouteAction,
    /// The id of the route.
    pub id: String,
    /// The name of the Envoy route.
    pub envoy_route: String,
    /// What differs; of a new route nothing is listed.
    pub differences: Vec<Difference>,
    /// The document of a new route, or the places of one that there is.
    #[serde(skip)]
    pub value: Value,
}

/// What becomes of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteAction {
    /// It is new.
    Create,
    /// What Envoy checks on it has changed.
    Change,
}

/// The pointer of the field that imports write.
const FIELD: &str = "/credentials/envoy";

// === impl RouteChange ===

impl RouteChange {
    /// The JSON patch (RFC 6902) of a change.
    #[must_use]
    pub fn patch(&self) -> Value {
        json!([{ "op": "add", "path": FIELD, "value": self.value }])
    }
}

/// Compares an import with the routes that there are, given as their documents. An import speaks for the listeners that it has read:
/// what a route has of others stays. Of a route that there is only the places in Envoy change; its hosts, paths and plugins
/// belong to its owner. No route is deleted.
#[must_use]
pub fn plan(imported: &Imported, routes: &[Value]) -> ImportPlan {
    let wanted: BTreeMap<&str, &ImportedRoute> =
        imported.routes.iter().map(|route| (route.name.as_str(), route)).collect();
    let mut plan = ImportPlan::default();
    let (mut ids, mut known): (BTreeSet<String>, BTreeSet<&str>) = Default::default();
    for route in routes {
        let id = text(route, "id");
        ids.insert(id.to_owned());
        let name = Some(text(route, "envoy_route")).filter(|name| !name.is_empty()).unwrap_or(id);
        let before: Vec<EnvoyRoute> =
            route.pointer(FIELD).and_then(|places| serde_json::from_value(places.clone()).ok()).unwrap_or_default();
        let found = wanted.get(name);
        known.extend(found.map(|route| route.name.as_str()));
        let kept = before.iter().filter(|place| !imported.listeners.contains(&place.listener)).cloned();
        let after: Vec<EnvoyRoute> =
            kept.chain(found.into_iter().flat_map(|route| route.places.iter().cloned())).collect();
        if after == before {
            plan.unchanged += usize::from(found.is_some());
            continue;
        }
        let field = |places: &[EnvoyRoute]| json!({ "credentials": { "envoy": places } });
        plan.changes.push(RouteChange {
            action: RouteAction::Change,
            id: id.to_owned(),
            envoy_route: name.to_owned(),
            differences: differences(&field(&before), &field(&after)),
            value: json!(after),
        });
    }
    for route in imported.routes.iter().filter(|route| !known.contains(route.name.as_str())) {
        let id = new_id(&route.name, &ids);
        ids.insert(id.clone());
        let value = json!({
            "id": id, "name": route.name, "hosts": route.hosts, "paths": route.paths, "envoy_route": route.name,
            "credentials": { "envoy": route.places },
        });
        let envoy_route = route.name.clone();
        plan.changes.push(RouteChange { action: RouteAction::Create, id, envoy_route, differences: Vec::new(), value });
    }
    plan.changes.sort_by(|one, other| one.id.cmp(&other.id));
    plan
}

fn text<'v>(document: &'v Value, field: &str) -> &'v str {
    document.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// An id that is like the name and that no route has.
fn new_id(name: &str, taken: &BTreeSet<String>) -> String {
    let fit =
        |character: char| if character.is_ascii_alphanumeric() || "._-".contains(character) { character } else { '-' };
    let id: String = name.chars().map(fit).take(100).collect();
    let id = id.trim_matches(['-', '_', '.']);
    let id = if id.is_empty() { "route" } else { id };
    let numbered = (2_u32..).map(|number| format!("{id}-{number}"));
    std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or_default()
}

/// What an import changes, as JSON for tools.
#[must_use]
pub fn summary(imported: &Imported, plan: &ImportPlan, dry_run: bool) -> Value {
    let count = |action| plan.changes.iter().filter(|change| change.action == action).count();
    json!({
        "dry_run": dry_run,
        "listeners": imported.listeners,
        "created": count(RouteAction::Create),
        "changed": count(RouteAction::Change),
        "unchanged": plan.unchanged,
        "changes": plan.changes,
        "warnings": imported.warnings,
        "more_warnings": imported.more_warnings,
    })
}
