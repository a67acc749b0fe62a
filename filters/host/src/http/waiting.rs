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

/// How many more bytes of a body may come while its message waits for an answer. The gateway buffers them, and answers with 413
/// or 500 beyond its limit, which is 1 MiB more than any step asks for; so the wait ends before that, without an answer.
const MORE_WHILE_ASKING: usize = 512 * 1024;

/// A half of the stream that is held until a time or an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) half: Half,
    /// The wait ends once more bytes of the body than this are there and others follow.
    most: usize,
}

impl Stream {
    /// Holds a message for a time; it goes on at once where too many are held.
    pub(super) fn hold(&mut self, half: Half, millis: u32, this: &Rc<RefCell<Self>>) -> Action {
        self.set_buffering(half, Buffering::Off);
        if held::hold(self.context, millis, this) {
            self.waiting = Some(Waiting { half, most: usize::MAX });
            return Action::Pause;
        }
        self.go_on(half, None, this)
    }

    /// Holds a message until its question is answered.
    pub(super) fn ask(&mut self, half: Half, ask: Ask, this: &Rc<RefCell<Self>>) -> Action {
        self.set_buffering(half, Buffering::Off);
        let body = self
            .run
            .as_ref()
            .and_then(Run::asked_body)
            .map(|body| AskBody { length: u64::try_from(body.length).unwrap_or(u64::MAX), complete: body.complete });
        match link::ask(ask, body, self.context, this) {
            Ok(()) => {
                let most = self.half(half).size.saturating_add(MORE_WHILE_ASKING);
                self.waiting = Some(Waiting { half, most });
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

    /// More of the body of a message came that waits.
    pub(super) fn more_of(&mut self, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        let Buffered { size, ended, .. } = *self.half(half);
        if self.waiting.take_if(|waiting| size > waiting.most && !ended).is_none() {
            return Action::Pause;
        }
        held::forget(self.context);
        self.go_on(half, Some(Answer::Unavailable), this)
    }

    /// The time of a held message is over, or its question has this answer. The gateway's calls act on its stream already.
    pub(crate) fn resume(&mut self, answer: Option<Answer>, this: &Rc<RefCell<Self>>) {
        let Some(Waiting { half, .. }) = self.waiting.take() else { return };
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
        let flow = self.run.as_mut().map_or(Flow::Continue, |run| match answer {
            Some(answer) => run.answered(answer, &ProxyHost::default()),
            None => run.resume(&ProxyHost::default()),
        });
        let action = self.act(flow, half, this);
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
