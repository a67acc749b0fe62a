//! Events: every outcome is one `SvcSecurityEvent`, a line of JSON in the shape of the Elastic Common Schema.

use node_state::{Table, Update};
use serde_json::{Value, json};

use crate::signal::Note;
use crate::{Decision, Exchange, Host, IdentityRef, Metric, Signal, SignalRule, SkipNote};

/// The filter state that holds the events of a request for the access log: a line of JSON each, joined by line feeds.
pub const EVENT_TOKEN: &str = "svc.event";

/// What stands for a path or a host that holds a secret.
const HIDDEN: &str = "(hidden)";

/// The most events that one exchange can emit.
const MAX_EVENTS: usize = 16;

/// How long a caller's events count as one incident after the last of them, in milliseconds.
const INCIDENT_WINDOW: u64 = 1_800_000;

/// The incidents that a node has open: by identity, an id and a count.
const INCIDENTS: Table = Table { name: "svc.incidents", shards: 64, entries_per_shard: 256 };

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The threat fabric and the WAF.
    Threat,
    /// A decoy was touched.
    Honeypot,
    /// A caller failed too often.
    Fail2ban,
    /// A refusal of a banned caller, and bans themselves.
    Ban,
    /// More traffic than usual.
    Traffic,
    /// The API contract.
    Api,
    /// An uploaded file.
    Upload,
    /// Login attempts.
    Login,
    /// Enumeration of objects.
    Objects,
    /// A response that shows internals, such as stack traces.
    Leakage,
    /// Personal or secret data in a message.
    SensitiveData,
    /// A challenge that was presented or answered.
    Challenge,
    /// Something outside the gateway did not answer; the request went on without it.
    Dependency,
}

impl Category {
    /// The category's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Threat => "threat",
            Self::Honeypot => "honeypot",
            Self::Fail2ban => "fail2ban",
            Self::Traffic => "traffic",
            Self::Upload => "upload",
            Self::Login => "login",
            Self::Objects => "objects",
            Self::Leakage => "leakage",
            Self::SensitiveData => "sensitive_data",
            Self::Ban => "ban",
            Self::Api => "api",
            Self::Challenge => "challenge",
            Self::Dependency => "dependency",
        }
    }
}

/// Whether anything was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was recorded; the request went on.
    Observed,
    /// It was enforced.
    Blocked,
}

/// What an event says beyond what the exchange itself knows.
#[derive(Debug, Clone, Copy)]
pub struct SecurityEvent<'a> {
    /// Its category.
    pub category: Category,
    /// Whether anything was done.
    pub outcome: Outcome,
    /// The plugin that speaks.
    pub module: &'a str,
    /// A sentence for people.
    pub message: &'a str,
    /// What was decided.
    pub decision: &'a Decision,
}

impl Exchange {
    /// Emits a security event about this exchange.
    pub fn emit(&mut self, event: &SecurityEvent<'_>, host: &dyn Host) {
        let now = host.now();
        let (incident, count) = match self.caller.identity() {
            Some(identity) => incident(&identity, now, host),
            None => (format!("incident_{:016x}", host.random()), 1),
        };
        let decision = event.decision;
        let mut line = json!({
            "@type": "SvcSecurityEvent",
            "@id": format!("event_{:016x}", host.random()),
            "@timestamp": timestamp(now),
            "event": {
                "kind": "alert",
                "category": event.category.word(),
                "action": decision.action.word(),
                "outcome": match event.outcome { Outcome::Observed => "observed", Outcome::Blocked => "blocked" },
                "severity": severity(decision.score),
                "module": event.module,
                "dataset": format!("svc.{}", event.category.word()),
            },
            "source": self.caller.source(),
            "threat": {
                "score": number(decision.score),
                "tags": self.score.tags(),
                "signals": self.score.noted().map(signal).collect::<Vec<_>>(),
            },
            "incident": { "id": incident, "count": count },
            "route": {
                "id": none_if_empty(&self.route.id),
                "name": none_if_empty(if self.route.label.is_empty() { &self.route.name } else { &self.route.label }),
                "node": none_if_empty(&self.route.node),
            },
            "http": self.http(),
            "message": event.message,
            "decision": {
                "action": decision.action.word(),
                "score": number(decision.score),
                "tier": decision.tier,
                "dry_run": decision.dry_run,
                "enforced": decision.enforced,
                "reason": decision.reason,
                "held_ms": decision.held_millis,
                "policy": none_if_empty(&decision.about.policy),
                "tag": none_if_empty(&decision.about.tag),
                "subject": none_if_empty(&decision.about.subject),
            },
        });
        if let (Some(labels), Some(fields)) = (self.caller.labels.event(), line.as_object_mut()) {
            fields.insert("labels".to_owned(), labels);
        }
        if let (false, Some(fields)) = (self.skips.is_empty(), line.as_object_mut()) {
            fields.insert("skipped".to_owned(), self.skips.iter().map(skip).collect());
        }
        host.count(match event.outcome {
            Outcome::Blocked => Metric::Refused,
            Outcome::Observed => Metric::Observed,
        });
        self.emit_line(line.to_string().into_bytes(), host);
    }

