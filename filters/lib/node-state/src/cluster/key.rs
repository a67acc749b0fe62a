//! The key of the hashes that all nodes have in common.

use crate::secret::HashSecret;

/// The bits of a member's hash.
const MEMBER_BITS: u64 = (1 << 56) - 1;

/// A secret of all nodes: with it, the hash of a key is the same on each of them. Names of users and other keys never leave a
/// node; their hashes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterKey(HashSecret);

impl ClusterKey {
    /// The length of a secret, in bytes.
    pub const BYTES: usize = 16;

    /// The key of this secret.
    #[must_use]
    pub const fn new(secret: [u8; Self::BYTES]) -> Self {
        Self(HashSecret::new(secret))
    }

    /// The hash of a key of the window, budget or set `name`.
    #[must_use]
    pub fn key(self, name: &str, key: &[u8]) -> u64 {
        self.0.hash(name, key)
    }

    /// The hash of a member of a set, 56 bits. A member of two sets has one hash in each.
    #[must_use]
    pub fn member(self, name: &str, key: u64, member: &[u8]) -> u64 {
        let mut salted = key.to_le_bytes().to_vec();
        salted.extend_from_slice(member);
        self.0.hash(name, &salted) & MEMBER_BITS
    }
}
