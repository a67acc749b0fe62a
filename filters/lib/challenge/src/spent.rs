//! Which puzzles were spent on this node.

use exchange::{Host, Table, Update};

use crate::puzzle::Puzzle;

/// Up to 65,536 puzzles. Each one in here has cost its work, so nobody pushes others out for nothing.
const SPENT: Table = Table { name: "svc.puzzles", shards: 256, entries_per_shard: 256 };

/// Spends a puzzle; false where it was spent before, or that cannot be kept.
pub(crate) fn spend(puzzle: &Puzzle, host: &dyn Host) -> bool {
    let mut first = false;
    let update = SPENT.update(host.shared(), puzzle.id.as_bytes(), host.now(), |entry| {
        first = entry.is_none();
        if first { Update::Put(Vec::new(), puzzle.exp) } else { Update::Keep }
    });
    first && update.is_ok()
}
