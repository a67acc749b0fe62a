//! Trailers of a request: fields like its headers, which come when the rules have judged those.

use std::collections::BTreeSet;

use exchange::{Exchange, Headers, Host, Slot, Verdict};

use seclang::{MatchedRule, Uninspected};

use crate::{Half, State, Waf};

impl Waf {
    /// Judges the request once more, with the trailers among its headers and without its body, which was judged. The rules
    /// of phases 1 and 2 run again, those that count included; the phases of the response go on with the first judgement.
    pub(crate) fn judge_trailers(
        &self,
        exchange: &mut Exchange,
        trailers: &Headers,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        let Some(judged) = slot.get::<State>() else {
            return Verdict::Pass;
        };
        let mut transaction = self.begin(exchange, false, host);
        transaction.share_budget(&judged.transaction);
        if let Some(lookups) = &judged.lookups {
            lookups.lend(&mut transaction);
        }
        for (name, value) in trailers.regular() {
            transaction.request_header(name, value);
        }
        let matches = judged.transaction.matched_rules().iter();
        let known = matches.flat_map(|rule| rule.inputs().map(|(variable, _)| (rule.rule_id, variable.to_vec())));
        let known: BTreeSet<(u64, Vec<u8>)> = known.collect();
        let (gave_up, left_out) =
            (judged.transaction.exceeded_limits().len(), judged.transaction.uninspected().to_vec());
        let mut state = State::new(transaction);
        // The exchange is counted with its first part.
        (state.has_body, state.counted, state.sampled) = (judged.has_body, true, std::mem::take(&mut judged.sampled));
        let verdict = self.judge_fields(&mut state, &known, gave_up, &left_out, exchange, host);
        judged.sampled = state.sampled;
        verdict
    }

    /// Judges what is in `state`. `known` are the matches that were told, the rules that gave up and the limits met before.
    fn judge_fields(
        &self,
        state: &mut State,
        known: &BTreeSet<(u64, Vec<u8>)>,
        gave_up: usize,
        left_out: &[Uninspected],
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let mut interventions = vec![state.transaction.request_headers()];
        if interventions.iter().all(Option::is_none) {
            state.transaction.set_now(host.now());
            interventions.push(state.transaction.request_body(&[], true));
        }
        for intervention in interventions {
            if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Request, host) {
                return Verdict::Refuse(refusal);
            }
        }
        if let Some(refusal) = self.failure(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        // What was said of the headers is not said again.
        let news =
            |rule: &MatchedRule| rule.inputs().any(|(variable, _)| !known.contains(&(rule.rule_id, variable.to_vec())));
        if state.transaction.matched_rules().iter().any(news) {
            self.contribute(state, exchange, host);
            self.conclude(state, exchange, host);
        }
        let limits = state.transaction.uninspected().iter().any(|found| !left_out.contains(found));
        if limits || state.transaction.exceeded_limits().len() > gave_up {
            self.conclude(state, exchange, host);
        }
        Verdict::Pass
    }
}
