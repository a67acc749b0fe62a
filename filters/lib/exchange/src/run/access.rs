//! Access validation: who is calling, before anything of the request is parsed.

use std::rc::Rc;

use super::wait::{Asking, Phase};
use super::{Half, Run, Stage};
use crate::chain::Step;
use crate::{Flow, Host, Role, Verdict};

impl Run {
    /// The request's headers are there: access validation, then the request transformers.
    pub fn request_headers(&mut self, has_body: bool, host: &dyn Host) -> Flow {
        if self.stage != Stage::Ready {
            return Flow::Continue;
        }
        self.has_body = has_body;
        self.access(0, host)
    }

    /// Access validation from a step on, then the request transformers.
    pub(super) fn access(&mut self, from: usize, host: &dyn Host) -> Flow {
        for at in from..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            if self.skips.cover(at, step.name, step.role, true) {
                continue;
            }
            self.look_ahead(at, &step);
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let flow = match step.turn(&mut self.exchange).access(&mut self.exchange, slot, host) {
                Verdict::Ask(ask) => Some(self.ask(ask, Asking::first(at, Phase::Access), host)),
                verdict => self.act(verdict, at, &step, Half::Request, host),
            };
            if let Some(flow) = flow {
                return flow;
            }
        }
        self.advance(Half::Request, 0, self.has_body, None, host)
    }

    /// Notes whether a step behind this one judges submissions to challenges of another provider.
    pub(super) fn look_ahead(&mut self, at: usize, step: &Step) {
        let Some(own) = step.plugin.judges() else { return };
        let later = (at.saturating_add(1)..self.steps.list.len()).any(|at| {
            let judges = |step: &Rc<Step>| {
                let is_other = step.plugin.judges().is_some_and(|provider| provider != own);
                is_other && !self.skips.cover(at, step.name, step.role, true)
            };
            self.step(at).is_some_and(|step| judges(&step))
        });
        // Threat gates have a filter of their own then, and threat responses one behind it.
        let other_filter = self.shared_exchange && step.role == Role::Enforcement;
        self.exchange.is_judged_later = later || other_filter;
    }
}
