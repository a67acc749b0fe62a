//! Keys of signers, as they are in the table that the control plane keeps up to date.

use snapshot::content_hash;

/// The table of the keys of all directories in force, by [`key_row`], with a row of each directory by its label.
pub const KEYS: &str = "bot-guard.keys";
/// The bytes that stand for a directory.
pub const DIRECTORY_BYTES: usize = 8;

/// What stands for a directory in the table: of its identifier (see [`identifier`](super::identifier)).
#[must_use]
pub fn directory_label(identifier: &[u8]) -> [u8; DIRECTORY_BYTES] {
    content_hash(identifier).first_chunk().copied().unwrap_or_default()
}

/// The row of a key: its directory and its thumbprint (RFC 7638). A key counts for the directory that has it alone, so one that
/// someone copies into another directory signs nothing for the first.
#[must_use]
pub fn key_row(directory: &[u8; DIRECTORY_BYTES], thumbprint: &[u8; 32]) -> Vec<u8> {
    [directory.as_slice(), thumbprint].concat()
}

/// An Ed25519 key of a signer, and when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignerKey {
    /// The key (RFC 8032).
    pub public: [u8; 32],
    /// From when on it counts, in milliseconds since the Unix epoch.
    pub from: u64,
    /// Until when it counts, in milliseconds since the Unix epoch.
    pub until: u64,
}

impl SignerKey {
    /// The value in the table.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.public.as_slice(), &self.from.to_be_bytes(), &self.until.to_be_bytes()].concat()
    }

    /// Reads a value of the table; `None` if it is none that this release knows.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<SignerKey> {
        let (public, rest) = bytes.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let until: [u8; 8] = rest.try_into().ok()?;
        Some(SignerKey { public: *public, from: u64::from_be_bytes(*from), until: u64::from_be_bytes(until) })
    }

    /// Whether it counts at a time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn counts_at(&self, now: u64) -> bool {
        self.from <= now && now < self.until
    }
}
