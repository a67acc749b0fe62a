//! The endpoints of the report.

use std::collections::{BTreeMap, BTreeSet};

use credentials::RouteAudit;
use kit::{NamedSchema, NoReport, OperationContext, Report, ReportParameter, View};
use serde_json::{Value, json};

use super::auth::{Auth, SEVERITIES};
use super::document::{Known, document};
use super::routes::routes;
use crate::control::ApiContract;
use crate::control::operations::GROUP;
use crate::control::runtime::AtWork;

/// The default of `zombie_days`, and the most: what was not seen for longer is not known any more.
const ZOMBIE_DAYS: (u64, u64) = (90, 183);

/// The report of the plugin.
pub(in crate::control) const REPORT: Report = Report {
    console_path: "/security/_api_report",
    admin_path: "/_report",
    id: "apiReport",
    group: &GROUP,
    summary: "The API report: what APIs are asked for, beside their contracts",
    description: "Of each route: the operations of its contract with their calls, the paths outside of it, how payloads differ from it, \
                  what enforcing it would refuse, and which credentials are checked. Values of requests and responses are never in it.",
    query: &[
        ReportParameter {
            name: "route_ids",
            schema: || json!({ "type": "string" }),
            about: "Ids of routes, separated by commas; all routes if absent or empty.",
        },
        ReportParameter {
            name: "zombie_days",
            schema: || json!({ "type": "integer", "minimum": 1, "maximum": ZOMBIE_DAYS.1, "default": ZOMBIE_DAYS.0 }),
            about: "The days without a call after which an operation is a zombie.",
        },
    ],
    make,
    answer_text: "The report.",
    answer,
    schemas: &[
        NamedSchema { name: "ApiReportRoute", schema: route_schema },
        NamedSchema { name: "ApiReportStatuses", schema: statuses_schema },
        NamedSchema { name: "ApiReportRefusals", schema: refusals_schema },
    ],
};

fn make(query: &BTreeMap<String, String>, context: &OperationContext<'_>) -> Result<Value, NoReport> {
    let days = match query.get("zombie_days") {
        None => ZOMBIE_DAYS.0,
        Some(text) => {
            let days = text.parse::<u64>().ok().filter(|days| (1..=ZOMBIE_DAYS.1).contains(days));
            days.ok_or_else(|| {
                let (most, shown) = (ZOMBIE_DAYS.1, text.escape_debug());
                let kept = "which is as long as calls are kept";
                NoReport::Query(format!("`zombie_days` is a whole number from 1 to {most}, {kept}; not `{shown}`"))
            })?
        }
    };
    let mut wanted: BTreeSet<&str> = query
        .get("route_ids")
        .map_or("", String::as_str)
        .split(',')
        .map(str::trim)
        .filter(|id| !id.is_empty())
        .collect();
    let all = wanted.is_empty();
    let mut listed = routes(context.entities);
    listed.retain(|route| all || wanted.remove(route.id.as_str()));
    if let Some(unknown) = wanted.first() {
        // Otherwise a pipeline with a slip in an id would find nothing wrong, for ever.
        let message = format!("`route_ids`: no route that is enabled has the id `{}`", unknown.escape_debug());
        return Err(NoReport::Query(message));
    }
    let Some(at_work) = context.runtime::<AtWork>() else {
        return Err(NoReport::NotYet("this control plane has no API report".to_owned()));
    };
    let view = View::new(context.entities);
    let contract = |id: &str| view.get::<ApiContract>(id).filter(|item| item.body.enabled);
    // Before the inventory is held: a contract that is new takes seconds.
    let contracts: Vec<_> = listed
        .iter()
        .map(|route| {
            let item = contract(route.contract.as_deref()?)?;
            let name = if item.head.name.is_empty() { &item.head.id } else { &item.head.name };
            Some((item.head.id.as_str(), name.as_str(), at_work.report.contracts.get(item)))
        })
        .collect();
    let is_listed: BTreeSet<&str> = listed.iter().map(|route| route.id.as_str()).collect();
    let audits = credentials::audit_routes(context.entities, |id| is_listed.contains(id));
    let audits: BTreeMap<&str, &RouteAudit> = audits.iter().map(|audit| (audit.route_id.as_str(), audit)).collect();
    let Some(state) = at_work.report.wait() else {
        return Err(NoReport::NotYet("the API inventory could not be read from the store yet".to_owned()));
    };
    let known: Vec<Known<'_>> = listed
        .iter()
        .zip(&contracts)
        .map(|(route, contract)| Known {
            route,
            contract: contract.as_ref().map(|(id, name, read)| (*id, *name, &**read)),
            record: state.as_ref().and_then(|state| state.routes.get(&route.id)),
            auth: audits.get(route.id.as_str()).map(|audit| Auth::of(audit)).unwrap_or_default(),
        })
        .collect();
    Ok(document(&known, days, context.now_millis))
}

fn answer() -> Value {
    let route = NamedSchema { name: "ApiReportRoute", schema: route_schema }.reference();
    let count = || json!({ "type": "integer" });
    let severities = json!({
        "type": "object",
        "required": ["high", "medium", "low", "info"],
        "properties": { "high": count(), "medium": count(), "low": count(), "info": count() },
    });
    let names = [
        "routes",
        "with_contract",
        "operations",
        "zombies",
        "unused",
        "shadows",
        "confirmed_shadows",
        "probes",
        "drift",
        "sensitive_drift",
        "would_refuse",
    ];
    let mut properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), count())).collect();
    properties.insert("auth".to_owned(), severities);
    let required: Vec<&str> = names.into_iter().chain(["auth"]).collect();
    json!({
        "type": "object",
        "required": ["zombie_after_days", "routes", "summary"],
        "properties": {
            "zombie_after_days": { "type": "integer" },
            "routes": { "type": "array", "items": route },
            "summary": { "type": "object", "required": required, "properties": properties },
        },
    })
}

