//! What the WAF tells the threat response, and the event of a refusal that it only would have made.

use exchange::{Action, Category, Decision, Exchange, Host, Outcome, SecurityEvent, Signal};
use seclang::{MatchedRule, Transaction};

use crate::refusal::reason;
use crate::{PLUGIN, State, Waf};

/// The detector, as signals name it.
const SOURCE: &str = "waf.seclang";
/// The tag of a signal for what the rules found and did not refuse.
const MATCH: &str = "waf:match";
/// The tag of a signal for what was not inspected to its end, because a limit was met.
pub(crate) const LIMIT: &str = "waf:limit";
/// The tag of a signal for a body that is not what its headers say.
pub(crate) const BODY_ERROR: &str = "waf:body_error";

/// The names in TX of a request's anomaly score, of the core rule set 4 and 3, and of the score from which it is denied.
const SCORES: [&[u8]; 2] = [b"blocking_inbound_anomaly_score", b"anomaly_score"];
const THRESHOLD: &[u8] = b"inbound_anomaly_score_threshold";

impl Waf {
    /// What the rules found in the request without refusing it, as one signal, once.
    pub(crate) fn contribute(&self, state: &mut State, exchange: &mut Exchange, host: &dyn Host) {
        if std::mem::replace(&mut state.contributed, true) {
            return;
        }
        let demanded = state.transaction.would_block().filter(|demanded| demanded.rule_id != 0);
        state.of_request = demanded.is_some() || state.unenforced.is_some();
        let logged = |rule: &&MatchedRule| rule.logged;
        let matches = state.transaction.matched_rules();
        let mut detail = match (matches.iter().find(logged), demanded) {
            (Some(found), _) => format!("rule {}: {}", found.rule_id, String::from_utf8_lossy(&found.msg)),
            (None, Some(demanded)) => reason(demanded),
            (None, None) => return,
        };
        let more = matches.iter().filter(logged).count().saturating_sub(1);
        if more > 0 {
            detail.push_str(&format!(" and {more} more"));
        }
        let weight = self.weight(&state.transaction, demanded.is_some());
        self.signal(MATCH, weight, detail, exchange, host);
    }

    /// What a request weighs that the rules did not refuse: as much as a refused one if they would have, otherwise the part
    /// of it that its anomaly score is of the threshold, and at least what a match weighs.
    fn weight(&self, transaction: &Transaction, would_block: bool) -> f64 {
        let (floor, block) = (self.step.match_weight, self.step.block_weight);
        if would_block {
            return floor.max(block);
        }
        let score = inbound_score(transaction);
        let part = match (score, number(transaction, THRESHOLD)) {
            (Some(score), Some(threshold)) if threshold > 0.0 => (score / threshold).clamp(0.0, 1.0),
            _ => 0.0,
        };
        floor.max(block * part)
    }

    /// The event of a refusal that was not made, because the WAF monitors. A request that the threat response decided on has
    /// its event already.
    pub(crate) fn observe(&self, state: &State, exchange: &mut Exchange, host: &dyn Host) {
        let demanded = state.unenforced.as_ref().or(state.transaction.would_block());
        let Some(demanded) = demanded.filter(|_| state.blocked.is_none()) else {
            return;
        };
        if state.of_request && exchange.is_decided() {
            return;
        }
        let reason = reason(demanded);
        if !state.of_request && state.unenforced.is_none() {
            // The response's: the request's signal was left before, a limit's when it was met.
            let weight = self.step.match_weight.max(self.step.block_weight);
            self.signal(MATCH, weight, reason.clone(), exchange, host);
        }
        let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run().about(self.about());
        let event = SecurityEvent {
            category: Category::Threat,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
        // Another WAF of the chain may have the same to say.
        exchange.decision = Some(decision);
    }

    pub(crate) fn signal(
        &self,
        tag: &'static str,
        weight: f64,
        detail: String,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if self.step.contribute {
            exchange.score.add(Signal {
                source: SOURCE.into(),
                kind: PLUGIN.name.into(),
                weight,
                confidence: 1.0,
                tag: tag.into(),
                detail,
                at: host.now(),
            });
        }
    }
}

/// The anomaly score of a request.
pub(crate) fn inbound_score(transaction: &Transaction) -> Option<f64> {
    SCORES.iter().find_map(|name| number(transaction, name))
}

/// The whole number that a name of TX holds.
fn number(transaction: &Transaction, name: &[u8]) -> Option<f64> {
    let text = transaction.variable(b"TX", name)?;
    std::str::from_utf8(&text).ok()?.trim().parse::<i32>().ok().map(f64::from)
}
