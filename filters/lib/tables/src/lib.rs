//! Large tables that filters look things up in: feeds of addresses, countries, verdicts on keys.
//!
//! A table begins with a base, a block of bytes with a fixed layout that is searched as it is: nothing is parsed when it
//! arrives. Deltas change it while requests are served: they are kept beside the base, in an overlay that is searched first.
//! [`TableIndex::compact`] merges the overlay into a new base, a slice at a time, so that no base needs to be sent again.
//!
//! The [`State`] of a table says which base and which deltas made it, by hashes. A delta names the state that it changes and
//! the one that it leads to: a delta that is missing, repeated, out of order or damaged is refused, and changes nothing.
//!
//! A base of ranges is searched by an index of leading bits, which each VM makes when it takes the base: up to 4 bytes for a row of IPv4
//! and 8 for one of IPv6, 20 to 30 milliseconds for a million rows.
//!
//! | Kind | Maps | Base |
//! |---|---|---|
//! | [`Ranges`] | ranges of IPv4 and IPv6 addresses to labels | 10 bytes for an IPv4 range, 34 for an IPv6 range, with labels of 2 bytes |
//! | [`Keys`] | keys of up to 255 bytes to values of up to 255 bytes | key, value, and 5 bytes |

mod address;
mod error;
mod keys;
mod ranges;
mod state;
#[cfg(test)]
mod testing;

pub use address::canonical;
pub use error::{BaseError, OpError, TableError};
pub use keys::{KeyOps, Keys, KeysBuilder, MAX_KEY, MAX_VALUE};
pub use ranges::{LabelWidth, MAX_LABEL, MAX_LABELS, RangeOps, Ranges, RangesBuilder, SourceBuilder, SourceLabels};
pub use state::{Loading, State, Table};

/// The largest base, in bytes.
pub const MAX_BASE: usize = 64 << 20;

/// The most rows of a base.
pub const MAX_ROWS: usize = 4_000_000;

/// The most entries of an overlay. A table can have two overlays: one that is being merged, and one for the deltas that arrive
/// meanwhile.
pub const MAX_OVERLAY: usize = 8192;

/// The largest delta, in bytes: a range needs at most 37, so that this is no limit of its own unless names are long.
pub const MAX_DELTA: usize = 256 << 10;

/// The most operations of a delta. An empty overlay has room for any of them.
pub const MAX_OPS: usize = 2048;

/// A kind of table.
pub trait TableIndex: Sized {
    /// Reads the header of a base. The rows are not looked at: a base comes from the control plane, checked by its hash.
    ///
    /// # Errors
    ///
    /// A base of another kind, or with other lengths than its header says.
    fn load(base: Vec<u8>) -> Result<Self, BaseError>;

    /// Applies the operations of a delta, all of them or none.
    ///
    /// # Errors
    ///
    /// [`TableError::Op`] for an operation that cannot be read, [`TableError::OverlayFull`] if the overlay has no room for
    /// all of them.
    fn apply(&mut self, ops: &[u8]) -> Result<(), TableError>;

    /// The number of entries in the overlays.
    fn overlay(&self) -> usize;

    /// Merges the overlay into a new base, about `budget` rows of it in this call. Deltas can be applied between the calls.
    /// While it goes on, the table takes the memory of two bases; the last call of [`Ranges`] copies the new one once.
    fn compact(&mut self, budget: usize) -> Progress;

    /// The base that lookups go to: the one that was loaded, or the last compaction's.
    fn base(&self) -> &[u8];

    /// The content of the overlays as deltas, in their order: on the base, they give this table.
    fn changes(&self) -> Vec<Vec<u8>>;

    /// The base of a table with the same content. Tables with equal content give equal bytes, whatever made them. Where the content is beyond
    /// the limits of a base, this is the base without what is beside it.
    fn save(&self) -> Vec<u8>;
}

/// How far a compaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Rows are left.
    More,
    /// The base contains all deltas that had been applied when the compaction began.
    Done,
}
