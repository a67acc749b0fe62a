//! The rest of a body that is longer than what is inspected, where that is no reason to refuse it.

use exchange::{Exchange, Host, Verdict};
use seclang::REST_OF_BODY;

use crate::{Half, State, Waf};

impl Waf {
    /// Judges what the prefilter found suspicious in the rest of a body, with the headers of its request, in a transaction of
    /// its own: what is in front of it went to the backend, or is not judged yet. Rules that count do not count again.
    pub(crate) fn judge_rest(
        &self,
        windows: &[Vec<u8>],
        judged: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        if windows.is_empty() {
            return Verdict::Pass;
        }
        let mut state = State::new(self.begin_uncounted(exchange, false, host));
        state.transaction.set_now(host.now());
        let mut intervention = state.transaction.request_headers();
        if intervention.is_none() {
            intervention = state.transaction.judge_suspicious(windows);
        }
        if let Some(refusal) = self.refusal(intervention, &mut state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.failure(&mut state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        // One body may have thousands of windows; what was said of the headers is not said again.
        let found = state.transaction.matched_rules().iter().any(|rule| rule.variable.ends_with(REST_OF_BODY));
        if found && !std::mem::replace(&mut judged.rest_told, true) {
            self.contribute(&mut state, exchange, host);
            self.conclude(&mut state, exchange, host);
        }
        Verdict::Pass
    }
}
