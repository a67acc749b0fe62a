//! What a trial came to, as `utils/_test` answers it. `docs/console.md` describes the shape.

use seclang::program::EngineMode;
use seclang::vocabulary::Severity;
use seclang::{Intervention, InterventionKind, MatchedRule, Transaction};
use serde_json::{Value, json};

use crate::Watched;

/// The longest text of a match that is shown, in bytes.
const MAX_TEXT: usize = 256;
/// The phase that logs.
const LOGGING: u8 = 5;
/// The most matches of one rule that are shown.
const MAX_MATCHES: usize = 32;

/// The `result` of a trial.
pub(super) fn result(outcome: &Watched) -> Value {
    let matches = outcome.transaction.matched_rules();
    json!({
        "disposition": disposition(outcome),
        "events": matches.iter().filter(|found| found.logged).map(event).collect::<Vec<_>>(),
        "matched_rules": matched_rules(matches),
        "phases": phases(outcome),
        "scores": scores(&outcome.transaction),
        "engine_mode": match outcome.transaction.mode() {
            EngineMode::On => "on",
            EngineMode::DetectionOnly => "detection_only",
            EngineMode::Off => "off",
        },
    })
}

/// What happens to the exchange.
fn disposition(outcome: &Watched) -> Value {
    let would_block = outcome.unenforced.as_ref().or(outcome.transaction.would_block());
    let would_block = would_block.filter(|_| outcome.blocked.is_none());
    let would_block = would_block.map(|demanded| {
        json!({
            "status": status(demanded), "msg": text(&demanded.msg), "rule_id": demanded.rule_id,
        })
    });
    match &outcome.blocked {
        None => json!({
            "action_type": "continue", "status": null, "msg": null, "rule_id": null, "phase": null,
            "would_block": would_block,
        }),
        Some(demanded) => {
            let (kind, location) = match &demanded.kind {
                InterventionKind::Deny => ("deny", None),
                InterventionKind::Drop => ("drop", None),
                InterventionKind::Redirect(url) => ("redirect", Some(text(url))),
            };
            json!({
                "action_type": "block", "status": status(demanded), "msg": text(&demanded.msg),
                "rule_id": demanded.rule_id, "phase": outcome.phase, "kind": kind, "location": location,
            })
        }
    }
}

/// The status that the filter would answer with.
fn status(demanded: &Intervention) -> u16 {
    if (200..=599).contains(&demanded.status) { demanded.status } else { 403 }
}

/// A logged match, with the names of the `matches` of a trail event.
fn event(found: &MatchedRule) -> Value {
    json!({
        "rule_id": found.rule_id,
        "phase": found.phase,
        "msg": text(&found.msg),
        "logdata": text(&found.logdata),
        "severity": found.severity.map(Severity::name),
        "tags": tags(found),
        "variable": text(&found.variable),
        "value": text(&found.value),
    })
}

/// Every rule that matched, once, in the order of the first match.
fn matched_rules(matches: &[MatchedRule]) -> Vec<Value> {
    let mut groups: Vec<(&MatchedRule, Vec<&MatchedRule>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for found in matches {
        let next = groups.len();
        let at = *known.entry((found.rule_id, found.phase)).or_insert(next);
        match groups.get_mut(at) {
            Some((_, all)) => all.push(found),
            None => groups.push((found, vec![found])),
        }
    }
    groups
        .into_iter()
        .map(|(first, all)| {
            let matched: Vec<Value> = all
                .iter()
                .flat_map(|found| found.inputs())
                .filter(|(variable, _)| !variable.is_empty())
                .take(MAX_MATCHES)
                .map(|(variable, value)| json!({ "variable": text(variable), "value": text(value) }))
                .collect();
            json!({
                "id": first.rule_id,
                "phase": first.phase,
                "msg": text(&first.msg),
                "severity": first.severity.map(Severity::name),
                "tags": tags(first),
                "data": text(&first.logdata),
                "matched": matched,
                "count": all.len(),
                "disruptive": first.disruptive,
                "logged": first.logged,
            })
        })
        .collect()
}

fn phases(outcome: &Watched) -> Vec<Value> {
    const NAMES: [&str; 5] = ["request_headers", "request_body", "response_headers", "response_body", "logging"];
    let matches = outcome.transaction.matched_rules();
    (1_u8..)
        .zip(NAMES)
        .map(|(phase, name)| {
            // The last one follows however the exchange ends.
            let ran = phase <= outcome.phase || phase == LOGGING;
            let mut ids: Vec<u64> =
                matches.iter().filter(|found| found.phase == phase).map(|found| found.rule_id).collect();
            ids.dedup();
            let demanded = outcome.blocked.as_ref().filter(|_| outcome.phase == phase);
            json!({
                "phase": phase,
                "name": name,
                "evaluated": ran,
                "rule_ids": ids,
                "interruption": demanded.map(|demanded| json!({
                    "status": status(demanded), "rule_id": demanded.rule_id, "msg": text(&demanded.msg),
                })),
            })
        })
        .collect()
}

/// The anomaly scores as the core rule set keeps them, of release 4 and of 3. Null where it does not run.
fn scores(transaction: &Transaction) -> Value {
    let number = |names: &[&str]| {
        names.iter().find_map(|name| {
            let text = transaction.variable(b"TX", name.as_bytes())?;
            std::str::from_utf8(&text).ok()?.parse::<i64>().ok()
        })
    };
    let inbound = number(&["blocking_inbound_anomaly_score", "anomaly_score"]);
    let outbound = number(&["blocking_outbound_anomaly_score", "outbound_anomaly_score"]);
    let levels: Vec<Value> = (1..=4)
        .filter_map(|level| {
            let of = |name: &str| number(&[&format!("{name}_pl{level}")]);
            let (inbound, outbound) =
                (of("inbound_anomaly_score").or_else(|| of("anomaly_score")), of("outbound_anomaly_score"));
            let known = inbound.is_some() || outbound.is_some();
            known.then(|| json!({ "paranoia_level": level, "inbound": inbound, "outbound": outbound }))
        })
        .collect();
    json!({
        "inbound": inbound,
        "outbound": outbound,
        "total": inbound.unwrap_or(0) + outbound.unwrap_or(0),
        "inbound_threshold": number(&["inbound_anomaly_score_threshold"]),
        "outbound_threshold": number(&["outbound_anomaly_score_threshold"]),
        "detection": {
            "inbound": number(&["detection_inbound_anomaly_score", "detection_anomaly_score"]),
            "outbound": number(&["detection_outbound_anomaly_score"]),
        },
        "levels": levels,
    })
}

fn tags(found: &MatchedRule) -> Vec<String> {
    found.tags.iter().map(|tag| text(tag)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes)).into_owned()
}
