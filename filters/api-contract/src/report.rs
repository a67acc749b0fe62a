//! What becomes of mismatches: signals, events, refusals.

use contract::{Mismatch, Violation};
use exchange::{
    Action, Category, Decision, Exchange, Host, Outcome, Refusal, ReplyBody, SecurityEvent, Signal, Table, Verdict,
};
use serde_json::json;

use crate::{ApiContract, PLUGIN};

/// What was reported lately.
const REPORTED: Table = Table { name: "api.reported", shards: 32, entries_per_shard: 64 };
/// How long a kind of mismatch of an operation is not reported again, in milliseconds.
pub(crate) const MINUTE: u64 = 60_000;
/// How long a broken contract is not logged again, in milliseconds.
pub(crate) const HOUR: u64 = 3_600_000;

/// Whether something of a subject is due again.
pub(crate) fn is_due(host: &dyn Host, what: &[u8], subject: &[u8], silence: u64) -> bool {
    REPORTED.is_due(host.shared(), &[what, b"\0", subject].concat(), host.now(), silence)
}

impl ApiContract {
    /// Refuses a request for its mismatches, or reports them. `operation` is empty where none has the path and the method.
    pub(crate) fn mismatches(
        &self,
        found: Vec<Violation>,
        operation: &str,
        allow: Option<String>,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let Some(first) = found.first() else { return Verdict::Pass };
        if !self.step.enforce {
            self.report(&found, operation, exchange, host);
            return Verdict::Pass;
        }
        self.signal(&found, exchange, host);
        let mut refusal = Refusal::new(first.kind.status(), Category::Api, described(&found, operation));
        if self.step.contribute {
            refusal = refusal.scored();
        }
        if let Some(allow) = allow {
            refusal = refusal.header("allow", allow);
        }
        if self.step.expose_errors {
            let listed =
                found.iter().map(|one| json!({ "kind": one.kind.word(), "where": one.place, "detail": one.detail }));
            let body = json!({ "error": "contract_violation", "violations": listed.collect::<Vec<_>>() });
            let body = ReplyBody::Bytes { content_type: "application/json", bytes: body.to_string().into_bytes() };
            refusal = refusal.body(body);
        }
        Verdict::Refuse(refusal)
    }

    /// Reports mismatches without a consequence: an event once a minute for each route, operation and kind.
    pub(crate) fn report(&self, found: &[Violation], operation: &str, exchange: &mut Exchange, host: &dyn Host) {
        self.signal(found, exchange, host);
        let due = |one: &Violation| {
            let subject = [exchange.route.name.as_bytes(), b"\0", operation.as_bytes()].join(b"".as_slice());
            is_due(host, one.kind.word().as_bytes(), &subject, MINUTE)
        };
        // Each kind is noted, so that none is told again because another one was.
        if found.iter().filter(|one| due(one)).count() == 0 {
            return;
        }
        let mut reason = described(found, operation);
        // A response is never withheld for its mismatches.
        let is_refused = !found.iter().any(|one| is_of_response(one.kind));
        if is_refused {
            let status = found.first().map_or(400, |first| first.kind.status());
            reason.push_str(&format!("; the request would have been refused with {status}"));
        }
        let score = exchange.score.total();
        let decision = match is_refused {
            true => Decision::new(Action::Deny, score, reason).dry_run(),
            false => Decision::new(Action::Log, score, reason),
        };
        let event = SecurityEvent {
            category: Category::Api,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }

    /// Leaves a signal for each mismatch; without `contribute` it weighs nothing. A body counts once, in however many places it is
    /// wrong.
    fn signal(&self, found: &[Violation], exchange: &mut Exchange, host: &dyn Host) {
        let mut bodies = 0;
        for one in found {
            bodies += u32::from(one.kind == Mismatch::InvalidBody);
            let weight = match one.kind {
                _ if !self.step.contribute => 0.0,
                Mismatch::InvalidBody if bodies > 1 => 0.0,
                kind if is_of_response(kind) => 0.0,
                Mismatch::UnknownPath | Mismatch::MethodNotAllowed => self.step.unknown_path_weight,
                _ => self.step.violation_weight,
            };
            exchange.score.add(Signal {
                source: "api".into(),
                kind: one.kind.word().into(),
                weight,
                confidence: 1.0,
                tag: format!("api:{}", one.kind.word()).into(),
                detail: format!("{}: {}", one.place, one.detail),
                at: host.now(),
            });
        }
    }
}

fn is_of_response(kind: Mismatch) -> bool {
    matches!(kind, Mismatch::UndeclaredStatus | Mismatch::UndeclaredMediaType | Mismatch::InvalidResponse)
}

fn described(found: &[Violation], operation: &str) -> String {
    let what = match found.first() {
        Some(first) if is_of_response(first.kind) => "the response",
        _ => "the request",
    };
    let listed: Vec<String> =
        found.iter().map(|one| format!("{} ({}: {})", one.kind.word(), one.place, one.detail)).collect();
    let of = if operation.is_empty() { String::new() } else { format!(" of {operation}") };
    format!("{what} does not match the API contract{of}: {}", listed.join(", "))
}
