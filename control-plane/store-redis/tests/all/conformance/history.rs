//! The history of entities.

use std::sync::Arc;

use store::history::{HISTORY_KEPT_MILLIS, MAX_ENTITY_HISTORY_BYTES, MAX_VERSIONS, Version, VersionHead};
use store::{Author, AuthorKind, EntityChange, Origin, Store, StoreError};

use super::NOW;
use super::entities::change;

fn at(at_millis: u64, action: &str, change: EntityChange) -> EntityChange {
    let author = Author::api_key("admin-key_1", "ci");
    let origin = Origin { at_millis, author, action: action.into(), detail: "why".into() };
    EntityChange { origin, ..change }
}

async fn write(store: &dyn Store, at_millis: u64, id: &str, body: Option<&str>, expected: u64) -> u64 {
    store.entities_write(vec![at(at_millis, "put", change(id, body, expected))], None).await.unwrap()
}

async fn numbers(store: &dyn Store, id: &str) -> Vec<u64> {
    let page = store.versions("c", id, 0, u32::MAX).await.unwrap();
    assert_eq!(page.total as usize, page.versions.len());
    page.versions.iter().map(|version| version.number).collect()
}

async fn body(store: &dyn Store, id: &str, number: u64) -> Option<String> {
    store.version("c", id, number).await.unwrap().and_then(|version| version.body)
}

pub(crate) async fn each_change_of_an_entity_is_a_version(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let both = vec![at(NOW, "create", change("a", Some("1"), 0)), at(NOW, "create", change("b", Some("b1"), 0))];
    assert_eq!(store.entities_write(both, None).await, Ok(1));
    assert_eq!(store.entities_write(vec![at(NOW + 1, "replace", change("a", Some("2"), 1))], None).await, Ok(2));
    assert_eq!(store.entities_write(vec![at(NOW + 2, "delete", change("a", None, 2))], None).await, Ok(3));
    let deleted = store.version("c", "a", 2).await.unwrap().unwrap();
    assert_eq!(deleted.body.as_deref(), Some("2"), "what the deletion has taken");
    assert_eq!(store.entities_write(vec![at(NOW + 3, "create", change("a", Some("4"), 0))], None).await, Ok(4));
    let store = reopened(store).await;
    let version = |number: u64, at_millis: u64, action: &str, body: Option<&str>| {
        let author = Author::api_key("admin-key_1", "ci");
        let origin = Origin { at_millis, author, action: action.into(), detail: "why".into() };
        let head = VersionHead { number, origin, is_deletion: body.is_none() };
        Version { head, body: body.map(ToOwned::to_owned) }
    };
    let expected = [
        version(4, NOW + 3, "create", Some("4")),
        version(3, NOW + 2, "delete", None),
        version(2, NOW + 1, "replace", Some("2")),
        version(1, NOW, "create", Some("1")),
    ];
    let page = store.versions("c", "a", 0, 10).await.unwrap();
    assert_eq!((page.total, &page.versions), (4, &expected.iter().map(|version| version.head.clone()).collect()));
    for version in &expected {
        assert_eq!(store.version("c", "a", version.head.number).await.unwrap().as_ref(), Some(version));
    }
    let part = store.versions("c", "a", 1, 2).await.unwrap();
    assert_eq!((part.total, part.versions), (4, page.versions[1..3].to_vec()));
    assert_eq!(store.versions("c", "a", 4, 2).await.unwrap().versions, []);
    assert_eq!(body(&*store, "b", 1).await.as_deref(), Some("b1"));
    for (collection, id, number) in [("c", "b", 2), ("d", "a", 1), ("c", "x", 1), ("c", "a", u64::MAX)] {
        assert_eq!(store.version(collection, id, number).await, Ok(None), "{collection}/{id} {number}");
    }
    assert_eq!(numbers(&*store, "x").await, [0; 0]);
    // Without an origin it is a version all the same.
    assert_eq!(store.entity_put("c", "n", "1".into(), 0).await, Ok(5));
    assert_eq!(store.version("c", "n", 5).await.unwrap().unwrap().head.origin, Origin::default());
}

