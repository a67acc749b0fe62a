//! The throttle tier: a caller goes on at so many requests per window.

use exchange::{Exchange, Host, Table, Update};
use snapshot::Tier;

/// Windows that a node has open: up to 65,536 callers.
const WINDOWS: Table = Table { name: "svc.throttle", shards: 128, entries_per_shard: 512 };

/// Whether a request is within its caller's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Within,
    Beyond {
        /// Seconds until the window ends.
        retry_after: u64,
    },
}

/// Counts a request of this caller under a tier. Where the count cannot be kept the request passes.
pub(crate) fn take(tier: &Tier, policy: &str, exchange: &Exchange, host: &dyn Host) -> Outcome {
    let Some(identity) = exchange.caller.identity() else {
        return Outcome::Within;
    };
    let key = format!("{policy}/{}/{}", tier.index, identity.key());
    let now = host.now();
    let mut outcome = Outcome::Within;
    let window = u64::from(tier.throttle_window_seconds).saturating_mul(1000);
    let update = WINDOWS.update(host.shared(), key.as_bytes(), now, |entry| {
        // A window that ends later than one that begins now is from before the clock was set back.
        let entry = entry.filter(|entry| entry.expires_at <= now.saturating_add(window));
        let counted = entry.and_then(|entry| entry.value.first_chunk::<4>());
        let (count, until) = match (counted, entry) {
            (Some(count), Some(entry)) => (u32::from_le_bytes(*count).saturating_add(1), entry.expires_at),
            _ => (1, now.saturating_add(window)),
        };
        outcome = if count > tier.throttle_quota {
            Outcome::Beyond { retry_after: until.saturating_sub(now).div_ceil(1000) }
        } else {
            Outcome::Within
        };
        Update::Put(count.to_le_bytes().to_vec(), until)
    });
    if update.is_err() { Outcome::Within } else { outcome }
}
