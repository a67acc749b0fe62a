//! Requests that are held: for a time (tarpit), or until the control plane has answered.

use std::cell::RefCell;
use std::rc::Rc;

use exchange::Answer;

use crate::calls;
use crate::http::Stream;
use crate::shared::NodeSharedData;
use crate::tarpit;

/// The most requests of one worker that wait for an answer; more of them go on without one.
const MAX_ASKING: usize = 1000;
/// The most requests that are released in one tick. The gateway carries an answer out when the call is over, from within
/// the callbacks of the answer before it: the stack grows with every one, and some hundreds of them end the VM.
const MAX_RELEASED: usize = 16;

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

struct Held {
    context: u32,
    until: u64,
    /// The question that it waits for the answer of.
    question: Option<u64>,
    /// The answer; [`Answer::Unavailable`] until it arrives.
    answer: Answer,
    stream: Rc<RefCell<Stream>>,
}

/// Holds a request; false where too many are held already.
pub(crate) fn hold(context: u32, millis: u32, question: Option<u64>, stream: &Rc<RefCell<Stream>>) -> bool {
    HELD.with_borrow_mut(|held| {
        let room = match question {
            Some(_) => held.iter().filter(|entry| entry.question.is_some()).count() < MAX_ASKING,
            None => tarpit::take(&NodeSharedData, calls::now()),
        };
        if !room {
            return false;
        }
        let until = calls::now().saturating_add(u64::from(millis));
        held.push(Held { context, until, question, answer: Answer::Unavailable, stream: Rc::clone(stream) });
        true
    })
}

/// The control plane has answered a question: the request that waits for it is released in the next round.
pub(crate) fn answered(question: u64, answer: Answer) {
    HELD.with_borrow_mut(|held| {
        if let Some(entry) = held.iter_mut().find(|entry| entry.question == Some(question)) {
            (entry.answer, entry.until) = (answer, 0);
        }
    });
}

/// No stream will bring the answers of questions any more, but of those that are still to be sent: who waits for the others is
/// released with the next ones, without an answer.
pub(crate) fn give_up(to_be_sent: impl Fn(u64) -> bool) {
    HELD.with_borrow_mut(|held| {
        for entry in held.iter_mut().filter(|entry| entry.until > 0) {
            if entry.question.is_some_and(|question| !to_be_sent(question)) {
                entry.until = 0;
            }
        }
    });
}

/// Forgets a request whose client has left.
pub(crate) fn forget(context: u32) {
    // Called while a stream is deleted, which may happen inside `release`: then the entry is out already.
    HELD.with(|held| {
        if let Ok(mut held) = held.try_borrow_mut() {
            held.retain(|entry| entry.context != context);
        }
    });
}

/// Releases requests that are due; true where there are more of them than one tick may release. Leaves another
/// context in effect.
pub(crate) fn release() -> bool {
    let more = release_some();
    let tarpitted = HELD.with_borrow(|held| held.iter().filter(|entry| entry.question.is_none()).count());
    tarpit::publish(&NodeSharedData, tarpitted, calls::now());
    more
}

fn release_some() -> bool {
    let (due, more) = HELD.with_borrow_mut(|held| {
        if held.is_empty() {
            return (Vec::new(), false);
        }
        let now = calls::now();
        let (mut due, waiting): (Vec<Held>, Vec<Held>) =
            std::mem::take(held).into_iter().partition(|entry| entry.until <= now);
        let left = due.split_off(due.len().min(MAX_RELEASED));
        let more = !left.is_empty();
        held.extend(left);
        held.extend(waiting);
        (due, more)
    });
    for entry in due {
        // A client that has left in the meantime has no context any more.
        if calls::set_effective_context(entry.context)
            && let Ok(mut stream) = entry.stream.try_borrow_mut()
        {
            stream.resume(entry.question.map(|_| entry.answer), &entry.stream);
        }
    }
    more
}
