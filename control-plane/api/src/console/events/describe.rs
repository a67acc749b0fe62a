//! What the endpoints are for, for the document of the API.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use axum::http::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::query::{FILTERS, PAGE};
use crate::console::describe::operation;
use crate::openapi::{Group, Operation, Routes, reference as schema};
use events::{MAX_LISTENERS, MAX_WAITING_EVENTS};
use store::events::{EventField, MAX_EXAMINED, MAX_VALUE_BYTES};

fn group() -> Group {
    let about = "Stored events, searchable; what they add up to; and events as they come. Events have the fields that gateways give \
                 them, whatever `--events-format` says.";
    Group { name: "console: events".to_owned(), about: about.to_owned() }
}

pub(super) fn search() -> Operation {
    let time =
        || json!({ "oneOf": [{ "type": "string", "format": "date-time" }, { "type": "integer", "minimum": 0 }] });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": PAGE.1, "default": PAGE.0 });
    with_filters(get("_search", "events_search", "Search stored events"), &FILTERS)
        .describe(format!(
            "Newest first. All filters must hold; values are compared exactly. A query examines at most {MAX_EXAMINED} events: if it \
             ends before the page is full, `complete` is false, and `next` goes on from there."
        ))
        .in_query("from", time(), "From when, in RFC 3339 (UTC) or milliseconds since 1970.")
        .in_query("until", time(), "Before when, likewise.")
        .in_query("limit", limit, "Events of a page.")
        .in_query("cursor", json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" }), "`next` of the page before.")
        .answers(StatusCode::OK, "A page of events.", schema("EventPage"))
}

pub(super) fn reference() -> Operation {
    get("_reference", "events_reference", "Explain what happened to one request")
        .describe("By the reference that a refused caller sees: the verdict, every signal, and every rule of the WAF that matched.")
        .in_query("reference", text(), "The reference. It is required.")
        .answers(StatusCode::OK, "All that is stored of the request.", schema("EventReference"))
}

pub(super) fn overview() -> Operation {
    let span = json!({ "type": "string", "enum": ["hour", "day", "week"], "default": "hour" });
    get("_overview", "events_overview", "Count what happened")
        .describe(
            "In steps of a minute (`hour`), ten minutes (`day`) or an hour (`week`), from rollups, which outlive the events. Counted are \
             events about requests, at most 15 seconds late.",
        )
        .in_query("span", span, "The time that is shown, up to now.")
        .answers(StatusCode::OK, "Figures, and what does not work.", schema("EventOverview"))
}

pub(super) fn status() -> Operation {
    get("_status", "events_status", "The status of the event store").answers(
        StatusCode::OK,
        "What is stored, and how much may be.",
        schema("EventStoreState"),
    )
}

pub(super) fn live() -> Operation {
    let of_events: Vec<_> = FILTERS.into_iter().filter(|(_, field)| *field != EventField::Id).collect();
    with_filters(get("_live", "events_live", "Follow events as they come"), &of_events)
        .describe(format!(
            "Server-sent events: `hello`, then `event` (an `EventEntry`), `dropped` (`count` events were left out because the client was \
             slow: {MAX_WAITING_EVENTS} events or 4 MiB wait for it), `heartbeat` every 15 seconds without another one, and `end` \
             (`reason`: `session` or `shutdown`). {} streams at the same time, {} of one operator. The stream does not keep the session \
             alive.",
            MAX_LISTENERS.0, MAX_LISTENERS.1
        ))
        .answers_as(StatusCode::OK, "The stream.", "text/event-stream", json!({ "type": "string" }))
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many streams are open.")
        .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
}

/// The schemas of the answers.
pub(super) fn schemas<S: Clone + Send + Sync + 'static>(routes: Routes<S>) -> Routes<S> {
    let entry = object(json!({
        "id": { "type": ["string", "null"] }, "at": time(), "event": { "type": "object" },
    }));
    let page = object(json!({
        "events": list("EventEntry"), "next": { "type": ["string", "null"] }, "complete": { "type": "boolean" },
        "searched_from": or_null(time()), "examined": count(),
    }));
    let any = || json!({});
    let rule = object(json!({
        "rule_id": any(), "msg": any(), "phase": any(), "severity": any(), "tags": any(), "variable": any(), "value": any(),
        "logdata": any(), "config": any(), "refused": { "type": "boolean" },
    }));
    let request = object(json!({
        "at": time(), "method": any(), "host": any(), "path": any(), "status": any(), "route": { "type": "object" },
        "source": { "type": "object" },
    }));
    let verdict = object(json!({
        "outcome": any(), "action": any(), "module": any(), "dry_run": any(), "enforced": any(), "score": any(), "tier": any(),
        "reason": any(), "policy": any(),
    }));
    let reference = object(json!({
        "reference": { "type": "string" }, "found": { "type": "boolean" }, "request": or_null(request),
        "verdict": or_null(verdict), "incident": any(), "signals": { "type": "array" },
        "rules": { "type": "array", "items": rule }, "events": list("EventEntry"), "truncated": { "type": "boolean" },
    }));
    let figures = || json!({ "requests": count(), "refused": count(), "observed": count(), "dry_run": count() });
    let mut step = figures();
    step["at"] = time();
    let mut row = object(figures());
    row["properties"]["steps"] = json!({ "type": "array", "items": count() });
    row["properties"]["other"] = json!({ "const": true });
    for label in ["name", "id"] {
        row["properties"][label] = json!({ "type": ["string", "null"] });
    }
    let rows = || json!({ "type": "array", "items": row });
    let overview = object(json!({
        "span": { "enum": ["hour", "day", "week"] }, "step_seconds": count(), "from": time(), "until": time(),
        "steps": { "type": "array", "items": object(step) }, "totals": object(figures()), "before": object(figures()),
        "by_plugin": rows(), "by_route": rows(), "by_action": rows(), "by_category": rows(), "health": { "type": "object" },
    }));
    let state = object(json!({
        "enabled": { "type": "boolean" }, "events": count(), "bytes": count(), "oldest": or_null(time()),
        "retention": or_null(object(json!({ "days": count(), "max_mib": count(), "max_events": count() }))),
        "waiting": count(), "dropped": count(), "error": { "type": ["string", "null"] }, "live_clients": count(),
        "live_clients_max": count(),
    }));
    routes
        .schema_as("EventEntry", entry)
        .schema_as("EventPage", page)
        .schema_as("EventReference", reference)
        .schema_as("EventOverview", overview)
        .schema_as("EventStoreState", state)
}

