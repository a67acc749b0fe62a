//! How many requests the workers of this node hold for a tarpit, all together.

use std::cell::Cell;

use exchange::SharedData;
use node_state::Shares;

use crate::shared::worker_id;

const HELD: Shares = Shares { name: "svc.tarpit", lease: 10_000 };
/// The most requests where the snapshot does not say.
const MAX_HELD: u32 = 1000;
/// How often a worker publishes its count again, in milliseconds.
const REPEAT: u64 = 2_000;

thread_local! {
    static MAX: Cell<u32> = const { Cell::new(MAX_HELD) };
    /// What this worker has reported last, and when, in milliseconds since the Unix epoch.
    static REPORTED: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// Takes over the limit of a new snapshot; 0 for the default.
pub(crate) fn configure(max_held: u32) {
    MAX.set(if max_held == 0 { MAX_HELD } else { max_held });
}

/// Counts one more request of this worker; false where the node holds its most already.
pub(crate) fn take(shared: &dyn SharedData, now: u64) -> bool {
    let reported = HELD.change(shared, worker_id(), now, |own, all| (all < MAX.get()).then_some(own.saturating_add(1)));
    reported.inspect(|count| REPORTED.set((*count, now))).is_some()
}

/// Publishes how many requests this worker holds, if that has changed or is about to expire.
pub(crate) fn publish(shared: &dyn SharedData, count: usize, now: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let (reported, at) = REPORTED.get();
    if reported == count && (count == 0 || now < at.saturating_add(REPEAT)) {
        return;
    }
    if HELD.change(shared, worker_id(), now, |_, _| Some(count)).is_some() {
        REPORTED.set((count, now));
    }
}
