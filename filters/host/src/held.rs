//! Messages that are held: for a time (tarpit), or until the control plane has answered a question.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use exchange::{Answer, Questions, wait_is_over};

use crate::calls;
use crate::http::Stream;
use crate::shared::NodeSharedData;
use crate::tarpit;

/// The most messages that are released in one call of the gateway. It carries each on when the call is over, from within the
/// callbacks of the one before it: the stack grows with every one, and some hundreds of them end the VM.
const MAX_RELEASED: usize = 16;

thread_local! {
    static HELD: RefCell<Held> = RefCell::new(Held::default());
}

#[derive(Default)]
struct Held {
    /// Tarpitted requests, and from when until when they are held, in milliseconds since the Unix epoch.
    delayed: Vec<(Range<u64>, Waiting)>,
    questions: Questions<Waiting>,
    /// What goes on next, with its answer if it has asked.
    due: VecDeque<(Waiting, Option<Answer>)>,
}

/// A message that waits.
struct Waiting {
    context: u32,
    stream: Rc<RefCell<Stream>>,
}

impl Waiting {
    fn new(context: u32, stream: &Rc<RefCell<Stream>>) -> Self {
        Self { context, stream: Rc::clone(stream) }
    }
}

impl Held {
    fn unanswered(&mut self, waiting: Vec<Waiting>) {
        self.due.extend(waiting.into_iter().map(|waiting| (waiting, Some(Answer::Unavailable))));
    }

    /// What has waited long enough is due.
    fn find_overdue(&mut self, now: u64) {
        let is_due = |time: &Range<u64>| wait_is_over(time.start, time.end, now);
        if self.delayed.iter().any(|(time, _)| is_due(time)) {
            let (due, delayed): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.delayed).into_iter().partition(|(time, _)| is_due(time));
            self.delayed = delayed;
            self.due.extend(due.into_iter().map(|(_, waiting)| (waiting, None)));
        }
        let overdue = self.questions.take_overdue(now);
        self.unanswered(overdue);
    }
}

/// Holds a request for a time; false where too many are held already.
pub(crate) fn hold(context: u32, millis: u32, stream: &Rc<RefCell<Stream>>) -> bool {
    let now = calls::now();
    let room = tarpit::take(&NodeSharedData, now);
    if room {
        let time = now..now.saturating_add(u64::from(millis));
        HELD.with_borrow_mut(|held| held.delayed.push((time, Waiting::new(context, stream))));
    }
    room
}

/// Holds a message until a question of so many bytes is answered, and numbers the question; the answer where too much is asked
/// already, by all callers or by this one.
pub(crate) fn open(
    (context, caller): (u32, Option<u64>),
    bytes: usize,
    millis: u32,
    stream: &Rc<RefCell<Stream>>,
) -> Result<u64, Answer> {
    let now = calls::now();
    let times = (now, now.saturating_add(u64::from(millis)));
    HELD.with_borrow_mut(|held| held.questions.open(Waiting::new(context, stream), caller, bytes, times))
}

/// A question was sent on a stream.
pub(crate) fn sent(question: u64, token: u32) {
    HELD.with_borrow_mut(|held| held.questions.sent(question, token));
}

/// Whether the message that has asked still waits.
pub(crate) fn waits(question: u64) -> bool {
    HELD.with_borrow(|held| held.questions.waits(question))
}

/// Whether a message waits for an answer on a stream.
pub(crate) fn wait_on(token: u32) -> bool {
    HELD.with_borrow(|held| held.questions.wait_on(token))
}

/// The control plane has answered a question: the message that waits for it is released in the next round.
pub(crate) fn answered(question: u64, answer: Answer) {
    let now = calls::now();
    HELD.with_borrow_mut(|held| {
        if let Some(waiting) = held.questions.answered(question, now) {
            held.due.push_back((waiting, Some(answer)));
        }
    });
}

/// A question could not be sent: its message does not wait.
pub(crate) fn withdraw(question: u64) {
    HELD.with_borrow_mut(|held| drop(held.questions.take(question)));
}

/// A stream has ended: the messages that wait for answers on it are released in the next round, without an answer.
pub(crate) fn lose(token: u32) {
    HELD.with(|held| {
        // Called while a root context is deleted, which may happen inside a callback.
        if let Ok(mut held) = held.try_borrow_mut() {
            let lost = held.questions.take_lost(token);
            held.unanswered(lost);
        }
    });
}

/// The same for questions that were not sent yet.
pub(crate) fn lose_unsent() {
    HELD.with_borrow_mut(|held| {
        let lost = held.questions.take_unsent();
        held.unanswered(lost);
    });
}

/// Forgets a message: its client has left, or it waits no more.
pub(crate) fn forget(context: u32) {
    // Called while a stream is deleted, which may happen inside `release`: then the entry is out already.
    HELD.with(|held| {
        if let Ok(mut held) = held.try_borrow_mut() {
            held.delayed.retain(|(_, waiting)| waiting.context != context);
            held.questions.forget(|waiting| waiting.context == context);
            held.due.retain(|(waiting, _)| waiting.context != context);
        }
    });
}

/// Releases messages that are due; true where there are more of them than may be released at once. Leaves another context
/// in effect.
pub(crate) fn release() -> bool {
    let now = calls::now();
    let due: Vec<_> = HELD.with_borrow_mut(|held| {
        held.find_overdue(now);
        let count = held.due.len().min(MAX_RELEASED);
        held.due.drain(..count).collect()
    });
    for (Waiting { context, stream }, answer) in due {
        // A client that has left in the meantime has no context any more.
        if calls::set_effective_context(context)
            && let Ok(mut this) = stream.try_borrow_mut()
        {
            this.resume(answer, &stream);
        }
    }
    let (delayed, more) = HELD.with_borrow(|held| (held.delayed.len(), !held.due.is_empty()));
    tarpit::publish(&NodeSharedData, delayed, now);
    more
}