fn get(name: &str, id: &str, summary: &str) -> Operation {
    operation(Method::GET, &format!("/events/{name}"), id, group(), summary).fails(
        StatusCode::BAD_REQUEST,
        "invalid_query",
        "a query parameter is invalid or unknown.",
    )
}

fn with_filters(operation: Operation, filters: &[(&str, EventField)]) -> Operation {
    filters.iter().fold(operation, |operation, (name, field)| operation.in_query(name, text(), about(*field)))
}

fn about(field: EventField) -> &'static str {
    match field {
        EventField::Reference => "The reference of a request (`http.request_id`).",
        EventField::Identity => "A caller: `ip:192.0.2.1`, `ip:2001:db8::/64`, `user:ada`, `apikey:shop`.",
        EventField::Route => "The id of a route.",
        EventField::Config => "The id of a WAF config.",
        EventField::Policy => {
            "What was followed: `threat-policies/strict`, or one of `honeypot-policies` or `waf-configs`."
        }
        EventField::Rule => "The id of a rule of the WAF, or of an alert rule.",
        EventField::Plugin => "`event.module`; `waf` has its trail as well.",
        EventField::Outcome => "`blocked` or `observed`.",
        EventField::Action => "`event.action`; of audit events their action.",
        EventField::Category => "`event.category`.",
        EventField::DryRun => "`true`: those that a dry run kept from being enforced.",
        EventField::Incident => "The id of an incident.",
        EventField::Node => "The id of a gateway.",
        EventField::Type => "`security`, `trail` or `audit`.",
        _ => "`@id` of one event.",
    }
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_VALUE_BYTES })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn list(name: &str) -> Value {
    json!({ "type": "array", "items": schema(name) })
}

fn or_null(schema: Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}

/// An object that has all of these properties.
fn object(properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().map(|properties| properties.keys().collect()).unwrap_or_default();
    json!({ "type": "object", "required": names, "properties": properties })
}
