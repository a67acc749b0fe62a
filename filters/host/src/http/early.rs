//! Responses that come before the end of their request: the backend has answered from the headers (gateways that do not hold them),
//! or the gateway itself has answered. A step that waits for the body must not be avoided by never sending it.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

use exchange::{Answer, Flow, Run};
use proxy_wasm::types::Action;

use super::{Buffering, Stream};
use crate::calls::{self, Buffer, Half};
use crate::held;

impl Stream {
    /// Carries out what steps want of a request that its response has overtaken: the response waits with it, is answered in its
    /// place, or goes on.
    pub(super) fn overtake(&mut self, flow: Flow, this: &Rc<RefCell<Self>>) -> Action {
        match flow {
            Flow::Hold { millis } => self.hold(Half::Request, millis, this),
            Flow::Ask(ask) => self.ask(Half::Request, ask, this),
            Flow::Answer(reply) => {
                self.early = None;
                self.set_buffering(Half::Request, Buffering::Answered);
                self.answer(Half::Response, &reply)
            }
            // No step waits for the body any more.
            Flow::Continue | Flow::Buffer { .. } | Flow::Read { .. } => {
                if self.waiting.take().is_some() {
                    held::forget(self.context);
                }
                self.set_buffering(Half::Request, Buffering::Withheld);
                let ends = self.early.take().unwrap_or_default();
                self.judge_response(ends, this)
            }
        }
    }

    /// Goes on behind a wait that the response waits for as well.
    pub(super) fn go_on_early(&mut self, answer: Option<Answer>, this: &Rc<RefCell<Self>>) -> Action {
        let flow = self.behind_wait(answer);
        let action = self.overtake(flow, this);
        self.show_response_trailers(action);
        action
    }

    /// What comes of a request whose response has overtaken it is dropped: no step has inspected it.
    pub(super) fn withhold(&mut self) -> Action {
        calls::replace_buffer(Buffer::RequestBody, b"");
        Action::Pause
    }

    /// The caller as a number, by which its questions are counted.
    pub(super) fn caller(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let caller = self.run.as_ref().map(Run::exchange).and_then(|exchange| exchange.caller.identity());
        caller.map(|identity| identity.key()).hash(&mut hasher);
        hasher.finish()
    }
}
