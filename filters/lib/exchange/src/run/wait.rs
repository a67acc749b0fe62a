//! Requests that wait: for an answer of the control plane, or for the end of a delay.

use super::{Half, Run, Stage};
use crate::{Answer, Ask, Flow, Host};

impl Run {
    /// The answer to a [`Flow::Ask`].
    pub fn answered(&mut self, answer: Answer, host: &dyn Host) -> Flow {
        let Stage::Asked { at, access } = self.stage else {
            return Flow::Continue;
        };
        self.stage = Stage::Done;
        let (Some(step), Some(slot)) = (self.step(at), self.slots.get_mut(at)) else {
            return Flow::Continue;
        };
        let verdict = step.plugin.answered(&mut self.exchange, answer, slot, host);
        match self.act(verdict, at, &step, Half::Request, host) {
            Some(flow) => flow,
            None if access => self.access(at + 1, host),
            None => self.advance(Half::Request, at + 1, self.has_body, None, host),
        }
    }

    /// The time of a [`Flow::Hold`] is over.
    pub fn resume(&mut self, host: &dyn Host) -> Flow {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Held(Some(reply), _) => self.answer(reply, host),
            Stage::Held(None, next) => self.advance(Half::Request, next, self.has_body, None, host),
            other => {
                self.stage = other;
                Flow::Continue
            }
        }
    }

    /// Asks the control plane for a step.
    pub(super) fn ask(&mut self, ask: Ask, at: usize, access: bool, host: &dyn Host) -> Flow {
        self.stage = Stage::Asked { at, access };
        self.hand_on(host);
        Flow::Ask(ask)
    }
}
