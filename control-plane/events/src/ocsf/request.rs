//! What gateways report on requests: HTTP Activity. What has no request: Detection Finding.

use serde_json::{Map, Value, json};

use super::class::{Event, FAILURE, FINDING, HTTP, Named, OTHER, SUCCESS, UNKNOWN};
use super::fields::{Fields, is_hostname};

/// The actions and dispositions of the profile `security_control` that events have.
const ALLOWED: Named<'_> = (1, "Allowed");
const DENIED: Named<'_> = (2, "Denied");
const OBSERVED: Named<'_> = (3, "Observed");
const BLOCKED: Named<'_> = (2, "Blocked");
const DELAYED: Named<'_> = (14, "Delayed");
const DETECTED: Named<'_> = (15, "Detected");
const LOGGED: Named<'_> = (17, "Logged");
const ALERT: Named<'_> = (19, "Alert");
const CHALLENGE: Named<'_> = (23, "Challenge");

/// Whether the event is about a request that it names. OCSF wants more of one than a method that it does not know.
pub(super) fn has_request(fields: &Fields) -> bool {
    let method = fields.text(&["http", "method"]);
    let has = |name| fields.text(&["http", name]).is_some();
    method.is_some_and(|method| activity(method).0 != OTHER || has("path") || has("request_id"))
}

/// An event about a request.
pub(super) fn http(mut fields: Fields, now_millis: u64) -> Map<String, Value> {
    let method = fields.text(&["http", "method"]).unwrap_or_default().to_owned();
    let activity = activity(&method);
    let mut event = Event::new(&HTTP, activity, &mut fields, now_millis);
    judge(&mut event, &mut fields);
    // The class has these methods and no others: another one is the name of the activity, and unmapped.
    let method = (activity.0 != OTHER).then(|| fields.take_text(&["http", "method"]));
    let path = fields.take_text(&["http", "path"]);
    let id = fields.take_text(&["http", "request_id"]);
    let (hostname, port) = take_host(&mut fields).unzip();
    let url = path.map(|path| json!({ "path": path, "hostname": hostname, "port": port }));
    event.put("http_request", json!({ "http_method": method, "uid": id, "url": url }));
    event.put(
        "dst_endpoint",
        json!({ "hostname": hostname, "port": port, "svc_name": fields.take_text(&["route", "name"]) }),
    );
    let code = fields.take(&["http", "status"], Value::as_u64);
    event.put("http_response", code.map(|code| json!({ "code": code })));
    event.put("status_code", code.map(|code| code.to_string()));
    let source = fields.take_source();
    event.put_source(source, "src_endpoint.ip");
    event.put("actor", fields.take_user().map(|user| json!({ "user": user })));
    event.done(fields)
}

/// An event that is about no single request: a ban by the ledger, an alert.
pub(super) fn finding(mut fields: Fields, now_millis: u64) -> Map<String, Value> {
    let id = fields.text(&["@id"]).unwrap_or("unknown").to_owned();
    let category = fields.text(&["event", "category"]).map(str::to_owned);
    let title = fields.text(&["message"]).or(category.as_deref()).unwrap_or("Security event").to_owned();
    let mut event = Event::new(&FINDING, (1, "Create"), &mut fields, now_millis);
    judge(&mut event, &mut fields);
    event.put_named("status", (1, "New"));
    let rule = (fields.take_text(&["alert", "rule", "id"]), fields.take_text(&["alert", "rule", "name"]));
    let analytic = match rule {
        (None, None) => None,
        (id, name) => Some(json!({ "uid": id, "name": name, "type_id": 1, "type": "Rule" })),
    };
    event.put(
        "finding_info",
        json!({ "uid": id, "title": title, "types": category.map(|it| [it]), "analytic": analytic }),
    );
    let source = fields.take_source();
    event.put_source(source, "evidences[].src_endpoint.ip");
    event.put("actor", fields.take_user().map(|user| json!({ "user": user })));
    event.done(fields)
}