    /// Emits an event of another type (`SvcWafTrailEvent`), one line of JSON: to the control plane and to the access log.
    pub fn emit_line(&mut self, line: Vec<u8>, host: &dyn Host) {
        if self.events.len() >= MAX_EVENTS {
            host.count(Metric::EventsDropped);
            return;
        }
        host.count(Metric::Events);
        host.send_event(&line);
        // Another filter of this gateway may have left events of the same request there.
        let mut lines = host.filter_state(EVENT_TOKEN).unwrap_or_default();
        if !lines.is_empty() {
            lines.push(b'\n');
        }
        lines.extend_from_slice(&line);
        host.set_filter_state(EVENT_TOKEN, &lines);
        self.events.push(line);
    }

    /// The request as events name it. The query is left out: it may carry secrets. So are host and path where a plugin has found one in
    /// them ([`Exchange::target_is_secret`]).
    #[must_use]
    pub fn http(&self) -> Value {
        let target = |bytes, limit| if self.target_is_secret { HIDDEN.to_owned() } else { lossy(bytes, limit) };
        json!({
            "request_id": none_if_empty(&lossy(&self.request.id, 128)),
            "method": lossy(&self.request.method, 32),
            "host": target(&self.request.authority, 256),
            "path": target(self.request.path_only(), 1024),
            "status": self.response.as_ref().map(|response| response.status),
        })
    }
}

/// Bytes as text of at most `limit` bytes; what is no UTF-8 is replaced.
fn lossy(bytes: &[u8], limit: usize) -> String {
    String::from_utf8_lossy(bytes.get(..limit).unwrap_or(bytes)).into_owned()
}

fn none_if_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn signal((note, signal): (&Note, &Signal)) -> Value {
    let mut shown = json!({
        "module": none_if_empty(&note.module),
        "source": signal.source,
        "kind": signal.kind,
        "weight": number(signal.weight),
        "effective_weight": number(signal.effective_weight()),
        "tag": signal.tag,
        "confidence": number(signal.confidence),
        "detail": signal.detail,
        "at": signal.at,
    });
    if let (false, Some(fields)) = (note.rules.is_empty(), shown.as_object_mut()) {
        let rule = |rule: &SignalRule| json!({ "id": rule.id, "message": none_if_empty(&rule.message) });
        fields.insert("rules".to_owned(), note.rules.iter().map(rule).collect());
        fields.insert("more_rules".to_owned(), note.more_rules.into());
    }
    shown
}

fn skip(note: &SkipNote) -> Value {
    json!({ "by": note.by, "steps": note.steps.word(), "plugins": note.steps.plugins(), "reason": note.reason })
}

/// A whole number without a fraction, so that `50` is not written `50.0`.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

/// 1 to 4: from 40, 70 and 90 points on one more.
fn severity(score: f64) -> u8 {
    1 + [40.0, 70.0, 90.0].iter().map(|step| u8::from(score >= *step)).sum::<u8>()
}

/// The incident that an event of this caller belongs to, and its place in it.
fn incident(identity: &IdentityRef, now: u64, host: &dyn Host) -> (String, u32) {
    let mut found = (host.random(), 1_u32);
    let outcome = INCIDENTS.update(host.shared(), identity.key().as_bytes(), now, |entry| {
        if let Some((id, rest)) = entry.and_then(|entry| entry.value.split_first_chunk::<8>())
            && let Some((count, _)) = rest.split_first_chunk::<4>()
        {
            found = (u64::from_le_bytes(*id), u32::from_le_bytes(*count).saturating_add(1));
        }
        let value = [found.0.to_le_bytes().as_slice(), found.1.to_le_bytes().as_slice()].concat();
        Update::Put(value, now.saturating_add(INCIDENT_WINDOW))
    });
    if outcome.is_err() {
        found.1 = 1;
    }
    (format!("incident_{:016x}", found.0), found.1)
}

/// Milliseconds since the Unix epoch in the form of RFC 3339, in UTC, as events carry it.
#[must_use]
pub fn timestamp(millis: u64) -> String {
    let seconds = millis / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000)
}

/// The date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years that begin in March put the leap day last, so months have a regular length.
    let day = days + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_right_around_leap_days() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(timestamp(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(timestamp(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn severity_grows_with_the_score() {
        assert_eq!([0.0, 39.0, 40.0, 70.0, 89.0, 90.0, 100.0].map(severity), [1, 1, 2, 3, 3, 4, 4]);
    }
}
