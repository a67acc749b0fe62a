//! What is kept of threat feeds: the lists that were fetched, so that a control plane has them again when it starts.

use std::sync::Arc;

use super::Pending;

/// The most feeds of which something is kept.
pub const MAX_FEEDS: u32 = 256;
/// The longest list that is kept, in bytes.
pub const MAX_FEED_LIST: usize = 64 << 20;

/// The part of a [`Store`](super::Store) that threat feeds need. What was answered with `Ok` is durable, and each call is one
/// transaction.
pub trait FeedStore: Send + Sync + 'static {
    /// Keeps what is known of a feed, in the place of what was kept of it before; a list that is kept already is not written again.
    /// False, and nothing is changed: the feed is not among those kept and there are [`MAX_FEEDS`], or a list is longer than
    /// [`MAX_FEED_LIST`].
    fn feed_put(&self, feed: KeptFeed) -> Pending<'_, bool>;

    /// Forgets a feed; false when nothing was kept of it.
    fn feed_remove(&self, id: &str) -> Pending<'_, bool>;

    /// What is kept of all feeds, by id.
    fn feeds(&self) -> Pending<'_, Vec<KeptFeed>>;

    /// What is kept of one feed.
    fn feed(&self, id: &str) -> Pending<'_, Option<KeptFeed>>;
}

/// What is kept of one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptFeed {
    /// The id of its entity.
    pub id: String,
    /// What its owner keeps beside the lists, JSON.
    pub state: String,
    /// The list in force.
    pub current: Option<FeedList>,
    /// The one that a rollback restores.
    pub previous: Option<FeedList>,
}

/// A list of addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedList {
    /// The SHA-256 of `bytes`.
    pub hash: [u8; 32],
    /// The addresses, in the encoding of their owner.
    pub bytes: Arc<[u8]>,
}

impl std::fmt::Debug for FeedList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedList").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}
