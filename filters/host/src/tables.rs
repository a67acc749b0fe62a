//! The tables of this worker: changes come down the link, what the worker has of them goes up.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use exchange::{Metric, Tables, Taken};
use snapshot::{KeptTables, TableChange};

use crate::calls::{self, LogLevel};
use crate::proxy_host;

thread_local! {
    static TABLES: Rc<Tables> = Rc::default();
    /// What the control plane knows of them is out of date.
    static STALE: Cell<bool> = const { Cell::new(false) };
    /// The same, which can wait for the next tick: changes come in rows, and one word is enough for a row of them.
    static APPLIED: Cell<bool> = const { Cell::new(false) };
    /// The names that the control plane was told last.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The tables of this worker, for chains.
pub(crate) fn of_worker() -> Rc<Tables> {
    TABLES.with(Rc::clone)
}

/// Chains came or went: the worker may keep other tables than before.
pub(crate) fn kept_others() {
    TABLES.with(|tables| {
        let kept = tables.names();
        if TOLD.with_borrow(|told| *told != kept) {
            STALE.set(true);
        }
    });
}

/// Takes changes from the control plane.
pub(crate) fn take(changes: &[TableChange]) {
    TABLES.with(|tables| {
        for change in changes {
            match tables.take(change) {
                Taken::Waits => {}
                Taken::Applied => APPLIED.set(true),
                Taken::NotKept => STALE.set(true),
                Taken::Refused(reason) => {
                    STALE.set(true);
                    proxy_host::count(Metric::TableRefusals, 1);
                    let message = format!(
                        "palisade: a change of the table `{}` was not taken ({reason}); the table serves as it was until its \
                         base has come again",
                        change.name
                    );
                    calls::log(LogLevel::Warn, &message);
                }
            }
        }
    });
}

/// What was applied since the last tick is told now.
pub(crate) fn tick() {
    if APPLIED.replace(false) {
        STALE.set(true);
    }
}

/// Whether there is something to tell the control plane.
pub(crate) fn has_news() -> bool {
    STALE.get()
}

/// What to tell the control plane, if anything has changed.
pub(crate) fn news() -> Option<KeptTables> {
    STALE.replace(false).then(tell)
}

/// What to tell a control plane that knows nothing; `None` where this worker keeps no tables.
pub(crate) fn introduction() -> Option<KeptTables> {
    STALE.set(false);
    Some(tell()).filter(|kept| !kept.tables.is_empty())
}

/// Merges changes into a table; `false` once there is nothing left to do.
pub(crate) fn merge() -> bool {
    TABLES.with(|tables| tables.merge())
}

fn tell() -> KeptTables {
    APPLIED.set(false);
    let kept = TABLES.with(|tables| tables.tell());
    TOLD.set(kept.tables.iter().map(|table| table.name.clone()).collect());
    kept
}
