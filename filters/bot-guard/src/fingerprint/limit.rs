//! How many requests come with a fingerprint, of all clients that have it and on all nodes.

use exchange::Host;
use exchange::shared_counts::Window;

use super::Fingerprint;

/// The window that is counted in, in milliseconds, and its slices.
const WINDOW: u64 = 60_000;
const SLICES: u8 = 6;
/// The fingerprints that are counted on a node, at most: those with a rule alone are.
const MAX_KEYS: u32 = 2_000;

/// The requests of each fingerprint within a minute.
pub(super) struct Limits(Window);

impl Limits {
    /// # Errors
    ///
    /// None in practice: the window is a constant.
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self(Window::new("bots.fingerprints", WINDOW, SLICES)?.max_keys(MAX_KEYS)))
    }

    /// Counts a request; whether there are more than `most` with it, as far as this node knows.
    pub(super) fn is_over(&self, fingerprint: &Fingerprint, most: u32, host: &dyn Host) -> bool {
        let key = fingerprint.to_string();
        let count = self.0.add(host, key.as_bytes(), 1);
        count.total() > most
    }
}
