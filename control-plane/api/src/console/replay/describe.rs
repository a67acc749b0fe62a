//! What the endpoints are for, for the document of the API.

use axum::http::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::Replaying;
use crate::console::describe::{Common as _, done, object, operation};
use crate::console::state::Console;
use crate::openapi::{Group, JSON, Operation, Routes, reference};

fn group() -> Group {
    let about = "Recorded traffic, and what a changed policy would do with it. Replays change nothing that gateways enforce. Recordings and \
                 replays are those of all control planes that share the store; `node` is the one that answers, and the one that a replay \
                 that is started runs at.";
    Group { name: "console: replay".to_owned(), about: about.to_owned() }
}

fn get(name: &str, id: &str, summary: &str) -> Operation {
    operation(Method::GET, &format!("/replay/{name}"), id, group(), summary)
}

fn post(name: &str, id: &str, summary: &str, body: (&str, &str)) -> Operation {
    let (text, schema) = body;
    operation(Method::POST, &format!("/replay/{name}"), id, group(), summary)
        .takes(text, [(JSON, reference(schema))])
        .reads_a_body()
}

pub(super) fn recordings() -> Operation {
    get("_recordings", "replay_recordings", "The recordings that are kept").answers(
        StatusCode::OK,
        "The recordings, newest first, the limits, and why there can be no replay (`unavailable`; null if there can).",
        reference("Recordings"),
    )
}

pub(super) fn upload() -> Operation {
    let answer = done(json!({ "node": text(), "recording": reference("Recording") }));
    let upload = operation(Method::POST, "/replay/_upload", "replay_upload", group(), "Upload a recording")
        .describe(
            "The body is the file as it is: JSON lines, a HAR file, traces of Envoy's tap filter, an access log, compressed or not; its type \
             is found by its content. It is read at once: secrets are masked, entries that cannot be read are left out and counted.",
        )
        .in_query("name", json!({ "type": "string", "maxLength": 120 }), "The name of the recording, for people. It is required.")
        .takes("The file.", [("application/octet-stream", json!({ "type": "string", "format": "binary" }))])
        .answers(StatusCode::OK, "The recording is kept.", answer)
        .fails(StatusCode::BAD_REQUEST, "invalid_body", "the body was cut off.")
        .fails(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body was not received in time.");
    keeps(upload)
}

pub(super) fn record_events() -> Operation {
    let answer = done(json!({ "node": text(), "recording": reference("Recording") }));
    let summary = "Make a recording of stored events";
    keeps(post("_record_events", "replay_record_events", summary, ("Which events.", "RecordEventsBody")))
        .describe("Events have the method, the host, the path, the caller, the route and the status of a request; no query, no headers and no body.")
        .example(json!({ "name": "shop, yesterday", "route": "shop", "from": "2026-11-26T00:00:00Z", "limit": 2000 }))
        .answers(StatusCode::OK, "The recording is kept.", answer)
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a filter or a time is wrong.")
        .fails(StatusCode::NOT_FOUND, "no_events", "no event fits.")
        .fails(StatusCode::CONFLICT, "not_stored", "events are not stored.")
}

pub(super) fn delete() -> Operation {
    post("_delete", "replay_delete", "Delete a recording", ("The recording.", "RecordingBody"))
        .example(json!({ "id": "recording_0123456789abcdef" }))
        .answers(StatusCode::OK, "It is deleted.", done(json!({})))
        .fails(StatusCode::NOT_FOUND, "unknown_recording", "there is none with this id.")
        .fails(StatusCode::CONFLICT, "in_use", "a replay that waits or runs needs it.")
        .fails(StatusCode::FORBIDDEN, "role", "it is another operator's.")
        .may_break()
}

pub(super) fn start() -> Operation {
    let warnings = json!({ "type": "array", "items": { "type": "string" } });
    let answer = done(json!({ "node": text(), "job": reference("Replay"), "warnings": warnings }));
    post("_start", "replay_start", "Replay a recording with changes", ("The recording and the changes.", "ReplayStartBody"))
        .describe("The changes are judged as a save would be before anything runs; `errors` have pointers into the document if there is one change.")
        .example(json!({
            "recording": "recording_0123456789abcdef",
            "changes": [{ "collection": "waf-configs", "id": "shop", "document": { "name": "Shop", "mode": "on" } }],
        }))
        .answers(StatusCode::OK, "It waits or runs.", answer)
        .fails(StatusCode::BAD_REQUEST, "invalid_entity", "a change would not be saved, or the group or the route does not exist.")
        .fails(StatusCode::NOT_FOUND, "unknown_recording", "there is no such recording.")
        .fails(StatusCode::CONFLICT, "not_servable", "gateways could not be served with this.")
        .fails(StatusCode::PRECONDITION_FAILED, "precondition_failed", "an entity has changed meanwhile.")
        .fails(StatusCode::CONFLICT, "conflict", "an entity with this id exists already.")
        .waits()
        .may_break()
}

pub(super) fn jobs() -> Operation {
    let answer = object(json!({ "node": text(), "jobs": { "type": "array", "items": reference("Replay") } }));
    get("_jobs", "replay_jobs", "The replays").answers(StatusCode::OK, "Newest first.", answer)
}

pub(super) fn job() -> Operation {
    let diff = json!({
        "type": ["object", "null"],
        "description": "The document of `palisade-replay diff --format json`; null until the replay is done.",
    });
    let answer = object(json!({ "node": text(), "job": reference("Replay"), "diff": diff }));
    get("_job", "replay_job", "A replay and its result")
        .in_query("id", text(), "Its id. It is required.")
        .answers(StatusCode::OK, "How far it is, and the differences once it is done.", answer)
        .fails(StatusCode::NOT_FOUND, "unknown_replay", "there is none with this id, or its result is no longer kept.")
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "failed", "the result cannot be read.")
}

