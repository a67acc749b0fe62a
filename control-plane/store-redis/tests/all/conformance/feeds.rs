//! What is kept of threat feeds.

use std::sync::Arc;

use store::Store;
use store::feeds::{FeedList, KeptFeed, MAX_FEED_LIST, MAX_FEEDS};

fn list(seed: u8, bytes: usize) -> FeedList {
    FeedList { hash: [seed; 32], bytes: vec![seed; bytes].into() }
}

fn feed(id: &str, current: Option<FeedList>, previous: Option<FeedList>) -> KeptFeed {
    KeptFeed { id: id.into(), state: format!("{{\"of\":\"{id}\"}}"), current, previous }
}

pub(crate) async fn the_lists_of_a_feed_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    assert_eq!(store.feeds().await, Ok(Vec::new()));
    let first = feed("b", Some(list(1, 100_000)), None);
    let other = feed("a", Some(list(1, 7)), Some(list(2, 9)));
    let bare = feed("c", None, None);
    for feed in [&first, &other, &bare] {
        assert_eq!(store.feed_put(feed.clone()).await, Ok(true));
    }
    assert_eq!(
        store.feeds().await.unwrap(),
        [other.clone(), first, bare.clone()],
        "lists of two feeds may be named alike"
    );
    // The list in force becomes the previous one, and back; what neither names is forgotten.
    let replaced = feed("b", Some(list(3, 5)), Some(list(1, 100_000)));
    assert_eq!(store.feed_put(replaced.clone()).await, Ok(true));
    assert_eq!(store.feed_remove("a").await, Ok(true));
    assert_eq!(store.feed_remove("a").await, Ok(false));
    let store = reopened(store).await;
    assert_eq!(store.feeds().await.unwrap(), [replaced, bare.clone()]);
    let restored = feed("b", Some(list(1, 100_000)), None);
    assert_eq!(store.feed_put(restored.clone()).await, Ok(true));
    assert_eq!(store.feeds().await.unwrap(), [restored, bare]);
    // A list that was forgotten is written again where it comes back.
    let again = feed("b", Some(list(3, 6)), None);
    assert_eq!(store.feed_put(again.clone()).await, Ok(true));
    assert_eq!(store.feeds().await.unwrap()[0], again);
}

pub(crate) async fn what_is_kept_of_feeds_is_bounded(store: Arc<dyn Store>) {
    let long = feed("long", Some(list(1, MAX_FEED_LIST + 1)), None);
    assert_eq!(store.feed_put(long).await, Ok(false));
    let previous = feed("long", None, Some(list(1, MAX_FEED_LIST + 1)));
    assert_eq!(store.feed_put(previous).await, Ok(false));
    assert_eq!(store.feeds().await, Ok(Vec::new()));
    for number in 0..MAX_FEEDS {
        assert_eq!(store.feed_put(feed(&format!("{number:03}"), None, None)).await, Ok(true));
    }
    assert_eq!(store.feed_put(feed("more", None, None)).await, Ok(false));
    assert_eq!(store.feed_put(feed("007", Some(list(1, 1)), None)).await, Ok(true), "it is among them");
    assert_eq!(store.feed_remove("008").await, Ok(true));
    assert_eq!(store.feed_put(feed("more", None, None)).await, Ok(true));
    assert_eq!(store.feeds().await.unwrap().len(), MAX_FEEDS as usize);
}
