//! A response that comes before the end of its request.

use super::wait::{Asking, InHand, Phase};
use super::{Half, Run, Stage};
use crate::chain::Step;
use crate::{Flow, Host, Verdict, transfer};

/// A response that has come before the end of its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    /// Its status.
    status: u16,
    /// No step waits for the request's body any more, and nothing more of it goes on.
    withheld: bool,
}

impl Run {
    /// The response's headers are there, of this status, while steps still wait for the request: for its body, for an answer, or for
    /// the end of a delay. What they wait for of the body has not reached the backend, and never will: they judge the request without
    /// it ([`Plugin::without_body`](crate::Plugin::without_body)). The flow is the one of the request: after [`Flow::Continue`],
    /// [`Run::response_headers`] is next. `None` where an answer or the end of a delay is still awaited: the response waits with it.
    ///
    /// `head_sent` says that the request's headers are on their way to the backend. Where steps have seen the whole body then, the
    /// body goes on after the wait all the same ([`Run::withholds_body`]): the backend may need it for the rest of its response.
    pub fn overtaken(&mut self, status: u16, head_sent: bool, host: &dyn Host) -> Option<Flow> {
        let at = match &self.stage {
            Stage::RequestBody(at, _) | Stage::RequestPieces(at, _) => Some(*at),
            Stage::Held(..) => None,
            Stage::Asked(asking) if asking.phase.half() == Half::Request => None,
            _ => return Some(Flow::Continue),
        };
        // Filters behind this one have seen the response already.
        if self.shared_exchange {
            transfer::merge(&mut self.exchange, host);
            transfer::send(&self.exchange, host);
            // One of them has answered: the backend has not.
            if self.exchange.answered {
                self.stage = Stage::Done;
                return Some(Flow::Continue);
            }
        }
        let withheld = at.is_some() || !self.body_seen || !head_sent;
        self.early = Some(Early { status, withheld });
        let at = at?;
        self.drop_request_body();
        // Nothing went on meanwhile.
        self.stage = Stage::Done;
        let flow = self.step(at).and_then(|step| self.without_body(at, &step, host));
        Some(flow.unwrap_or_else(|| self.advance(Half::Request, at + 1, true, None, host)))
    }

    /// Whether the response has come before the request's end, and nothing more of the request's body goes on.
    #[must_use]
    pub fn withholds_body(&self) -> bool {
        self.early.is_some_and(|early| early.withheld)
    }

    /// Has a step judge the request without the body that it wants.
    pub(super) fn without_body(&mut self, at: usize, step: &Step, host: &dyn Host) -> Option<Flow> {
        let status = self.early.map_or(0, |early| early.status);
        let slot = self.slots.get_mut(at)?;
        match step.turn(&mut self.exchange).without_body(&mut self.exchange, status, slot, host) {
            Verdict::Ask(ask) => {
                let body = InHand { length: 0, complete: true };
                Some(self.ask(ask, Asking::first(at, Phase::Body(Half::Request, body)), host))
            }
            verdict => self.act(verdict, at, step, Half::Request, host),
        }
    }

    /// Drops what was to become of a request whose body does not go on.
    pub(super) fn drop_request_body(&mut self) {
        if self.withholds_body() {
            (self.replaced_body, self.rest) = (None, None);
            self.exchange.changes.take(Half::Request);
        }
    }
}