/// Severity, message, status, and what the gateway did.
fn judge(event: &mut Event, fields: &mut Fields) {
    event.take_severity(fields);
    event.put("message", fields.take_text(&["message"]).or_else(|| rule(fields).map(|rule| rule.1.to_owned())));
    let is_alert = fields.take(&["event", "kind"], |kind| (kind.as_str() == Some("alert")).then_some(true));
    event.put("is_alert", is_alert);
    let score = fields.take(&["threat", "score"], |score| score.as_u64().filter(|score| *score <= 100));
    // OCSF has whole scores; the exact one of others stays unmapped.
    let rounded = || Some(fields.get(&["threat", "score"])?.as_f64()?.clamp(0.0, 100.0).round() as u64);
    event.put("risk_score", score.or_else(rounded));
    let code = fields.get(&["http", "status"]).and_then(Value::as_u64);
    let (action, disposition) = outcome(fields);
    event.put_named("action", action);
    event.put_named("disposition", disposition);
    event.put_named(
        "status",
        match code {
            Some(..400) => SUCCESS,
            None if action != DENIED => UNKNOWN,
            _ => FAILURE,
        },
    );
    event.put("status_detail", fields.take_text(&["decision", "reason"]));
    let found = rule(fields).map(|(id, message)| json!({ "uid": id, "name": message }));
    event.put("firewall_rule", found);
    let (id, name) = (fields.take_text(&["config", "id"]), fields.take_text(&["config", "name"]));
    if id.is_some() || name.is_some() {
        let is_applied = fields.get(&["blocking"]).and_then(Value::as_bool);
        event.put("policy", json!({ "uid": id, "name": name, "is_applied": is_applied }));
    }
}

/// What was done with the request: an action and a disposition.
fn outcome(fields: &Fields) -> (Named<'static>, Named<'static>) {
    let is_refused = fields.get(&["block"]).is_some_and(Value::is_object);
    let action = fields.text(&["event", "action"]).unwrap_or_default();
    match (fields.text(&["event", "outcome"]), action) {
        (None, _) if is_refused => (DENIED, BLOCKED),
        (Some("blocked"), "challenge") => (DENIED, CHALLENGE),
        (Some("blocked"), "tarpit") => (ALLOWED, DELAYED),
        (Some("blocked"), _) => (DENIED, BLOCKED),
        (_, "log") => (OBSERVED, LOGGED),
        (_, "alert") => (OBSERVED, ALERT),
        _ => (OBSERVED, DETECTED),
    }
}

/// The rule of the WAF that has refused the request, would have, or matched first. It stays.
fn rule(fields: &Fields) -> Option<(String, &str)> {
    let first = fields.get(&["matches"]).and_then(|matches| matches.get(0));
    let of = |name| fields.get(&[name]).filter(|block| block.is_object());
    let rule = of("block").or_else(|| of("would_block")).or(first)?;
    let message = rule.get("msg")?.as_str().filter(|text| !text.is_empty()).unwrap_or("without a message");
    Some((rule.get("rule_id")?.as_u64()?.to_string(), message))
}

/// Takes out the host of the request, with its port.
fn take_host(fields: &mut Fields) -> Option<(String, Option<u16>)> {
    fields.take(&["http", "host"], |host| {
        let host = host.as_str()?;
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (host, None),
        };
        is_hostname(name).then(|| (name.to_owned(), port))
    })
}

fn activity(method: &str) -> Named<'_> {
    match method {
        "CONNECT" => (1, "Connect"),
        "DELETE" => (2, "Delete"),
        "GET" => (3, "Get"),
        "HEAD" => (4, "Head"),
        "OPTIONS" => (5, "Options"),
        "POST" => (6, "Post"),
        "PUT" => (7, "Put"),
        "TRACE" => (8, "Trace"),
        "PATCH" => (9, "Patch"),
        other => (OTHER, other),
    }
}
