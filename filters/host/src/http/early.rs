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
        let action = match self.run.as_ref().is_some_and(Run::withholds_body) {
            true => self.overtake(flow, this),
            false => self.go_on_whole(flow, this),
        };
        self.show_response_trailers(action);
        action
    }

    /// Carries out what steps want of a request of which they have seen the whole body: it goes on in front of the response, since
    /// the backend may wait for it. The action is the one of the response.
    fn go_on_whole(&mut self, flow: Flow, this: &Rc<RefCell<Self>>) -> Action {
        let mut action = self.act(flow, Half::Request, this);
        // A wait that ends at once has brought the response as far already.
        if self.early.is_some() {
            action = self.with_what_came(Half::Request, action, this);
        }
        if self.early.is_some() {
            action = self.inspect_trailers(action, this);
        }
        let is_answered = self.request.state == Buffering::Answered;
        if self.early.is_none() || (action == Action::Pause && !is_answered) {
            return action;
        }
        let ends = self.early.take().unwrap_or_default();
        if is_answered {
            self.set_buffering(Half::Response, Buffering::Answered);
            return Action::Pause;
        }
        calls::continue_stream(Half::Request);
        self.judge_response(ends, this)
    }

    /// What comes of a request whose response has overtaken it is dropped: no step has inspected it.
    pub(super) fn withhold(&mut self) -> Action {
        calls::replace_buffer(Buffer::RequestBody, b"");
        Action::Pause
    }

    /// The caller as a number, by which its questions are counted; `None` without an identity.
    pub(super) fn caller(&self) -> Option<u64> {
        let identity = self.run.as_ref().map(Run::exchange).and_then(|exchange| exchange.caller.identity())?;
        let mut hasher = DefaultHasher::new();
        identity.key().hash(&mut hasher);
        Some(hasher.finish())
    }
}
