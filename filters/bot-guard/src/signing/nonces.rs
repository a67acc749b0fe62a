//! The nonces of verified signatures, which all workers of a node share.

use exchange::{Host, Table, Update};
use snapshot::content_hash;

/// 49,152 of them. A full shard forgets the one that ends first: only who has a key of a known bot adds any.
const NONCES: Table = Table { name: "svc.bot_nonces", shards: 1024, entries_per_shard: 48 };
/// The bytes of a hash that stand for a nonce and its key.
const NONCE_BYTES: usize = 16;

/// A nonce of a key.
pub(super) struct Nonce(Vec<u8>);

impl Nonce {
    pub(super) fn new(public: &[u8; 32], nonce: &[u8]) -> Self {
        let hash = content_hash(&[public.as_slice(), nonce].concat());
        Self(hash.iter().take(NONCE_BYTES).copied().collect())
    }

    /// Whether it was used.
    pub(super) fn is_used(&self, host: &dyn Host) -> bool {
        NONCES.get(host.shared(), &self.0, host.now()).is_some()
    }

    /// Notes that it is used, until the end of its signature; false where it was before, or that could not be noted.
    pub(super) fn spend(&self, until: u64, host: &dyn Host) -> bool {
        let mut first = false;
        let noted = NONCES.update(host.shared(), &self.0, host.now(), |known| {
            first = known.is_none();
            if first { Update::Put(Vec::new(), until) } else { Update::Keep }
        });
        first && noted.is_ok()
    }
}
