//! Which puzzles, and which slots of waiting, were spent on this node.

use exchange::{Host, Table, Update, offline};

use crate::puzzle::Puzzle;

/// Up to 65,536 puzzles. Each one in here has cost its work, so nobody pushes others out for nothing.
const SPENT: Table = Table { name: "svc.puzzles", shards: 256, entries_per_shard: 256 };
/// Up to 65,536 slots. Apart from the puzzles: somebody with many networks waits in all of them at once.
const SLOTS: Table = Table { name: "svc.waits", shards: 256, entries_per_shard: 256 };
/// For how long a node is offline after a question that was not answered, in milliseconds.
const OFFLINE_MILLIS: u64 = 30_000;

/// Spends a puzzle; false where it was spent before, or that cannot be kept.
pub(crate) fn spend(puzzle: &Puzzle, host: &dyn Host) -> bool {
    spend_in(&SPENT, &puzzle.id, puzzle.exp, host)
}

/// Spends a slot of waiting until a time; false where it was spent before, or that cannot be kept.
pub(crate) fn spend_slot(slot: &str, until: u64, host: &dyn Host) -> bool {
    spend_in(&SLOTS, slot, until, host)
}

/// Whether a slot of waiting was spent on this node, or asked for in vain.
pub(crate) fn is_slot_spent(slot: &str, host: &dyn Host) -> bool {
    SLOTS.get(host.shared(), slot.as_bytes(), host.now()).is_some()
}

/// The incarnation of this node, which alone takes a new puzzle, while the node is offline; empty while it is not.
pub(crate) fn own_incarnation(host: &dyn Host) -> String {
    if offline::is(host.shared(), host.now()) { offline::incarnation(host).unwrap_or_default() } else { String::new() }
}

/// Whether another life or another node has given a puzzle for itself.
pub(crate) fn is_elsewhere(puzzle: &Puzzle, host: &dyn Host) -> bool {
    !puzzle.node.is_empty() && offline::incarnation(host).as_ref() != Some(&puzzle.node)
}

/// Notes that the control plane did not answer: the next puzzles are this node's own.
pub(crate) fn mark_offline(host: &dyn Host) {
    offline::mark(host.shared(), host.now().saturating_add(OFFLINE_MILLIS), host.now());
}

fn spend_in(table: &Table, id: &str, until: u64, host: &dyn Host) -> bool {
    let mut first = false;
    let update = table.update(host.shared(), id.as_bytes(), host.now(), |entry| {
        first = entry.is_none();
        if first { Update::Put(Vec::new(), until) } else { Update::Keep }
    });
    first && update.is_ok()
}
