//! What the endpoints are for, for the document of the API.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::paging;
use crate::console::describe::object;
use crate::names::NAMESPACE;
use crate::openapi::{Group, JSON, Operation, Routes, reference};
use fabric::Fabric;

fn group() -> Group {
    let about = "The state of the decision fabric: bans, the allowlist, the ledger, incidents. A call that cannot be carried out \
                 is answered with 200 and `done: false`. Every change is reported as a `SvcWafSecurityAudit`.";
    Group { name: "console: security".to_owned(), about: about.to_owned() }
}

pub(super) fn status() -> Operation {
    get("_status", "security_status", "The status of the decision fabric").answers(
        StatusCode::OK,
        "Counts, settings, the state of the publication, and current problems.",
        reference("FabricStatus"),
    )
}

pub(super) fn bans() -> Operation {
    let filters = [
        ("ref", "Only the ban on this identity."),
        ("reason", "Only those with exactly this reason."),
        ("issued_by", "Only those of this operator or node, or of `ledger`."),
        (
            "text",
            "Only those with this text in key, reason, issuer or a tag, in either case, or on the identity that it is.",
        ),
    ];
    let bans = get("_bans", "bans", "The live bans with their evidence");
    paging::describe(bans, &filters).answers(StatusCode::OK, "By key.", list("bans", "Ban"))
}

pub(super) fn allowlist() -> Operation {
    let filters = [
        ("ref", "Only the entry of this identity."),
        ("reason", "Only those with exactly this reason."),
        ("added_by", "Only those of this operator."),
        (
            "text",
            "Only those with this text in key, reason or operator, in either case, or of the identity that it is.",
        ),
    ];
    let allowlist = get("_allowlist", "allowlist", "The allowlist");
    paging::describe(allowlist, &filters).answers(StatusCode::OK, "By key.", list("entries", "AllowlistEntry"))
}

pub(super) fn incidents() -> Operation {
    let filters = [
        ("ref", "Only the incident of this identity, by its key."),
        ("state", "Only those in this state: `open` or `acknowledged`."),
        (
            "outcome",
            "Only those of which a request was refused (`enforced`), or none (`observed`), or whose caller is `banned`.",
        ),
        (
            "text",
            "Only those with this text in key, last message, last node, a tag, route, category or action, in either case, or of \
             the identity that it is.",
        ),
    ];
    let incidents = get("_incidents", "incidents", "The incidents of the last half hour that are not resolved");
    paging::describe(incidents, &filters).answers(
        StatusCode::OK,
        "The most recent first.",
        list("incidents", "ConsoleIncident"),
    )
}

pub(super) fn ban() -> Operation {
    let refused = object(json!({
        "done": { "const": false }, "refused": { "const": "allowlisted" }, "error": { "type": "string" },
        "allowlist": reference("AllowlistEntry"),
    }));
    let live = live();
    post("_ban", "ban", "Ban by hand", "BanBody")
        .describe(
            "If the identity is banned already, the later end applies. The ban is enforced under a policy in dry run as well. \
             `ban.key` is the banned identity.",
        )
        .example(json!({ "ref": "ip:192.0.2.1", "duration_seconds": 3600, "reason": "scans" }))
        .answers(StatusCode::OK, "The ban is in force, or the reason why not.", or_not(vec![live, refused]))
}

/// A ban by hand that is in force.
fn live() -> Value {
    let reason = json!({ "type": "string", "description": "Why no gateway enforces it; only if `enforced` is false." });
    json!({
        "type": "object", "required": ["done", "ban", "enforced"],
        "properties": {
            "done": { "const": true }, "ban": reference("Ban"), "enforced": { "type": "boolean" }, "reason": reason,
        },
    })
}

pub(super) fn extend() -> Operation {
    post("_extend", "extend", "Move the end of a ban", "ExtendBody")
        .example(json!({ "ref": "ip:192.0.2.1", "duration_seconds": 3600 }))
        .describe("The ban is by hand from then on: it is enforced under a policy in dry run as well.")
        .answers(StatusCode::OK, "The ban, or `done: false` if there is none.", or_not(vec![live()]))
}

pub(super) fn unban() -> Operation {
    let removed = with("removed", json!({ "type": "integer", "minimum": 0 }));
    let one = object(json!({
        "done": { "const": true }, "ref": reference("IdentityRef"),
        "still_banned_by": { "type": "array", "items": { "type": "string" } },
    }));
    post("_unban", "unban", "Lift a ban, or all", "UnbanBody")
        .describe("It is also done if there was no ban. `still_banned_by` has the wider bans that cover the address.")
        .example(json!({ "ref": "ip:192.0.2.1" }))
        .answers(StatusCode::OK, "The identity, or the number of lifted bans.", or_not(vec![one, removed]))
}

