//! What pages have cost on this node: for each caller, and for all together.

use exchange::Host;
use node_state::Windows;

use crate::{MazeBudget, MazeLimits};

/// Pages and their KiB.
const HOUR: Windows = Windows::new("maze.hour", 3_600_000, 6, 20_000);
/// Processor time in microseconds.
const MOMENT: Windows = Windows::new("maze.processor", 10_000, 5, 20_000);
/// The kinds of cost in [`HOUR`], as the first byte of a key.
const PAGES: u8 = b'p';
const KIBIBYTES: u8 = b'k';
/// What generating takes in a wasm VM, in nanoseconds for each byte and for each page, rounded up. A filter cannot measure it: the
/// clock of a VM may stand still during a call.
const BYTE_NANOS: u32 = 10;
const PAGE_NANOS: u32 = 20_000;

/// Charges a page to a caller and to all; `false` if a budget of either does not suffice, or could not be charged.
pub(crate) fn take(limits: &MazeLimits, caller: &[u8], host: &dyn Host) -> bool {
    let micros = limits.page_bytes.saturating_mul(BYTE_NANOS).saturating_add(PAGE_NANOS).div_ceil(1000);
    let cost = MazeBudget { pages: 1, kibibytes: limits.page_bytes.div_ceil(1024), micros };
    // What is over a budget is not charged: a caller that goes on must not use up what is left for all.
    let accounts = [(caller, &limits.caller), (b"".as_slice(), &limits.all)];
    accounts.iter().all(|(account, budget)| charge(account, cost, budget, host, false))
        && accounts.iter().all(|(account, budget)| charge(account, cost, budget, host, true))
}

/// Whether a caller was shown a page within the last hour.
pub(crate) fn has_pages(caller: &[u8], host: &dyn Host) -> bool {
    HOUR.get(host.shared(), &key(PAGES, caller), host.now()) > 0
}

/// Whether an account has room for this cost; `add` charges it. Workers that do so at once are told apart by the total.
fn charge(account: &[u8], cost: MazeBudget, budget: &MazeBudget, host: &dyn Host, add: bool) -> bool {
    let parts = [
        (&HOUR, PAGES, cost.pages, budget.pages),
        (&HOUR, KIBIBYTES, cost.kibibytes, budget.kibibytes),
        (&MOMENT, 0, cost.micros, budget.micros),
    ];
    parts.into_iter().all(|(windows, kind, cost, limit)| {
        let (data, key, now) = (host.shared(), key(kind, account), host.now());
        if !add {
            return windows.get(data, &key, now).saturating_add(cost) <= limit;
        }
        let counted = windows.add(data, &key, cost, now);
        !counted.lost && counted.total <= limit
    })
}

fn key(kind: u8, account: &[u8]) -> Vec<u8> {
    [&[kind], account].concat()
}
