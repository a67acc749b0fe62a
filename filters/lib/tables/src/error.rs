//! Why a base or a delta was refused.

use std::fmt;

/// Why bytes are no base of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseError {
    /// More than [`MAX_BASE`](crate::MAX_BASE) bytes or [`MAX_ROWS`](crate::MAX_ROWS) rows.
    TooLarge,
    /// The first bytes are not those of this kind of table.
    Kind,
    /// The length is not the one that follows from the header.
    Length,
    /// The bytes do not have the hash that was announced.
    Hash,
}

/// Why an operation of a delta, or a row for a new base, was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpError {
    /// The delta ends within the operation.
    Truncated,
    /// An operation that this version does not have.
    Unknown(u8),
    /// A range whose first address is behind its last one, or of another family.
    Range,
    /// A label that the width of the table's labels has no number for, or with too long a name.
    Label,
    /// A key or a value that is too long.
    Length,
}

/// Why a table did not take a delta. It is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The delta changes another state than the table's: one in between is missing, or it was applied before.
    Gap,
    /// The delta does not lead to the state that was announced: it is damaged.
    Mismatch,
    /// More than [`MAX_DELTA`](crate::MAX_DELTA) bytes.
    TooLarge,
    /// The operation that begins at this byte of the delta.
    Op(usize, OpError),
    /// The overlay has no room: compact the table, then apply the delta again.
    OverlayFull,
}

impl fmt::Display for BaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the table is too large",
            Self::Kind => "the base is of another kind of table",
            Self::Length => "the base does not have the length that its header says",
            Self::Hash => "the base does not have the announced hash",
        })
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the delta ends within an operation"),
            Self::Unknown(tag) => write!(f, "operation {tag} is unknown"),
            Self::Range => f.write_str("the range is empty or mixes IPv4 and IPv6"),
            Self::Label => f.write_str("the label is too large"),
            Self::Length => f.write_str("the key or the value is too long"),
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap => f.write_str("the delta changes another state of the table"),
            Self::Mismatch => f.write_str("the delta does not lead to the announced state"),
            Self::TooLarge => f.write_str("the delta is too large"),
            Self::Op(at, error) => write!(f, "at byte {at} of the delta: {error}"),
            Self::OverlayFull => f.write_str("the overlay is full"),
        }
    }
}

impl std::error::Error for BaseError {}
impl std::error::Error for OpError {}
impl std::error::Error for TableError {}
