//! The rest of a request's body, behind what a step has read, while it passes to the backend.

use crate::run::Stage;
use crate::{Flow, Host, Run, Verdict};

impl Run {
    /// From which byte of the body on [`Run::request_rest`] wants to see what passes, once the request goes to the backend.
    #[must_use]
    pub fn rest_from(&self) -> Option<usize> {
        self.rest.filter(|_| self.stage == Stage::Sent).map(|(_, from)| from)
    }

    /// A piece of the rest of the body, on its way to the backend; `end` if nothing follows. Each is handed over once. Once
    /// the response has begun, nothing is asked any more: it would be too late for another answer.
    pub fn request_rest(&mut self, bytes: &[u8], end: bool, host: &dyn Host) -> Flow {
        let Some((at, _)) = self.rest.filter(|_| self.stage == Stage::Sent) else {
            return Flow::Continue;
        };
        let (Some(step), Some(slot)) = (self.step(at), self.slots.get_mut(at)) else {
            return Flow::Continue;
        };
        match step.plugin.request_rest(&mut self.exchange, bytes, end, slot, host) {
            Verdict::Refuse(refusal) => self.refuse(&refusal, step.name, host),
            _ => Flow::Continue,
        }
    }

    /// Clears `rest` if it is of this step, unless the step inspects the rest of the body or still waits for an answer.
    pub(crate) fn keep_rest_of(&mut self, at: usize) {
        if matches!(self.stage, Stage::Asked(_)) {
            return;
        }
        let wanted = match (self.step(at), self.slots.get_mut(at)) {
            (Some(step), Some(slot)) => step.plugin.reads_rest(slot),
            _ => false,
        };
        self.rest = self.rest.filter(|(of, _)| wanted || *of != at);
    }
}
