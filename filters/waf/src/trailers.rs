//! Trailers of a request: fields like its headers, which come when the rules have judged those.

use exchange::{Exchange, Headers, Host, Slot, Verdict};

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
        for (name, value) in trailers.regular() {
            transaction.request_header(name, value);
        }
        let known = judged.transaction.matched_rules().len();
        let mut interventions = vec![transaction.request_headers()];
        let mut state = State::new(transaction);
        if interventions.iter().all(Option::is_none) {
            state.transaction.set_now(host.now());
            interventions.push(state.transaction.request_body(&[], true));
        }
        for intervention in interventions {
            if let Some(refusal) = self.refusal(intervention, &mut state, exchange, Half::Request, host) {
                return Verdict::Refuse(refusal);
            }
        }
        if let Some(refusal) = self.failure(&mut state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        if let Some(refusal) = self.left_out(&mut state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        // What was said of the headers is not said again.
        if state.transaction.matched_rules().len() > known {
            self.contribute(&mut state, exchange, host);
            self.conclude(&mut state, exchange, host);
        }
        Verdict::Pass
    }
}
