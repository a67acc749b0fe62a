//! How far reading is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How far reading is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that were read of the files, as they are on disk. What a format leaves unread counts when its file is done.
    pub bytes_read: u64,
    /// The bytes of all files when they were opened; 0 where that is not known.
    pub bytes_total: u64,
    /// Entries that were left out because they never reached a network (`data:` URLs, what came out of a cache).
    pub skipped: u64,
}

/// Tells how far reading is, from anywhere. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    total: AtomicU64,
    skipped: AtomicU64,
}

impl Meter {
    /// How far it is now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let Counts { read, total, skipped } = &*self.0;
        Progress { bytes_read: read.load(Relaxed), bytes_total: total.load(Relaxed), skipped: skipped.load(Relaxed) }
    }

    /// Counts an entry that is left out. For [`crate::Reader`]s.
    pub fn skip(&self) {
        self.0.skipped.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Relaxed);
    }

    pub(super) fn expect(&self, bytes: u64) {
        self.0.total.fetch_add(bytes, Relaxed);
    }
}
