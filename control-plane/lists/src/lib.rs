//! Lists of addresses that others publish, fetched: conditional calls through the guarded client, compressed answers, what is checked of a
//! list before it is used (crate `feeds`), and when it is fetched again.

mod fetch;
mod schedule;

use store::feeds::FeedList;

pub use fetch::{
    Before, Failure, ListFetch, ListSource, MAX_ANSWER, MAX_UNPACKED, asks_for_changes, unpacked, validators, wish,
};
pub use schedule::{LONGEST_WISH, longest, wait};

/// A list that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The addresses, as [`feeds::AddressSet::to_bytes`] has them.
    pub list: FeedList,
    /// The entries that are used.
    pub entries: u64,
    /// The ranges that they make.
    pub ranges: u64,
    /// The entries that are not used.
    pub rejected: u64,
    /// When it was fetched, or found unchanged, in milliseconds since 1970.
    pub fetched_at: u64,
    /// The validators that came with it.
    pub validators: Validators,
    /// A hash of where and how it was fetched.
    pub source: String,
}

/// What a publisher calls a version of its list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The header `etag`.
    pub etag: Option<String>,
    /// The header `last-modified`.
    pub last_modified: Option<String>,
}

/// The outcome of a fetch that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The publisher says that its list is the one that was looked at last.
    Unchanged,
    /// A list.
    List(Snapshot),
}
