//! A response that comes before the end of its request.

use super::wait::{Asking, InHand, Phase};
use super::{Half, Run, Stage};
use crate::chain::Step;
use crate::{Flow, Host, Verdict, transfer};

impl Run {
    /// The response's headers are there while steps still wait for the request: for its body, for an answer, or for the end of a
    /// delay. What they wait for of the body has not reached the backend, and never will: they judge the request without it
    /// ([`Plugin::without_body`](crate::Plugin::without_body)). The flow is the one of the request: after [`Flow::Continue`],
    /// [`Run::response_headers`] is next. `None` where an answer or the end of a delay is still awaited: the response waits with it.
    pub fn overtaken(&mut self, host: &dyn Host) -> Option<Flow> {
        let at = match &self.stage {
            Stage::RequestBody(at, _) | Stage::RequestPieces(at, _) => Some(*at),
            Stage::Held(..) => None,
            Stage::Asked(asking) if asking.phase.half() == Half::Request => None,
            _ => return Some(Flow::Continue),
        };
        // Another filter has answered: the backend has not.
        if self.shared_exchange && transfer::is_answered(host) {
            self.exchange.answered = true;
            self.stage = Stage::Done;
            return Some(Flow::Continue);
        }
        self.overtaken = true;
        let at = at?;
        self.drop_request_body();
        // Nothing went on meanwhile.
        self.stage = Stage::Done;
        let flow = self.step(at).and_then(|step| self.without_body(at, &step, host));
        Some(flow.unwrap_or_else(|| self.advance(Half::Request, at + 1, true, None, host)))
    }

    /// Has a step judge the request without the body that it wants.
    pub(super) fn without_body(&mut self, at: usize, step: &Step, host: &dyn Host) -> Option<Flow> {
        let slot = self.slots.get_mut(at)?;
        match step.turn(&mut self.exchange).without_body(&mut self.exchange, slot, host) {
            Verdict::Ask(ask) => {
                let body = InHand { length: 0, complete: true };
                Some(self.ask(ask, Asking::first(at, Phase::Body(Half::Request, body)), host))
            }
            verdict => self.act(verdict, at, step, Half::Request, host),
        }
    }

    /// Drops what was to become of a request whose body does not go on.
    pub(super) fn drop_request_body(&mut self) {
        if self.overtaken {
            (self.replaced_body, self.rest) = (None, None);
            self.exchange.changes.take(Half::Request);
        }
    }
}
