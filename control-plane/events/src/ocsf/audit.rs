//! What was done to the control plane: Authentication for logins and keys, Entity Management for everything else.

use serde_json::{Map, Value, json};

use super::class::{AUTHENTICATION, ENTITY, Event, FAILURE, Named, OTHER, SUCCESS, UNKNOWN};
use super::fields::Fields;

/// The service that operators and keys authenticate to.
const SERVICE: &str = "Palisade control plane";

const LOGON: Named<'_> = (1, "Logon");
const LOGOFF: Named<'_> = (2, "Logoff");

/// An audit event.
pub(super) fn audit(fields: Fields, now_millis: u64) -> Map<String, Value> {
    let action = fields.text(&["action"]).unwrap_or_default().to_owned();
    match action.as_str() {
        "login" => authentication(fields, &action, LOGON, SUCCESS, now_millis),
        "logout" => authentication(fields, &action, LOGOFF, SUCCESS, now_millis),
        "login-refused" | "login-throttled" | "key-refused" | "key-throttled" => {
            authentication(fields, &action, LOGON, FAILURE, now_millis)
        }
        _ => entity(fields, &action, now_millis),
    }
}

fn authentication(
    mut fields: Fields,
    action: &str,
    activity: Named<'_>,
    status: Named<'_>,
    now_millis: u64,
) -> Map<String, Value> {
    let mut event = Event::new(&AUTHENTICATION, activity, &mut fields, now_millis);
    event.put_severity(match action {
        "login-throttled" | "key-throttled" => 3,
        _ if status == FAILURE => 2,
        _ => 1,
    });
    event.put_named("status", status);
    event.put("message", message(&fields, action));
    event.put("status_detail", fields.take_text(&["detail"]));
    event.put("service", json!({ "name": SERVICE }));
    // What was typed in place of a name is in no event: it may be a password.
    let unknown = || json!({ "name": "unknown", "type_id": 0, "type": "Unknown" });
    event.put("user", fields.take_user().unwrap_or_else(unknown));
    put_request(&mut event, &mut fields);
    event.done(fields)
}

fn entity(mut fields: Fields, action: &str, now_millis: u64) -> Map<String, Value> {
    let mut event = Event::new(&ENTITY, activity(action), &mut fields, now_millis);
    let status = match action {
        "ban-refused" => FAILURE,
        // Its detail says whether the message was sent.
        "alert-test" => UNKNOWN,
        _ => SUCCESS,
    };
    event.put_severity(if status == FAILURE { 2 } else { 1 });
    event.put_named("status", status);
    event.put("message", message(&fields, action));
    event.put("comment", fields.take_text(&["detail"]));
    let entity = match fields.take_text(&["ref"]) {
        Some(reference) => {
            let kind = reference.split_once(['/', ':']).map(|(kind, _)| kind);
            json!({ "uid": reference, "type": kind, "type_id": kind.map(|_| OTHER) })
        }
        None => json!({ "name": SERVICE }),
    };
    event.put("entity", entity);
    let user = fields.take_user();
    // The ledger, a gateway's request, and the command line are no users.
    event.put("actor", user.map_or_else(|| json!({ "app_name": "Palisade" }), |user| json!({ "user": user })));
    put_request(&mut event, &mut fields);
    event.done(fields)
}

fn put_request(event: &mut Event, fields: &mut Fields) {
    let source = fields.take_source();
    event.put_source(source, "src_endpoint.ip");
    event.put("http_request", fields.take_text(&["request_id"]).map(|id| json!({ "uid": id })));
}

/// Audit events have no message: the action, what it was done to, and the detail.
fn message(fields: &Fields, action: &str) -> String {
    let mut message = action.to_owned();
    if let Some(reference) = fields.text(&["ref"]) {
        message = format!("{message} {reference}");
    }
    match fields.text(&["detail"]) {
        Some(detail) => format!("{message}: {detail}"),
        None => message,
    }
}

/// Endpoints of plugins have words of their own: those are other activities.
fn activity(action: &str) -> Named<'_> {
    match action {
        "create" | "key-create" | "operator-add" | "allowlist" | "recording-add" => (1, "Create"),
        "update"
        | "revert"
        | "key-expire"
        | "operator-password"
        | "log-level"
        | "extend"
        | "incident-acknowledged"
        | "incident-resolved"
        | "incident-open" => (3, "Update"),
        "delete" | "key-revoke" | "operator-remove" | "allowlist-remove" | "ledger-forget" | "recording-delete" => {
            (4, "Delete")
        }
        "ban" | "ban-refused" => (12, "Suspend"),
        "unban" | "unban-all" => (13, "Resume"),
        other => (OTHER, other),
    }
}
