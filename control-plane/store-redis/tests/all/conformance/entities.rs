//! Entities, documents and puzzles.

use std::sync::Arc;

use store::{EntityChange, Origin, Store, StoreError, StoreFaults};

pub(super) fn change(id: &str, body: Option<&str>, expected: u64) -> EntityChange {
    let (collection, id) = ("c".to_owned(), id.to_owned());
    EntityChange { collection, id, expected, body: body.map(ToOwned::to_owned), origin: Origin::default() }
}

pub(crate) async fn entities_have_revisions_and_conflicts(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let put = |id: &'static str, body: &str, expected| store.entity_put("c", id, body.to_owned(), expected);
    assert_eq!(store.entities().await.unwrap().revision, 0);
    assert_eq!(put("a", "1", 0).await, Ok(1));
    assert_eq!(put("b", "1", 0).await, Ok(2));
    assert_eq!(put("a", "2", 0).await, Err(StoreError::Conflict { current: 1 }));
    assert_eq!(put("a", "2", 2).await, Err(StoreError::Conflict { current: 1 }));
    assert_eq!(put("a", "2", 1).await, Ok(3));
    assert_eq!(put("gone", "1", 7).await, Err(StoreError::Conflict { current: 0 }));
    assert_eq!(store.entity_remove("c", "b", 1).await, Err(StoreError::Conflict { current: 2 }));
    assert_eq!(store.entity_remove("c", "b", 2).await, Ok(4));
    let all = store.entities().await.unwrap();
    assert_eq!(all.revision, 4);
    assert_eq!(
        all.rows.iter().map(|row| (row.id.as_str(), row.revision, row.body.as_str())).collect::<Vec<_>>(),
        [("a", 3, "2")]
    );
    assert_eq!(*store.changes().borrow(), 4);
    assert_eq!((store.ping().await, store.faults()), (Ok(()), StoreFaults::default()));
    let closed = Arc::clone(&store);
    let again = reopened(store).await;
    assert_eq!(closed.entities().await, Err(StoreError::Closed));
    assert_eq!(closed.entity_remove("c", "a", 3).await, Err(StoreError::Closed));
    assert_eq!(again.entities().await.unwrap(), all);
    assert_eq!(*again.changes().borrow(), 4);
}

pub(crate) async fn several_changes_are_one_or_none(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let mut revisions = store.changes();
    let all = vec![change("a", Some("1"), 0), change("b", Some("1"), 0), change("c", Some("1"), 0)];
    assert_eq!(store.entities_write(all, None).await, Ok(1));
    assert!(revisions.has_changed().unwrap());
    revisions.mark_unchanged();

    let conflict = |index, current| Err(StoreError::BatchConflict { index, current });
    let stale = vec![change("a", Some("2"), 1), change("b", None, 1), change("c", Some("2"), 7)];
    assert_eq!(store.entities_write(stale, None).await, conflict(2, 1));
    let twice = vec![change("a", Some("2"), 1), change("a", Some("3"), 1)];
    assert_eq!(store.entities_write(twice, None).await, conflict(1, 1));
    let gone = vec![change("a", Some("2"), 1), change("x", None, 3)];
    assert_eq!(store.entities_write(gone, None).await, conflict(1, 0));
    assert_eq!(store.entities_write(Vec::new(), None).await, Ok(1), "nothing is no change");
    assert!(!revisions.has_changed().unwrap());
    assert_eq!(store.entities().await.unwrap().revision, 1);

    let mixed = vec![change("a", Some("2"), 1), change("b", None, 1), change("d", Some("1"), 0)];
    assert_eq!(store.entities_write(mixed, None).await, Ok(2));
    assert_eq!(*revisions.borrow_and_update(), 2);
    let expected = [("a", 2, "2"), ("c", 1, "1"), ("d", 2, "1")];
    let all = store.entities().await.unwrap();
    let rows: Vec<_> = all.rows.iter().map(|row| (row.id.as_str(), row.revision, row.body.as_str())).collect();
    assert_eq!((all.revision, rows), (2, expected.to_vec()));
    // What was judged beside others is not written, and is no failure of the store.
    for judged_at in [0, 1, 3] {
        let judged = vec![change("a", Some("3"), 2)];
        let moved = Err(StoreError::Moved { revision: 2 });
        assert_eq!(store.entities_write(judged, Some(judged_at)).await, moved);
    }
    assert_eq!(store.entities_write(vec![change("a", Some("3"), 1)], Some(2)).await, conflict(0, 2));
    assert_eq!((store.entities().await.unwrap(), store.faults()), (all, StoreFaults::default()));
    assert!(!revisions.has_changed().unwrap());
    assert_eq!(store.entities_write(vec![change("a", Some("3"), 2)], Some(2)).await, Ok(3));
    let all = store.entities().await.unwrap();
    assert_eq!(reopened(store).await.entities().await.unwrap(), all);
}

