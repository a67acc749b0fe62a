//! Messages that are held until a time or an answer, and go on then.

use std::cell::RefCell;
use std::rc::Rc;

use exchange::{Answer, Ask, Flow, Run};
use proxy_wasm::types::Action;
use snapshot::AskBody;

use super::{Buffered, Buffering, Stream};
use crate::calls::{self, Buffer, Half};
use crate::proxy_host::ProxyHost;
use crate::{held, link};

/// How many more bytes of a body may come while its message waits. The gateway buffers them, and answers with 413 or 500 beyond its
/// limit, which is 1 MiB more than any step asks for; so the wait ends before that.
const MORE_WHILE_WAITING: usize = 512 * 1024;

/// A half of the stream that is held until a time or an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) half: Half,
    /// The wait ends once more bytes of the body than this are there and others follow.
    most: usize,
    /// It waits for an answer.
    asks: bool,
}

impl Stream {
    /// Holds a message for a time; it goes on at once where too many are held.
    pub(super) fn hold(&mut self, half: Half, millis: u32, this: &Rc<RefCell<Self>>) -> Action {
        self.set_buffering(half, Buffering::Off);
        let most = self.most_while_waiting(half);
        // Without more room, what is refused at the end waits without its body, and what is delayed alone goes on.
        let fits = self.half(half).size <= most || self.half(half).ended;
        if (fits || self.drops_body(half)) && held::hold(self.context, millis, this) {
            self.waiting = Some(Waiting { half, most, asks: false });
            return Action::Pause;
        }
        self.go_on(half, None, this)
    }

    /// How many bytes of a body may be there while its message waits: some more than there are. A wait that follows one that was given up
    /// has the room of that one.
    fn most_while_waiting(&mut self, half: Half) -> usize {
        self.given_up.take().unwrap_or_else(|| self.half(half).size.saturating_add(MORE_WHILE_WAITING))
    }

    /// Drops the body of a request that is refused at the end of its delay; false where it is not, or the gateway keeps the body.
    fn drops_body(&self, half: Half) -> bool {
        let is_refused = self.run.as_ref().is_some_and(Run::is_held_for_answer);
        is_refused && half == Half::Request && calls::replace_buffer(Buffer::RequestBody, b"")
    }

    /// Holds a message until its question is answered.
    pub(super) fn ask(&mut self, half: Half, ask: Ask, this: &Rc<RefCell<Self>>) -> Action {
        self.set_buffering(half, Buffering::Off);
        let body = self
            .run
            .as_ref()
            .and_then(Run::asked_body)
            .map(|body| AskBody { length: u64::try_from(body.length).unwrap_or(u64::MAX), complete: body.complete });
        match link::ask(ask, body, (self.context, self.caller()), this) {
            Ok(()) => {
                let most = self.most_while_waiting(half);
                self.waiting = Some(Waiting { half, most, asks: true });
                Action::Pause
            }
            Err(answer) => self.go_on(half, Some(answer), this),
        }
    }

    /// Bytes of the body that goes with the question that this stream waits for; fewer where they are not there. The gateway's
    /// calls act on this stream already.
    pub(crate) fn asked_bytes(&self, from: usize, length: usize) -> Vec<u8> {
        let (Some(waiting), Some(body)) = (self.waiting, self.run.as_ref().and_then(Run::asked_body)) else {
            return Vec::new();
        };
        let length = length.min(body.length.saturating_sub(from));
        if let Some(replaced) = body.replaced {
            return replaced.get(from..from.saturating_add(length)).unwrap_or_default().to_vec();
        }
        let buffer = if waiting.half == Half::Request { Buffer::RequestBody } else { Buffer::ResponseBody };
        calls::buffer_from(buffer, from, length).unwrap_or_default()
    }

    /// Whether a half is held until a time or an answer.
    pub(super) fn is_held(&self, half: Half) -> bool {
        self.waiting.is_some_and(|waiting| waiting.half == half || self.early.is_some())
    }

    /// More of the body of a message came that waits. Beyond the bound, a question gets no answer, and what is delayed goes on. What
    /// is delayed before it is refused waits to the end, without its body.
    pub(super) fn more_of(&mut self, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        let Buffered { size, ended, .. } = *self.half(half);
        let is_over = |waiting: &Waiting| {
            let most = if waiting.half == half { waiting.most } else { MORE_WHILE_WAITING };
            size > most && !ended
        };
        let Some(over) = self.waiting.filter(is_over) else { return Action::Pause };
        if self.drops_body(half) {
            return Action::Pause;
        }
        self.waiting = None;
        held::forget(self.context);
        let answer = over.asks.then_some(Answer::Overrun);
        if self.early.is_none() {
            self.given_up = Some(over.most);
            let action = self.go_on(half, answer, this);
            self.given_up = None;
            return action;
        }
        let action = self.go_on_early(answer, this);
        match (half, action) {
            (Half::Response, action) => action,
            (Half::Request, action) => {
                if action == Action::Continue {
                    calls::continue_stream(Half::Response);
                }
                Action::Pause
            }
        }
    }

    /// The time of a held message is over, or its question has this answer. The gateway's calls act on its stream already.
    pub(crate) fn resume(&mut self, answer: Option<Answer>, this: &Rc<RefCell<Self>>) {
        let Some(Waiting { half, .. }) = self.waiting.take() else { return };
        if self.early.is_some() {
            if self.go_on_early(answer, this) == Action::Continue {
                calls::continue_stream(Half::Response);
            }
            return;
        }
        let action = self.go_on(half, answer, this);
        // Held at its headers, and nothing of its body has come: it comes once they are released.
        let Buffered { size, ended, .. } = *self.half(half);
        let action = if size == 0 && !ended { self.at_headers(half, action) } else { action };
        let action = if half == Half::Request { self.inspect_trailers(action, this) } else { action };
        if half == Half::Response {
            self.show_response_trailers(action);
        }
        if action == Action::Continue {
            calls::continue_stream(half);
        }
    }

    /// Goes on behind a wait, with what has come of the body in the meantime.
    fn go_on(&mut self, half: Half, answer: Option<Answer>, this: &Rc<RefCell<Self>>) -> Action {
        if self.early.is_some() {
            return self.go_on_early(answer, this);
        }
        let flow = self.behind_wait(answer);
        let action = self.act(flow, half, this);
        self.with_what_came(half, action, this)
    }

    pub(super) fn behind_wait(&mut self, answer: Option<Answer>) -> Flow {
        self.run.as_mut().map_or(Flow::Continue, |run| match answer {
            Some(answer) => run.answered(answer, &ProxyHost::default()),
            None => run.resume(&ProxyHost::default()),
        })
    }

    /// Carries on with what has come of a message while it waited.
    pub(super) fn with_what_came(&mut self, half: Half, action: Action, this: &Rc<RefCell<Self>>) -> Action {
        let Buffered { size, ended, state } = *self.half(half);
        match action {
            Action::Continue if half == Half::Request && self.awaits_first_bytes && size > 0 => self.open_stream(this),
            Action::Pause if size > 0 || ended => match state {
                Buffering::Until(_) | Buffering::Read { .. } => self.hand_over(half, this),
                _ => Action::Pause,
            },
            action => action,
        }
    }
}