pub(crate) async fn deleted_entities_are_listed_with_their_last_version(store: Arc<dyn Store>) {
    let deleted = async |skip: u32, limit: u32| {
        let page = store.deleted("c", skip, limit).await.unwrap();
        let entities = page.entities.into_iter().map(|entity| (entity.id, entity.deletion.number, entity.last));
        (page.total, entities.collect::<Vec<_>>())
    };
    assert_eq!(deleted(0, 9).await, (0, vec![]));
    write(&*store, NOW, "a", Some("1"), 0).await;
    write(&*store, NOW, "b", Some("1"), 0).await;
    write(&*store, NOW + 1, "a", Some("2"), 1).await;
    // The later one by number, not by time.
    write(&*store, NOW + 9, "b", None, 2).await;
    write(&*store, NOW + 8, "a", None, 3).await;
    let elsewhere = EntityChange { collection: "d".to_owned(), ..at(NOW, "put", change("a", Some("1"), 0)) };
    assert_eq!(store.entities_write(vec![elsewhere], None).await, Ok(6));
    let gone = EntityChange { collection: "d".to_owned(), ..at(NOW, "delete", change("a", None, 6)) };
    assert_eq!(store.entities_write(vec![gone], None).await, Ok(7));
    let both = vec![("a".to_owned(), 5, 3), ("b".to_owned(), 4, 2)];
    assert_eq!(deleted(0, 9).await, (2, both.clone()));
    assert_eq!(deleted(1, 9).await, (2, both[1..].to_vec()));
    assert_eq!(deleted(0, 1).await, (2, both[..1].to_vec()));
    // What is there again is not deleted, and counts anew when it goes.
    write(&*store, NOW + 9, "a", Some("3"), 0).await;
    assert_eq!(deleted(0, 9).await, (1, both[1..].to_vec()));
    write(&*store, NOW + 9, "a", None, 8).await;
    assert_eq!(deleted(0, 9).await.1, [("a".to_owned(), 9, 8), both[1].clone()]);
    assert_eq!(store.history_sweep(NOW + 9 + HISTORY_KEPT_MILLIS).await, Ok(9), "all of c and d");
    assert_eq!(deleted(0, 9).await, (0, vec![]));
}

pub(crate) async fn a_refused_change_leaves_no_version(store: Arc<dyn Store>) {
    write(&*store, NOW, "a", Some("1"), 0).await;
    let stale = vec![at(NOW, "put", change("b", Some("1"), 0)), at(NOW, "put", change("a", Some("2"), 9))];
    assert_eq!(store.entities_write(stale, None).await, Err(StoreError::BatchConflict { index: 1, current: 1 }));
    assert_eq!((numbers(&*store, "a").await, numbers(&*store, "b").await), (vec![1], vec![]));
    assert_eq!(body(&*store, "a", 1).await.as_deref(), Some("1"));
}

pub(crate) async fn an_entity_has_a_bounded_number_of_versions(store: Arc<dyn Store>) {
    write(&*store, NOW, "other", Some("1"), 0).await;
    let mut seen = 0;
    for number in 0..u64::from(MAX_VERSIONS) + 5 {
        seen = write(&*store, NOW + number, "a", Some(&number.to_string()), seen).await;
    }
    let kept = numbers(&*store, "a").await;
    assert_eq!(kept, (7..=seen).rev().collect::<Vec<_>>(), "the oldest go");
    assert_eq!(body(&*store, "a", 7).await.as_deref(), Some("5"));
    assert_eq!(numbers(&*store, "other").await, [1]);
    // A deletion is one more, and takes the place of the oldest.
    let deleted = write(&*store, NOW, "a", None, seen).await;
    let kept = numbers(&*store, "a").await;
    assert_eq!((kept.len(), kept[0], kept[1]), (100, deleted, seen));
}

