//! What becomes of mismatches: signals, events, refusals.

use exchange::{
    Action, Category, Decision, Exchange, Host, Outcome, Refusal, ReplyBody, SecurityEvent, Signal, Table, Verdict,
};
use serde_json::json;

use crate::messages::EndpointKind;
use crate::violation::{Mismatch, Violation};
use crate::{PLUGIN, QueryGuard};

/// What was reported lately.
const REPORTED: Table = Table { name: "query.reported", shards: 32, entries_per_shard: 64 };
/// How long a kind of mismatch of an endpoint is not reported again, in milliseconds.
const MINUTE: u64 = 60_000;
/// The most mismatches of a request that are told.
const MAX_TOLD: usize = 8;

impl QueryGuard {
    /// Refuses a request for its mismatches, or reports them.
    pub(crate) fn mismatches(
        &self,
        found: &[Violation],
        (path, kind): (&str, EndpointKind),
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let Some(first) = found.first() else { return Verdict::Pass };
        let told = found.get(..MAX_TOLD).unwrap_or(found);
        for one in told {
            exchange.score.add(Signal {
                source: "api".into(),
                kind: one.kind.word().into(),
                weight: if self.step.contribute { self.step.violation_weight } else { 0.0 },
                confidence: 1.0,
                tag: format!("api:{}", one.kind.word()).into(),
                detail: one.detail.clone(),
                at: host.now(),
            });
        }
        let listed: Vec<String> = told.iter().map(|one| format!("{} ({})", one.kind.word(), one.detail)).collect();
        let reason = format!("the request does not match the endpoint {path}: {}", listed.join(", "));
        if !self.step.enforce {
            self.observe(told, path, reason, exchange, host);
            return Verdict::Pass;
        }
        let mut refusal = Refusal::new(first.kind.status(), Category::Api, reason);
        if self.step.contribute {
            refusal = refusal.scored();
        }
        if matches!(first.kind, Mismatch::MutationOverGet) {
            refusal = refusal.header("allow", "POST");
        }
        if self.step.expose_errors {
            refusal = refusal.body(answer(told, kind));
        }
        Verdict::Refuse(refusal)
    }

    /// An event once a minute for each route, endpoint and kind.
    fn observe(&self, found: &[Violation], path: &str, reason: String, exchange: &mut Exchange, host: &dyn Host) {
        let due = |one: &Violation| {
            let subject =
                [one.kind.word().as_bytes(), exchange.route.name.as_bytes(), path.as_bytes()].join(b"\0".as_slice());
            REPORTED.is_due(host.shared(), &subject, host.now(), MINUTE)
        };
        // Each kind is noted, so that none is told again because another one was.
        if found.iter().filter(|one| due(one)).count() == 0 {
            return;
        }
        let status = found.first().map_or(400, |first| first.kind.status());
        let reason = format!("{reason}; the request would have been refused with {status}");
        let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run();
        let event = SecurityEvent {
            category: Category::Api,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }
}

/// The body of a refusal, as clients of the protocol read it.
fn answer(found: &[Violation], kind: EndpointKind) -> ReplyBody {
    let value = match (kind, found.first()) {
        (EndpointKind::Graphql, _) | (_, None) => {
            let errors =
                found.iter().map(|one| json!({ "message": one.detail, "extensions": { "code": one.kind.word() } }));
            json!({ "errors": errors.collect::<Vec<_>>() })
        }
        (_, Some(first)) => {
            let code = match first.kind {
                Mismatch::UnknownOperation => -32_601,
                Mismatch::Parameters => -32_602,
                _ => -32_600,
            };
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": first.detail } })
        }
    };
    ReplyBody::Bytes { content_type: "application/json", bytes: value.to_string().into_bytes() }
}
