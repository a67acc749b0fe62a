//! Trailers of a request and of a response in a chain.

use snapshot::Trailers;

use crate::run::{Half, Stage};
use crate::{Chain, Flow, Headers, Host, Run, Verdict};

impl Run {
    /// Whether the request's trailers are taken away before anything looks at them.
    #[must_use]
    pub fn drops_trailers(&self, chain: &Chain) -> bool {
        match chain.trailers {
            Trailers::Drop => true,
            Trailers::Inspect => {
                !(0..self.steps.list.len()).any(|at| self.step(at).is_some_and(|step| step.plugin.inspects_trailers()))
            }
            Trailers::Pass => false,
        }
    }

    /// The request's trailers, once everything in front of them went to the backend.
    pub fn request_trailers(&mut self, trailers: &Headers, host: &dyn Host) -> Flow {
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        for at in 0..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let verdict = match step.plugin.inspects_trailers() {
                true => step.plugin.request_trailers(&mut self.exchange, trailers, slot, host),
                false => Verdict::Pass,
            };
            if let Some(flow) = self.act(verdict, at, &step, Half::Request, host) {
                return flow;
            }
        }
        self.hand_on(host);
        Flow::Continue
    }

    /// Whether a step wants the response's trailers.
    #[must_use]
    pub fn wants_response_trailers(&self) -> bool {
        self.exchange.response.is_some()
            && (0..self.steps.list.len())
                .any(|at| self.step_of(Half::Response, at).is_some_and(|step| step.plugin.inspects_response_trailers()))
    }

    /// The response's trailers, once everything in front of them went to the client.
    pub fn response_trailers(&mut self, trailers: &Headers, host: &dyn Host) {
        if self.stage != Stage::Done || self.exchange.answered {
            return;
        }
        for at in 0..self.steps.list.len() {
            let Some(step) = self.step_of(Half::Response, at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            if step.plugin.inspects_response_trailers() {
                step.plugin.response_trailers(&mut self.exchange, trailers, slot, host);
            }
        }
        self.hand_on(host);
    }
}
