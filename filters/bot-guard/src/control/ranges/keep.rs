//! What is kept of a list in the store, so that a control plane has it again when it starts.

use feeds::AddressSet;
use lists::{Snapshot, Validators};
use prost::Message;
use store::feeds::FeedList;

/// The documents of lists begin with this; their labels follow.
pub(super) const PREFIX: &str = "bot-guard.ranges/";

/// A list as it is kept.
#[derive(Clone, PartialEq, Message)]
struct KeptList {
    /// The addresses, as [`AddressSet::to_bytes`] has them.
    #[prost(bytes = "vec", tag = "1")]
    list: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    hash: Vec<u8>,
    #[prost(uint64, tag = "3")]
    entries: u64,
    #[prost(uint64, tag = "4")]
    rejected: u64,
    #[prost(uint64, tag = "5")]
    fetched_at: u64,
    #[prost(string, optional, tag = "6")]
    etag: Option<String>,
    #[prost(string, optional, tag = "7")]
    last_modified: Option<String>,
    #[prost(string, tag = "8")]
    source: String,
}

/// A list as a document.
pub(super) fn document(list: &Snapshot) -> Vec<u8> {
    let kept = KeptList {
        list: list.list.bytes.to_vec(),
        hash: list.list.hash.to_vec(),
        entries: list.entries,
        rejected: list.rejected,
        fetched_at: list.fetched_at,
        etag: list.validators.etag.clone(),
        last_modified: list.validators.last_modified.clone(),
        source: list.source.clone(),
    };
    kept.encode_to_vec()
}

/// The list of a document; `None` if it is not as it was written.
pub(super) fn restored(document: &[u8]) -> Option<Snapshot> {
    let KeptList { list, hash, entries, rejected, fetched_at, etag, last_modified, source } =
        KeptList::decode(document).ok()?;
    let hash: [u8; 32] = hash.try_into().ok()?;
    let ranges = AddressSet::from_bytes(&list).ok()?.len() as u64;
    let whole = snapshot::content_hash(&list) == hash && ranges > 0;
    let (list, validators) = (FeedList { hash, bytes: list.into() }, Validators { etag, last_modified });
    whole.then_some(Snapshot { list, entries, ranges, rejected, fetched_at, validators, source })
}
