//! What becomes of signals that come once the request has been judged.
//!
//! While the response is held, a tier that denies or bans replaces it. Once it has gone, a tier that bans still bans, from the next
//! request on. Every other tier is reported: a response is not made better by waiting, and no caller solves a challenge for
//! one that is on its way. Only a higher tier than the one that the request was judged by counts, each policy by its own tiers.

use exchange::{Action, Exchange, Host, Outcome, Slot, Verdict};
use snapshot::Tier;

use crate::{ThreatResponse, emit, refuse};

/// The score that the exchange was last judged by.
pub(crate) struct Judged(pub(crate) f64);

impl ThreatResponse {
    /// The response is held: it can still be replaced.
    pub(crate) fn at_response(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(tier) = self.risen(exchange, slot) else { return Verdict::Pass };
        let mut decision =
            self.decision(tier, exchange.score.total(), self.reason(tier, exchange, "with the response"));
        match tier.action() {
            _ if self.policy.dry_run => self.observed(decision, exchange, host),
            action @ (Action::Deny | Action::Maze | Action::Ban) => {
                match action {
                    Action::Ban => self.ban(tier, &decision, exchange, host),
                    // A page in the place of a response that is there would not spare the backend anything.
                    _ => decision.action = Action::Deny,
                }
                self.blocked(decision, refuse(tier.status, exchange), exchange, host)
            }
            _ => self.observed(exchange::Decision { enforced: false, ..decision }, exchange, host),
        }
    }

    /// The exchange is over: what it has shown counts from now on.
    pub(crate) fn at_end(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        // A request that never reached the backend was judged by its refusal; one for which this step is skipped is not judged.
        if exchange.response.is_none() || slot.get::<Judged>().is_none() {
            return;
        }
        let Some(tier) = self.risen(exchange, slot) else { return };
        let mut decision =
            self.decision(tier, exchange.score.total(), self.reason(tier, exchange, "after the response"));
        decision.enforced &= tier.action() == Action::Ban;
        if decision.enforced {
            self.ban(tier, &decision, exchange, host);
        }
        emit(Outcome::Observed, &decision, exchange, host);
        exchange.note_decided(&decision.about.policy, decision.score);
        exchange.decision = Some(decision);
    }

    /// The tier that the score reaches by now, where it is a higher one than before.
    fn risen(&self, exchange: &Exchange, slot: &mut Slot) -> Option<&Tier> {
        let score = exchange.score.total();
        // What was refused before this step was asked was judged with its refusal. What another policy has decided is its own affair.
        let decided = exchange.decided_score(&self.about().policy);
        let judged = slot.get::<Judged>().map(|judged| judged.0);
        let before = decided.into_iter().chain(judged).reduce(f64::max);
        slot.put(Judged(score));
        let tier = self.policy.tier_at(score)?;
        let higher =
            before.and_then(|before| self.policy.tier_at(before)).is_none_or(|old| tier.min_score > old.min_score);
        let rose = before.is_none_or(|before| score > before);
        (higher && rose && !self.exemptions.cover(&exchange.caller.ip)).then_some(tier)
    }

    fn reason(&self, tier: &Tier, exchange: &Exchange, when: &str) -> String {
        let score = exchange.score.total();
        format!("score {score} reaches tier {} of policy `{}` {when}", tier.index, self.policy.name)
    }
}
