//! How many requests the workers of this node hold for a tarpit, all together.
//!
//! Each worker tells the others its number in shared data. A worker that is gone tells nothing any more, and its number
//! counts for a short time only.

use std::cell::Cell;

use exchange::{Host as _, SharedData};

use crate::proxy_host::ProxyHost;

const KEY: &str = "svc.tarpit";
/// The most requests where the snapshot does not say.
const MAX_HELD: u32 = 1000;
/// For how long a number counts that its worker does not repeat, in milliseconds.
const LEASE: u64 = 10_000;
/// How often it is repeated, in milliseconds.
const REPEAT: u64 = 2_000;
/// How often a write is tried against other workers before it is given up.
const ATTEMPTS: usize = 16;

thread_local! {
    static MAX: Cell<u32> = const { Cell::new(MAX_HELD) };
    /// What this worker has told last, and when, in milliseconds since the Unix epoch.
    static TOLD: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
    static WORKER: u64 = ProxyHost::default().random();
}

/// Takes over the limit of a new snapshot; 0 for the default.
pub(crate) fn configure(max_held: u32) {
    MAX.set(if max_held == 0 { MAX_HELD } else { max_held });
}

/// Counts one more request of this worker; false where the node holds its most already.
pub(crate) fn take(shared: &dyn SharedData, now: u64) -> bool {
    let told =
        change(shared, WORKER.with(|id| *id), now, |own, all| (all < MAX.get()).then_some(own.saturating_add(1)));
    told.inspect(|count| TOLD.set((*count, now))).is_some()
}

/// Says how many requests this worker holds, where the others do not know it yet or are about to forget.
pub(crate) fn keep(shared: &dyn SharedData, count: usize, now: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let (told, at) = TOLD.get();
    if told == count && (count == 0 || now < at.saturating_add(REPEAT)) {
        return;
    }
    if change(shared, WORKER.with(|id| *id), now, |_, _| Some(count)).is_some() {
        TOLD.set((count, now));
    }
}

/// What one worker holds.
struct Share {
    worker: u64,
    count: u32,
    until: u64,
}

/// Sets the number of a worker to what `wanted` makes of it and of that of all workers together; `None` where it makes
/// nothing, or other workers were faster every time.
fn change(shared: &dyn SharedData, worker: u64, now: u64, wanted: impl Fn(u32, u32) -> Option<u32>) -> Option<u32> {
    for _ in 0..ATTEMPTS {
        let (bytes, token) = shared.get(KEY).map_or((Vec::new(), None), |(bytes, token)| (bytes, Some(token)));
        let mut shares = read(&bytes);
        shares.retain(|share| share.until > now && share.count > 0);
        let all = shares.iter().fold(0_u32, |all, share| all.saturating_add(share.count));
        let own = shares.iter().find(|share| share.worker == worker).map_or(0, |share| share.count);
        let count = wanted(own, all)?;
        shares.retain(|share| share.worker != worker);
        shares.push(Share { worker, count, until: now.saturating_add(LEASE) });
        if shared.set(KEY, &write(&shares), token).is_ok() {
            return Some(count);
        }
    }
    None
}

fn read(bytes: &[u8]) -> Vec<Share> {
    let (shares, _) = bytes.as_chunks::<20>();
    let part = |share: &[u8; 20]| {
        let (worker, rest) = share.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let until = rest.first_chunk::<8>()?;
        Some(Share {
            worker: u64::from_le_bytes(*worker),
            count: u32::from_le_bytes(*count),
            until: u64::from_le_bytes(*until),
        })
    };
    shares.iter().filter_map(part).collect()
}

fn write(shares: &[Share]) -> Vec<u8> {
    let bytes = |share: &Share| {
        [&share.worker.to_le_bytes()[..], &share.count.to_le_bytes(), &share.until.to_le_bytes()].concat()
    };
    shares.iter().flat_map(bytes).collect()
}
