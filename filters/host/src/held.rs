//! Requests that are held for a time (tarpit).

use std::cell::RefCell;
use std::rc::Rc;

use crate::calls;
use crate::http::Stream;

/// The most requests that one worker holds. Each one costs a connection; past this they are let go at once.
const MAX_HELD: usize = 1000;

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

struct Held {
    context: u32,
    until: u64,
    stream: Rc<RefCell<Stream>>,
}

/// Holds a request; false where too many are held already.
pub(crate) fn hold(context: u32, millis: u32, stream: &Rc<RefCell<Stream>>) -> bool {
    HELD.with_borrow_mut(|held| {
        if held.len() >= MAX_HELD {
            return false;
        }
        let until = calls::now().saturating_add(u64::from(millis));
        held.push(Held { context, until, stream: Rc::clone(stream) });
        true
    })
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

/// Lets go of every request whose time is over. Leaves another context in effect.
pub(crate) fn release() {
    let due: Vec<Held> = HELD.with_borrow_mut(|held| {
        if held.is_empty() {
            return Vec::new();
        }
        let now = calls::now();
        let (due, waiting) = std::mem::take(held).into_iter().partition(|entry| entry.until <= now);
        *held = waiting;
        due
    });
    for entry in due {
        // A client that has left in the meantime has no context any more.
        if calls::set_effective_context(entry.context)
            && let Ok(mut stream) = entry.stream.try_borrow_mut()
        {
            stream.resume(&entry.stream);
        }
    }
}