fn time() -> Value {
    json!({ "type": ["integer", "null"], "description": "Milliseconds since 1970." })
}

fn statuses_schema() -> Value {
    let names = ["refused", "1xx", "2xx", "3xx", "4xx", "5xx"];
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "integer" }))).collect();
    json!({
        "type": "object",
        "description": "Calls that the gateway has refused, and the answers of the backend by class. Calls without an answer are in neither.",
        "required": names,
        "properties": properties,
    })
}

fn refusals_schema() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "What enforcing the contract would refuse; null for nothing. Beyond 128 the number of callers is an estimate.",
        "required": ["requests", "callers", "samples"],
        "properties": {
            "requests": { "type": "integer" },
            "callers": { "type": "integer" },
            "samples": { "type": "array", "items": {
                "type": "object",
                "required": ["kind", "requests", "where", "detail", "last_seen"],
                "properties": {
                    "kind": { "type": "string" },
                    "requests": { "type": "integer" },
                    "where": { "type": "string", "description": "Where the last one did not match." },
                    "detail": { "type": "string", "description": "What is expected there; never a value." },
                    "last_seen": time(),
                },
            } },
        },
    })
}

fn route_schema() -> Value {
    let statuses = || NamedSchema { name: "ApiReportStatuses", schema: statuses_schema }.reference();
    let refusals = || NamedSchema { name: "ApiReportRefusals", schema: refusals_schema }.reference();
    let counted = |state: &[&str], more: Value| {
        let mut properties = json!({
            "method": { "type": "string" },
            "path": { "type": "string" },
            "state": { "enum": state },
            "hits": { "type": "integer" },
            "last_seen": time(),
            "statuses": statuses(),
        });
        if let (Some(all), Value::Object(more)) = (properties.as_object_mut(), more) {
            all.extend(more);
        }
        let required: Vec<String> =
            properties.as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect();
        json!({ "type": "array", "items": { "type": "object", "required": required, "properties": properties } })
    };
    let operations = json!({ "operation_id": { "type": "string" }, "would_refuse": refusals() });
    let confirmed =
        json!({ "type": "boolean", "description": "False where the path seems to be answered as any path is." });
    let drift = json!({
        "type": "object",
        "required": ["operation", "kind", "where", "observed", "sensitive", "count", "last_seen"],
        "properties": {
            "operation": { "type": "string" },
            "kind": { "enum": ["undeclared_field", "missing_field", "type_mismatch", "undeclared_status", "undeclared_media_type"] },
            "where": { "type": "string", "description": "`request` or a status, and a path: `200 $.items[].ssn`." },
            "observed": { "type": "string", "description": "Types, a status, or a media type; never a value." },
            "sensitive": { "type": "boolean" },
            "count": { "type": "integer" },
            "last_seen": time(),
        },
    });
    let text = || json!({ "type": "string" });
    json!({
        "type": "object",
        "required": [
            "route_id", "route_name", "contract", "mode", "compiles", "observed_since", "operations", "shadows", "probes",
            "outside_would_refuse", "drift", "auth",
        ],
        "properties": {
            "route_id": text(),
            "route_name": text(),
            "contract": { "type": ["object", "null"], "required": ["id", "name"], "properties": { "id": text(), "name": text() } },
            "mode": { "enum": ["monitor", "enforce", null] },
            "compiles": { "type": ["boolean", "null"] },
            "observed_since": time(),
            "operations": counted(&["used", "unused", "zombie"], operations),
            "shadows": counted(&["shadow"], json!({ "confirmed": confirmed })),
            "probes": counted(&["probe", "unclear"], json!({})),
            "outside_would_refuse": refusals(),
            "drift": { "type": "array", "items": drift },
            "auth": auth_schema(),
        },
    })
}

/// The audit of credentials of a route.
fn auth_schema() -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "required": ["checks", "findings"],
        "properties": {
            "checks": { "type": "array", "items": {
                "type": "object",
                "required": ["plugin", "label", "schemes", "include", "exclude", "enforcing"],
                "properties": {
                    "plugin": text(),
                    "label": text(),
                    "schemes": texts(),
                    "include": texts(),
                    "exclude": texts(),
                    "enforcing": { "type": "boolean", "description": "False where requests without a credential pass." },
                },
            } },
            "findings": { "type": "array", "items": {
                "type": "object",
                "required": ["severity", "kind", "route_id", "method", "path", "detail", "checks", "declared"],
                "properties": {
                    "severity": { "enum": SEVERITIES },
                    "kind": { "enum": ["unauthenticated", "scheme_mismatch", "no_credential", "public", "undeclared_auth"] },
                    "route_id": text(),
                    "method": { "type": "string", "description": "`*` for a route without a contract." },
                    "path": { "type": "string", "description": "`*` for a route without a contract." },
                    "detail": text(),
                    "checks": texts(),
                    "declared": texts(),
                },
            } },
        },
    })
}
