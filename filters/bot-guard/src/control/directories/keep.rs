//! What is kept of a directory in the store, so that a control plane has it again when it starts.

use lists::Validators;
use prost::Message;
use snapshot::content_hash;

use super::directory::FetchedSet;
use super::jwks::KeySet;
use crate::SignerKey;

/// The documents of directories begin with this; their labels follow.
pub(super) const PREFIX: &str = "bot-guard.keys/";

/// A directory as it is kept.
#[derive(Clone, PartialEq, Message)]
struct KeptDirectory {
    /// The keys, one after the other, as [`SignerKey::to_bytes`] has them.
    #[prost(bytes = "vec", repeated, tag = "1")]
    keys: Vec<Vec<u8>>,
    #[prost(uint64, tag = "2")]
    ignored: u64,
    #[prost(uint64, tag = "3")]
    fetched_at: u64,
    #[prost(string, optional, tag = "4")]
    etag: Option<String>,
    #[prost(string, optional, tag = "5")]
    last_modified: Option<String>,
    /// The identifier and the URL that it was fetched from.
    #[prost(string, tag = "6")]
    source: String,
}

/// A directory as a document: a hash, and what it is of.
pub(super) fn document(set: &FetchedSet) -> Vec<u8> {
    let kept = KeptDirectory {
        keys: set.set.keys.iter().map(SignerKey::to_bytes).collect(),
        ignored: set.set.ignored,
        fetched_at: set.fetched_at,
        etag: set.validators.etag.clone(),
        last_modified: set.validators.last_modified.clone(),
        source: set.source.clone(),
    };
    let body = kept.encode_to_vec();
    [content_hash(&body).as_slice(), &body].concat()
}

/// The directory of a document; `None` if it is not as it was written.
pub(super) fn restored(document: &[u8]) -> Option<FetchedSet> {
    let (hash, body) = document.split_first_chunk::<32>()?;
    if content_hash(body) != *hash {
        return None;
    }
    let KeptDirectory { keys, ignored, fetched_at, etag, last_modified, source } = KeptDirectory::decode(body).ok()?;
    let keys = keys.iter().map(|key| SignerKey::read(key)).collect::<Option<Vec<_>>>()?;
    let (set, validators) = (KeySet { keys, ignored }, Validators { etag, last_modified });
    Some(FetchedSet { set, fetched_at, validators, source })
}