pub(super) fn cancel() -> Operation {
    post("_cancel", "replay_cancel", "Cancel a replay", ("The replay.", "ReplayBody"))
        .example(json!({ "id": "replay_0123456789abcdef" }))
        .answers(StatusCode::OK, "It has ended.", done(json!({ "job": reference("Replay") })))
        .fails(StatusCode::NOT_FOUND, "unknown_replay", "there is none with this id.")
        .fails(StatusCode::CONFLICT, "ended", "it has ended already.")
        .fails(StatusCode::FORBIDDEN, "role", "it is another operator's.")
        .may_break()
}

/// What keeping a recording may answer.
fn keeps(operation: Operation) -> Operation {
    operation
        .fails(StatusCode::BAD_REQUEST, "invalid_name", "the name is wrong.")
        .fails(
            StatusCode::BAD_REQUEST,
            "unreadable_recording",
            "nothing in it can be read, or reading it takes too much.",
        )
        .fails(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "it is too large.")
        .fails(StatusCode::CONFLICT, "full", "as many recordings as may be are kept.")
        .waits()
        .may_break()
}

trait Replayed {
    /// Others may have to be waited for.
    fn waits(self) -> Self;
    /// The program or the disk may be missing.
    fn may_break(self) -> Self;
}

impl Replayed for Operation {
    fn waits(self) -> Operation {
        self.fails(StatusCode::TOO_MANY_REQUESTS, "busy", "others are at work.").with_header(
            StatusCode::TOO_MANY_REQUESTS,
            &header::RETRY_AFTER,
            true,
        )
    }

    fn may_break(self) -> Operation {
        self.fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "replay_unavailable",
            "the program `palisade-replay` is missing, or the folder cannot be used.",
        )
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "failed", "the disk or the operating system has failed.")
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn time() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// Adds the schemas of answers.
pub(super) fn schemas(routes: Routes<(Console, Replaying)>) -> Routes<(Console, Replaying)> {
    let texts = || json!({ "type": "array", "items": text() });
    let recording = object(json!({
        "id": text(), "name": text(), "source": { "enum": ["upload", "events"] }, "by": text(), "added_at": time(), "bytes": number(),
        "requests": number(), "unreadable": number(), "reasons": texts(), "first_at": time(), "last_at": time(),
        "unrouted": { "type": "integer", "minimum": 0, "description": "Requests that name no route." },
    }));
    let limits = object(json!({
        "upload_bytes": number(), "recordings": number(), "total_bytes": number(), "waiting": number(), "seconds": number(),
        "memory_mib": number(),
    }));
    let recordings = object(json!({
        "node": text(), "unavailable": { "type": ["string", "null"] }, "stored_events": { "type": "boolean" },
        "recordings": { "type": "array", "items": reference("Recording") }, "bytes": number(), "limits": limits,
    }));
    let progress = object(json!({
        "part": number(), "parts": number(), "requests": number(), "bytes_read": number(), "bytes": number(),
    }));
    let replay = object(json!({
        "id": text(), "recording": text(), "recording_name": text(), "by": text(), "changes": texts(), "group": text(), "route": text(),
        "state": { "enum": ["waiting", "running", "done", "failed", "cancelled"] }, "added_at": time(), "began_at": time(),
        "ended_at": time(), "progress": progress, "error": { "type": ["string", "null"] },
    }));
    routes.schema_as("Recording", recording).schema_as("Recordings", recordings).schema_as("Replay", replay)
}
