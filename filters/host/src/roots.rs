//! The root contexts of this VM: which of those that live is the newest. It alone keeps the link, merges tables and runs timers.
//!
//! A gateway that goes back to a configuration while requests that began on it are still under way takes its root context again, and
//! tells it nothing. So the newest root context may end before older ones: then the one before it is the newest again.

use std::cell::{Cell, RefCell};

thread_local! {
    /// Those that live and have taken a configuration, in the order in which they took it.
    static LIVE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// The one whose settings are in force.
    static IN_FORCE: Cell<u32> = const { Cell::new(0) };
}

/// A root context has taken its configuration.
pub(crate) fn configured(context: u32) {
    LIVE.with_borrow_mut(|live| {
        live.retain(|known| *known != context);
        live.push(context);
    });
    IN_FORCE.set(0);
}

/// A root context ends. Nothing else happens here: it may end inside any callback.
pub(crate) fn ended(context: u32) {
    LIVE.with_borrow_mut(|live| live.retain(|known| *known != context));
}

/// Whether a root context is the newest that lives.
pub(crate) fn is_newest(context: u32) -> bool {
    LIVE.with_borrow(|live| live.last() == Some(&context))
}

/// Whether a root context is the newest, and its settings are not in force yet: from now on they are.
pub(crate) fn takes_over(context: u32) -> bool {
    is_newest(context) && IN_FORCE.replace(context) != context
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_lives_takes_over_once() {
        assert!(!is_newest(1) && !takes_over(1), "nothing is configured");
        configured(1);
        assert!(takes_over(1) && !takes_over(1) && is_newest(1));
        configured(2);
        configured(3);
        assert!(takes_over(3) && !takes_over(1) && !is_newest(1));
        ended(2);
        assert!(is_newest(3) && !takes_over(3));
        ended(3);
        assert!(takes_over(1) && !takes_over(1), "the one before is the newest again");
        configured(1);
        assert!(takes_over(1), "with another configuration");
        ended(1);
        assert!(!is_newest(1) && !takes_over(1));
    }
}