pub(crate) async fn large_documents_have_fewer_versions(store: Arc<dyn Store>) {
    let large = "x".repeat(usize::try_from(MAX_ENTITY_HISTORY_BYTES / 3).unwrap());
    let mut seen = 0;
    for number in 0..4 {
        seen = write(&*store, NOW + number, "a", Some(&large), seen).await;
    }
    assert_eq!(numbers(&*store, "a").await, [4, 3, 2], "somewhat more than a third each, and the one in force");
    // However large it is, one earlier document is kept.
    let deleted = write(&*store, NOW, "a", None, seen).await;
    assert_eq!(numbers(&*store, "a").await, [deleted, 4, 3]);
    assert_eq!(body(&*store, "a", 4).await.map(|body| body.len()), Some(large.len()));
}

pub(crate) async fn versions_go_by_the_time_they_were_replaced(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    write(&*store, NOW, "old", Some("1"), 0).await;
    write(&*store, NOW, "gone", Some("1"), 0).await;
    write(&*store, NOW + 5, "gone", None, 2).await;
    // A year later: what was in force until now can still be restored.
    let later = NOW + 4 * HISTORY_KEPT_MILLIS;
    write(&*store, later, "old", Some("2"), 1).await;
    assert_eq!(numbers(&*store, "old").await, [4, 1]);
    assert_eq!(numbers(&*store, "gone").await, [0; 0], "a write removes what is too old");
    write(&*store, later + 1, "old", None, 4).await;
    let store = reopened(store).await;
    assert_eq!(store.history_sweep(later + HISTORY_KEPT_MILLIS - 1).await, Ok(0));
    assert_eq!(store.history_sweep(later + HISTORY_KEPT_MILLIS).await, Ok(1));
    assert_eq!(numbers(&*store, "old").await, [5, 4]);
    assert_eq!(body(&*store, "old", 4).await.as_deref(), Some("2"), "the deletion can be undone until its end");
    assert_eq!(store.history_sweep(later + 1 + HISTORY_KEPT_MILLIS).await, Ok(2));
    assert_eq!(numbers(&*store, "old").await, [0; 0]);
    // What is in force stays, however old it is.
    write(&*store, NOW, "old", Some("3"), 0).await;
    assert_eq!(store.history_sweep(u64::MAX / 2).await, Ok(0));
    assert_eq!(numbers(&*store, "old").await, [6]);
}

pub(crate) async fn versions_of_many_writers_are_complete(store: Arc<dyn Store>) {
    let writers: Vec<_> = (0..20)
        .map(|writer: u64| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut expected = 0;
                loop {
                    let body = format!("{writer}");
                    let change = at(NOW, "put", change("a", Some(&body), expected));
                    match store.entities_write(vec![change], None).await {
                        Ok(revision) => return (revision, body),
                        Err(StoreError::BatchConflict { current, .. }) => expected = current,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.unwrap());
    }
    assert_eq!(numbers(&*store, "a").await, (1..=20).rev().collect::<Vec<_>>());
    for (revision, expected) in written {
        assert_eq!(body(&*store, "a", revision).await, Some(expected), "{revision}");
    }
}

pub(crate) async fn the_history_of_two_is_one(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    write(&*one, NOW, "a", Some("1"), 0).await;
    let mine = Origin { author: Author::nameless(AuthorKind::CommandLine), ..Origin::default() };
    let change = EntityChange { origin: mine.clone(), ..change("a", Some("2"), 1) };
    assert_eq!(other.entities_write(vec![change], None).await, Ok(2));
    assert_eq!(numbers(&*one, "a").await, [2, 1]);
    assert_eq!(one.version("c", "a", 2).await.unwrap().unwrap().head.origin, mine);
    assert_eq!(body(&*one, "a", 1).await.as_deref(), Some("1"));
    write(&*one, NOW, "a", None, 2).await;
    assert_eq!(body(&*other, "a", 2).await.as_deref(), Some("2"));
}
