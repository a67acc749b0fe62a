//! What is kept of a feed in the store, and read again when the control plane starts.

use feeds::AddressSet;
use lists::{Snapshot, Validators};
use serde::{Deserialize, Serialize};
use store::feeds::{FeedList, KeptFeed};

use super::state::FeedState;

/// What is kept of a feed beside its lists.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Kept {
    source: String,
    etag: Option<String>,
    last_modified: Option<String>,
    /// In hexadecimal.
    refused: Option<String>,
    current: Option<KeptSnapshot>,
    previous: Option<KeptSnapshot>,
    error: Option<String>,
    not_modified: bool,
    failures: u32,
    retry_at: u64,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct KeptSnapshot {
    entries: u64,
    rejected: u64,
    fetched_at: u64,
    etag: Option<String>,
    last_modified: Option<String>,
    source: String,
}

/// What is kept of a feed.
pub(super) fn kept(id: &str, state: &FeedState) -> KeptFeed {
    let of = |list: &Option<Snapshot>| list.as_ref().map(KeptSnapshot::of);
    let about = Kept {
        source: state.source.clone(),
        etag: state.validators.etag.clone(),
        last_modified: state.validators.last_modified.clone(),
        refused: state.refused.map(|hash| snapshot::hex(&hash)),
        current: of(&state.current),
        previous: of(&state.previous),
        error: state.error.clone(),
        not_modified: state.not_modified,
        failures: state.failures,
        retry_at: state.retry_at,
    };
    let list = |list: &Option<Snapshot>| list.as_ref().map(|list| list.list.clone());
    KeptFeed {
        id: id.to_owned(),
        // Plain data: writing it has no way to fail.
        state: serde_json::to_string(&about).unwrap_or_default(),
        current: list(&state.current),
        previous: list(&state.previous),
    }
}

/// What is known of a feed by what was kept of it. A list that is not as it was written is left out.
pub(super) fn restored(kept: KeptFeed) -> FeedState {
    let about: Kept = serde_json::from_str(&kept.state).unwrap_or_default();
    let current = about.current.zip(kept.current).and_then(|(about, list)| about.with(list));
    FeedState {
        // Without the list, the publisher must send it again.
        validators: match current {
            Some(_) => Validators { etag: about.etag, last_modified: about.last_modified },
            None => Validators::default(),
        },
        source: about.source,
        refused: about.refused.as_deref().and_then(hash),
        previous: about.previous.zip(kept.previous).and_then(|(about, list)| about.with(list)),
        current,
        error: about.error,
        not_modified: about.not_modified,
        failures: about.failures,
        retry_at: about.retry_at,
        ..FeedState::default()
    }
}

impl KeptSnapshot {
    fn of(list: &Snapshot) -> KeptSnapshot {
        let Validators { etag, last_modified } = list.validators.clone();
        let Snapshot { entries, rejected, fetched_at, .. } = *list;
        KeptSnapshot { entries, rejected, fetched_at, etag, last_modified, source: list.source.clone() }
    }

    fn with(self, list: FeedList) -> Option<Snapshot> {
        let addresses = AddressSet::from_bytes(&list.bytes).ok()?;
        let whole = snapshot::content_hash(&list.bytes) == list.hash && !addresses.is_empty();
        let KeptSnapshot { entries, rejected, fetched_at, etag, last_modified, source } = self;
        let (ranges, validators) = (addresses.len() as u64, Validators { etag, last_modified });
        whole.then_some(Snapshot { list, entries, ranges, rejected, fetched_at, validators, source })
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    snapshot::unhex(text.as_bytes())?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Snapshot {
        let parsed = feeds::parse(&feeds::Format::CidrLines, text.as_bytes(), 10).unwrap();
        let bytes = parsed.addresses.to_bytes();
        Snapshot {
            list: FeedList { hash: snapshot::content_hash(&bytes), bytes: bytes.into() },
            entries: 2,
            ranges: parsed.addresses.len() as u64,
            rejected: 3,
            fetched_at: 4,
            validators: Validators { etag: Some("\"a\"".into()), last_modified: Some("yesterday".into()) },
            source: "here".into(),
        }
    }

    fn state() -> FeedState {
        FeedState {
            source: "here".into(),
            validators: Validators { etag: Some("\"b\"".into()), last_modified: None },
            refused: Some([0xa7; 32]),
            current: Some(list("192.0.2.1\n192.0.2.3")),
            previous: Some(list("2001:db8::/32")),
            error: Some("the server answers 500".into()),
            not_modified: true,
            failures: 3,
            retry_at: 7,
            ..FeedState::default()
        }
    }

    #[test]
    fn a_feed_comes_back_from_the_store() {
        assert_eq!(restored(kept("a", &state())), state());
        assert_eq!(restored(kept("a", &FeedState::default())), FeedState::default());
        assert_eq!(restored(KeptFeed::default()), FeedState::default());
    }

    #[test]
    fn a_damaged_list_is_left_out_and_asked_for_again() {
        let mut damaged = kept("a", &state());
        damaged.current = Some(FeedList { bytes: vec![1, 1, 1, 0].into(), ..damaged.current.unwrap() });
        let restored = restored(damaged);
        assert_eq!((&restored.current, &restored.validators), (&None, &Validators::default()));
        assert!(restored.previous.is_some());
    }
}