pub(crate) async fn many_writers_share_commits_and_none_is_lost(store: Arc<dyn Store>) {
    let writers: Vec<_> = (0..500)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.entity_put("c", &number.to_string(), "x".to_owned(), 0).await })
        })
        .collect();
    let mut revisions = Vec::new();
    for writer in writers {
        revisions.push(writer.await.unwrap().unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=500).collect::<Vec<_>>());
    assert_eq!(store.entities().await.unwrap().rows.len(), 500);
}

pub(crate) async fn ten_thousand_entities_are_one_change_and_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let body = "x".repeat(500);
    let all = (0..10_000).map(|number| change(&format!("{number:05}"), Some(&body), 0)).collect();
    assert_eq!(store.entities_write(all, None).await, Ok(1));
    let store = reopened(store).await;
    let all = store.entities().await.unwrap();
    assert_eq!((all.revision, all.rows.len()), (1, 10_000));
    let removed = (0..10_000).map(|number| change(&format!("{number:05}"), None, 1)).collect();
    assert_eq!(store.entities_write(removed, None).await, Ok(2));
    assert_eq!(store.entities().await.unwrap().rows.len(), 0);
}

pub(crate) async fn documents_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    store.document_put("feed/a", vec![1]).await.unwrap();
    store.document_put("feed/a", vec![0, 255]).await.unwrap();
    store.document_put("feed/b", vec![]).await.unwrap();
    store.document_put("fee", vec![1]).await.unwrap();
    store.document_put("large", vec![7; 3 << 20]).await.unwrap();
    assert_eq!(store.document_names("feed/").await.unwrap(), ["feed/a", "feed/b"]);
    assert_eq!(store.document("feed/b").await.unwrap(), Some(vec![]));
    assert!(store.document_remove("feed/b").await.unwrap());
    assert!(!store.document_remove("feed/b").await.unwrap());
    let store = reopened(store).await;
    assert_eq!(store.document("feed/a").await.unwrap(), Some(vec![0, 255]));
    assert_eq!(store.document("feed/b").await.unwrap(), None);
    assert_eq!(store.document("large").await.unwrap().map(|body| body.len()), Some(3 << 20));
    assert_eq!(store.document_names("").await.unwrap(), ["fee", "feed/a", "large"]);
}

pub(crate) async fn a_puzzle_is_spent_once_and_stays_so(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let spending: Vec<_> = (0..200)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.puzzle_spend("one", 10).await.unwrap() })
        })
        .collect();
    let mut first = 0;
    for spent in spending {
        first += u32::from(spent.await.unwrap());
    }
    assert_eq!(first, 1);
    assert_eq!(store.puzzle_spend("two", 20).await, Ok(true));
    let store = reopened(store).await;
    assert_eq!(store.puzzle_spend("one", 10).await, Ok(false), "durable");
    assert_eq!(store.puzzles_sweep(10).await, Ok(1));
    assert_eq!(store.puzzle_spend("two", 20).await, Ok(false));
    assert_eq!(store.puzzle_spend("one", 10).await, Ok(true), "forgotten");
}