pub(super) fn allow() -> Operation {
    let allowed = object(json!({
        "done": { "const": true }, "entry": reference("AllowlistEntry"), "released": { "type": "boolean" },
        "lifted": { "type": "array", "items": { "type": "string" } },
    }));
    post("_allow", "allow", "Put an identity on the allowlist", "AllowBody")
        .describe(
            "It is never banned while the entry exists; its requests are still inspected. Its ledger entry is removed.",
        )
        .example(json!({ "ref": "ip:192.0.2.0/24", "reason": "the office", "unban": true, "duration_seconds": null }))
        .answers(StatusCode::OK, "The entry, and whether a ban was lifted.", or_not(vec![allowed]))
}

pub(super) fn disallow() -> Operation {
    post("_disallow", "disallow", "Take an identity off the allowlist", "DisallowBody")
        .example(json!({ "ref": "ip:192.0.2.0/24" }))
        .answers(StatusCode::OK, "The identity of the entry.", or_not(vec![with("ref", reference("IdentityRef"))]))
}

pub(super) fn incident_state() -> Operation {
    post("_incident_state", "incident_state", "Change the state of an incident", "IncidentStateBody")
        .describe("A resolved incident leaves the list, and is reopened when its identity causes new events.")
        .example(json!({ "key": "ip:192.0.2.1", "state": "acknowledged", "note": "looking" }))
        .answers(StatusCode::OK, "The state.", or_not(vec![with("workflow", reference("IncidentWorkflow"))]))
}

pub(super) fn ledger() -> Operation {
    let entry = object(json!({ "key": { "type": "string" }, "score": { "type": "number" } }));
    let top = with("top", json!({ "type": "array", "items": entry, "maxItems": 50 }));
    let one = object(json!({
        "done": { "const": true }, "ref": reference("IdentityRef"), "score": { "type": "number", "minimum": 0 },
    }));
    post("_ledger", "ledger", "Read or clear the ledger", "LedgerBody").example(json!({})).answers(
        StatusCode::OK,
        "The highest totals, the total of one identity, or the confirmation that it was removed.",
        or_not(vec![top, one, object(json!({ "done": { "const": true } }))]),
    )
}

pub(super) fn simulate() -> Operation {
    let outcome = object(json!({
        "done": { "const": true },
        "policy": object(json!({
            "id": { "type": "string" }, "name": { "type": "string" }, "dry_run": { "type": "boolean" },
        })),
        "score": { "type": "number" },
        "tier": { "type": ["integer", "null"], "description": "The tier's place in the policy, from 0." },
        "action": { "enum": ["allow", "log", "challenge", "throttle", "tarpit", "deny", "maze", "ban"] },
        "enforced": { "type": "boolean", "description": "The action denies, and the policy is not in dry run." },
    }));
    post("_simulate", "simulate", "What a policy would do at a score", "SimulateBody")
        .example(json!({ "score": 75, "policy": "builtin" }))
        .answers(StatusCode::OK, "The tier and its action.", or_not(vec![outcome]))
}

/// By hand: the schema of a rule is that of the collection.
pub(super) fn alert_test_body() -> Value {
    let id = json!({ "type": ["string", "null"], "description": "The id of an alert rule." });
    let rule = json!({
        "anyOf": [reference("AlertRule"), { "type": "null" }],
        "description": "An alert rule with its secrets; it need not be stored.",
    });
    json!({ "type": "object", "properties": { "id": id, "rule": rule }, "additionalProperties": false })
}

pub(super) fn alert_test() -> Operation {
    let delivery = object(json!({
        "status": { "type": ["integer", "null"], "description": "Null if there was no call." },
        "ok": { "type": "boolean", "description": "The channel accepted it." },
        "body": { "type": "string", "description": "Its answer, at most 2 KiB." },
    }));
    let sent = object(json!({
        "done": { "const": true }, "channel": { "enum": ["slack", "teams", "pagerduty", "webhook", "event"] },
        "delivery": delivery,
    }));
    post("_alert_test", "alert_test", "Send a test message to the channel of an alert rule", "AlertTestBody")
        .describe("One attempt of at most 30 seconds, even if the rule is disabled.")
        .example(json!({ "id": "on-call" }))
        .answers(StatusCode::OK, "The answer of the channel, or why there was no call.", or_not(vec![sent]))
}

