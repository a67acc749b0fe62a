//! `_reference`: all that is stored of one request, by the reference that a refused caller sees.

use axum::Json;
use axum::extract::{Query, State};
use serde_json::{Map, Value, json};

use super::search::shown;
use super::{Events, query};
use crate::error::ApiError;
use crate::query::Parameters;
use base::clock;
use store::events::{EventField, EventPage, EventQuery, MAX_VALUE_BYTES};

/// The events of one request that are answered, at most: an exchange has 16, and a caller may choose its reference.
const MAX_EVENTS: u32 = 100;
/// The signals and the rules that are answered, at most.
const MAX_ENTRIES: usize = 200;

pub(super) async fn reference(
    State((_, events)): Events,
    Query(parameters): Parameters,
) -> Result<Json<Value>, ApiError> {
    let reference = match parameters.as_slice() {
        [(_, reference)] if (1..=MAX_VALUE_BYTES).contains(&reference.len()) => reference.clone(),
        _ => return Err(query::wrong(format!("`reference` is needed once, with 1 to {MAX_VALUE_BYTES} bytes"))),
    };
    let filters = vec![(EventField::Reference, reference.clone())];
    let query = EventQuery { filters, limit: MAX_EVENTS, ..EventQuery::default() };
    let page = match &events.stored {
        Some((stored, _)) => stored.search(query).await?,
        None => EventPage::default(),
    };
    Ok(Json(answer(&reference, &page)))
}

fn answer(reference: &str, page: &EventPage) -> Value {
    let read = |line: &[u8]| serde_json::from_slice::<Value>(line).unwrap_or_default();
    let all: Vec<(u64, Value)> = page.events.iter().map(|event| (event.at_millis, read(&event.line))).collect();
    let of_type =
        |kind: &'static str| all.iter().filter(move |(_, event)| event.get("@type") == Some(&Value::from(kind)));
    let gravest = of_type("SvcSecurityEvent")
        .filter(|(_, event)| event.get("http").is_some())
        .max_by_key(|(_, event)| rank(event));
    // The trail alone, if no plugin acted on the request.
    let told = gravest.or_else(|| of_type("SvcWafTrailEvent").next());
    let mut signals: Vec<&Value> = Vec::new();
    for signal in
        of_type("SvcSecurityEvent").filter_map(|(_, event)| event.pointer("/threat/signals")?.as_array()).flatten()
    {
        if signals.len() < MAX_ENTRIES && !signals.contains(&signal) {
            signals.push(signal);
        }
    }
    let rules: Vec<Value> = of_type("SvcWafTrailEvent").flat_map(|(_, event)| rules(event)).take(MAX_ENTRIES).collect();
    json!({
        "reference": reference,
        "found": !all.is_empty(),
        "request": told.map(|(at, event)| request(*at, event)),
        "verdict": gravest.map(|(_, event)| verdict(event)),
        "incident": gravest.and_then(|(_, event)| event.pointer("/incident/id")),
        "signals": signals,
        "rules": rules,
        "events": page.events.iter().map(shown).collect::<Vec<_>>(),
        "truncated": page.next.is_some(),
    })
}

/// How grave an event is: enforced, then refused, then kept by a dry run, then by its score.
fn rank(event: &Value) -> (bool, bool, bool, u64) {
    let is = |path: &str| event.pointer(path) == Some(&Value::Bool(true));
    let score = event.pointer("/threat/score").and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, 100.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    let score = score as u64;
    let is_refused = event.pointer("/event/outcome") == Some(&Value::from("blocked"));
    (is("/decision/enforced"), is_refused, is("/decision/dry_run"), score)
}

fn request(at_millis: u64, event: &Value) -> Value {
    let field = |path: &str| event.pointer(path).cloned().unwrap_or_default();
    json!({
        "at": clock::rfc3339(at_millis),
        "method": field("/http/method"), "host": field("/http/host"), "path": field("/http/path"),
        "status": field("/http/status"),
        "route": { "id": field("/route/id"), "name": field("/route/name"), "node": field("/route/node") },
        "source": {
            "ip": field("/source/ip"), "network": field("/source/network"), "apikey": field("/source/apikey"),
            "user": field("/source/user"),
        },
    })
}

fn verdict(event: &Value) -> Value {
    let field = |path: &str| event.pointer(path).cloned().unwrap_or_default();
    json!({
        "outcome": field("/event/outcome"), "action": field("/event/action"), "module": field("/event/module"),
        "dry_run": field("/decision/dry_run"), "enforced": field("/decision/enforced"), "score": field("/threat/score"),
        "tier": field("/decision/tier"), "reason": field("/decision/reason"), "policy": field("/decision/policy"),
    })
}

/// The rules that matched, each with the WAF config that has it.
fn rules(event: &Value) -> Vec<Value> {
    let refusal = ["/block/rule_id", "/would_block/rule_id"].iter().find_map(|path| event.pointer(path));
    let matches = event.get("matches").and_then(Value::as_array).into_iter().flatten();
    let rule = |found: &Value| {
        let mut rule = Map::new();
        for name in ["rule_id", "msg", "phase", "severity", "tags", "variable", "value", "logdata"] {
            rule.insert(name.to_owned(), found.get(name).cloned().unwrap_or_default());
        }
        rule.insert("config".to_owned(), event.get("config").cloned().unwrap_or_default());
        let refused = refusal.is_some() && found.get("rule_id") == refusal;
        rule.insert("refused".to_owned(), refused.into());
        Value::Object(rule)
    };
    matches.map(rule).collect()
}
