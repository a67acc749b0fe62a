//! The rest of a body that is longer than what is inspected, where that is no reason to refuse it.

use crate::WafBudget;
use exchange::{Exchange, Host, Verdict};
use seclang::body::RestOfBody;
use seclang::{BudgetLimits, MatchedRule, REST_OF_BODY};

use crate::{Half, State, Waf};

/// What the limit is of that ends the judging of the rest of a body.
const WORK: &str = "units of work for the rest of a body";

impl Waf {
    /// What the rules may cost.
    fn budget(&self) -> BudgetLimits {
        self.step.budget.as_ref().map_or_else(BudgetLimits::default, |budget| {
            let WafBudget { work, work_per_byte, memory, memory_per_byte } = *budget;
            BudgetLimits { work, work_per_byte, memory, memory_per_byte }
        })
    }

    /// The units of work for judging the rest of a body, as far as it has come: those of every request, and those of each
    /// byte of the rest. A compressed body is judged in one call, however little was sent: the rest of it brings what a body
    /// does that is inspected to its end, which has at most `input_body_limit` bytes.
    fn rest_ceiling(&self, rest: &RestOfBody) -> u64 {
        let BudgetLimits { work, work_per_byte, .. } = self.budget();
        let most = if rest.compressed { self.step.input_body_limit } else { u64::MAX };
        let bytes = rest.bytes.min(most);
        work.saturating_add(bytes.saturating_mul(work_per_byte))
    }

    /// Judges what the prefilter found suspicious in the rest of a body, with the headers of its request, in a transaction of
    /// its own: what is in front of it went to the backend, or is not judged yet. Rules that count do not count again. What
    /// is suspicious beyond [`Waf::rest_ceiling`] counts as not inspected.
    pub(crate) fn judge_rest(
        &self,
        windows: &[Vec<u8>],
        judged: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let rest = *judged.transaction.rest_of_body();
        // Where nothing is denied, rules could only find what is told already.
        let known = judged.rest_told && !self.denies(judged);
        if windows.is_empty() || rest.over || known {
            return Verdict::Pass;
        }
        let mut state = State::new(self.begin_uncounted(exchange, false, host));
        if let Some(lookups) = &judged.lookups {
            lookups.lend(&mut state.transaction);
        }
        // The exchange is counted with its first part.
        (state.has_body, state.counted, state.sampled) = (true, true, std::mem::take(&mut judged.sampled));
        let verdict = self.judge_windows(windows, &mut state, judged, exchange, host);
        judged.sampled = state.sampled;
        verdict
    }

    /// Judges windows in `state`.
    fn judge_windows(
        &self,
        windows: &[Vec<u8>],
        state: &mut State,
        judged: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let rest = *judged.transaction.rest_of_body();
        let (limits, ceiling) = (self.budget(), self.rest_ceiling(&rest));
        let length = number(windows.iter().map(Vec::len).sum());
        let own = state.transaction.work().spent.work_ceiling;
        let own = own.saturating_add(length.saturating_mul(limits.work_per_byte));
        let left = ceiling.saturating_sub(rest.work);
        state.transaction.set_budget(BudgetLimits { work: own.min(left), work_per_byte: 0, ..limits });
        state.transaction.set_now(host.now());
        let mut intervention = state.transaction.request_headers();
        if intervention.is_none() {
            intervention = state.transaction.evaluate_suspicious(windows);
        }
        let taken = state.transaction.work().spent.work;
        judged.transaction.rest_of_body().work = rest.work.saturating_add(taken);
        let spent = state.transaction.exceeded_limits().iter().any(|limit| limit.spent.is_some());
        if spent && left < own {
            judged.transaction.rest_of_body().over = true;
            state.transaction.request_body_left_out(WORK, ceiling);
        }
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        // One body may have thousands of windows: what does not refuse it is told once.
        state.failed = rest.limit_signalled && !self.denies(state);
        if let Some(refusal) = self.failure(state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        judged.transaction.rest_of_body().limit_signalled |= state.failed;
        let known = judged.transaction.uninspected();
        let left_out = state.transaction.uninspected().iter().any(|found| !known.contains(found));
        if left_out && (!judged.transaction.rest_of_body().limit_signalled || self.denies(state)) {
            judged.transaction.rest_of_body().limit_signalled = true;
            if let Some(refusal) = self.left_out(state, exchange, Half::Request, host) {
                return Verdict::Refuse(refusal);
            }
        }
        // What was said of the headers is not said again.
        let in_rest = |rule: &MatchedRule| rule.inputs().any(|(variable, _)| variable.ends_with(REST_OF_BODY));
        let found = state.transaction.matched_rules().iter().any(in_rest);
        let matched = found && !std::mem::replace(&mut judged.rest_told, true);
        let limit = left_out || !state.transaction.exceeded_limits().is_empty();
        let limit = limit && !std::mem::replace(&mut judged.transaction.rest_of_body().limit_reported, true);
        if matched {
            self.contribute(state, exchange, host);
        }
        if matched || limit {
            self.conclude(state, exchange, host);
        }
        Verdict::Pass
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