/// Adds the schemas that the answers name.
pub(super) fn schemas(routes: Routes<Fabric>) -> Routes<Fabric> {
    let text = || json!({ "type": "string" });
    let millis = || json!({ "type": "integer", "minimum": 0, "description": "Milliseconds since 1970." });
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let step = object(json!({ "at": millis(), "action": text(), "by": text(), "detail": text() }));
    let ban = object(json!({
        "ref": reference("IdentityRef"), "key": text(), "reason": text(), "tags": texts(), "score": { "type": "number" },
        "issued_at": millis(), "until": millis(), "issued_by": text(), "signals": { "type": "array" },
        "timeline": { "type": "array", "items": step, "maxItems": 20 }, "last_action": or_null(text()),
        "last_action_by": or_null(text()), "last_action_at": or_null(millis()),
    }));
    let entry = object(json!({
        "ref": reference("IdentityRef"), "key": text(), "reason": text(), "added_by": text(), "added_at": millis(),
        "until": or_null(millis()), "permanent": { "type": "boolean" },
    }));
    let workflow = object(json!({
        "key": text(), "state": { "enum": ["open", "acknowledged", "resolved"] }, "by": text(), "at": millis(),
        "note": text(),
    }));
    let further = object(json!({
        "workflow": or_null(reference("IncidentWorkflow")), "banned": { "type": "boolean" },
        "ban": or_null(reference("Ban")), "allowlisted": { "type": "boolean" },
        "allowlist_entry": or_null(reference("AllowlistEntry")),
    }));
    let count = || json!({ "type": "integer", "minimum": 0 });
    let error = || json!({ "type": ["string", "null"] });
    let status = object(json!({
        "node": text(),
        "enabled": { "type": "boolean" },
        "bans": object(json!({
            "bans": count(), "last_refresh": or_null(millis()), "last_error": error(), "node": text(),
        })),
        "allowlist": object(json!({
            "entries": count(), "last_refresh": or_null(millis()), "last_error": error(),
        })),
        "shared_state": object(json!({
            "dedicated_store": { "type": "boolean" }, "distributed": { "type": "boolean" }, "leads": { "type": "boolean" },
            "warning": error(),
        })),
        "incidents": object(json!({ "held": count(), "window_seconds": count(), "stale_after_sec": count() })),
        "ledger": object(json!({
            "enabled": { "type": "boolean" }, "window_seconds": count(), "ban_threshold": { "type": "number" },
            "ban_duration_seconds": count(),
        })),
        "policies": { "type": "array", "items": object(json!({
            "id": text(), "name": text(), "dry_run": { "type": "boolean" },
        })) },
        "tarpit": object(json!({ "max_held": count() })),
        "alerts": object(json!({ "enabled": { "type": "boolean" }, "rules": count() })),
        "nodes": object(json!({
            "known": count(), "connected": count(), "behind": count(), "stale": count(), "links": count(),
        })),
        "tables": { "type": "array", "items": object(json!({
            "name": text(), "state": text(), "base_bytes": count(),
            "workers": object(json!({ "current": count(), "behind": count() })),
        })) },
        "publication": reference("PublicationStatus"),
        "problems": { "type": "array", "items": reference("Trouble") },
    }));
    routes
        .schema_as("Ban", ban)
        .schema_as("AllowlistEntry", entry)
        .schema_as("IncidentWorkflow", workflow)
        .schema_as("ConsoleIncident", json!({ "allOf": [reference("Incident"), further] }))
        .schema_as("FabricStatus", status)
        .schema_as("NotDone", object(json!({ "done": { "const": false }, "error": text() })))
        .answer_schema::<events::Incident>()
        .answer_schema::<events::Trouble>()
        .answer_schema::<xds::PublicationStatus>()
}

fn get(path: &str, id: &str, summary: &str) -> Operation {
    Operation::new(Method::GET, format!("{NAMESPACE}/security/{path}"), format!("console.{id}"), group(), summary)
}

fn post(path: &str, id: &str, summary: &str, body: &str) -> Operation {
    Operation::new(Method::POST, format!("{NAMESPACE}/security/{path}"), format!("console.{id}"), group(), summary)
        .takes("At most 64 KiB.", [(JSON, reference(body))])
}

/// One of these answers, or `done: false`.
fn or_not(mut answers: Vec<Value>) -> Value {
    answers.push(reference("NotDone"));
    json!({ "anyOf": answers })
}

fn with(field: &str, schema: Value) -> Value {
    let mut properties = json!({ "done": { "const": true } });
    properties[field] = schema;
    object(properties)
}

fn list(field: &str, item: &str) -> Value {
    let mut properties = json!({});
    properties[field] = json!({ "type": "array", "items": reference(item) });
    object(properties)
}
