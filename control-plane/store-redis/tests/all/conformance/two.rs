//! Two processes with one store.

use std::sync::Arc;
use std::time::Duration;

use store::counts::{BudgetTake, Counted, TakeOutcome};
use store::fabric::{IncidentRow, MergeIncident, Note};
use store::{Store, StoreError};

use super::{NOW, ban};

pub(crate) async fn each_sees_what_the_other_has_written(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    assert_eq!(one.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    assert_eq!(other.entity_put("c", "a", "2".into(), 0).await, Err(StoreError::Conflict { current: 1 }));
    assert_eq!(other.entity_put("c", "b", "2".into(), 0).await, Ok(2));
    assert_eq!(one.entities().await, other.entities().await);
    assert_eq!(one.entities().await.unwrap().rows.len(), 2);
    let change = super::entities::change("x", Some("1"), 0);
    let judged = one.entities_write(vec![change.clone()], Some(1)).await;
    assert_eq!(judged, Err(StoreError::Moved { revision: 2 }), "judged before the other one has written");
    assert_eq!(one.entities_write(vec![change.clone()], Some(2)).await, Ok(3));
    assert_eq!(other.entities_write(vec![change], Some(2)).await, Err(StoreError::Moved { revision: 3 }));
    one.bans_issue(vec![ban("ip:192.0.2.7", NOW, NOW + 100, false)], NOW, Note::none()).await.unwrap();
    assert_eq!(other.bans_count(NOW).await, Ok(1));
    assert_eq!(other.ban_lift("ip:192.0.2.7", NOW + 1, Note::none()).await, Ok(true));
    assert_eq!(one.ban("ip:192.0.2.7", NOW + 1).await, Ok(None));
    one.document_put("d", vec![1]).await.unwrap();
    assert_eq!(other.document_remove("d").await, Ok(true));
    assert_eq!(one.document("d").await, Ok(None));
}

/// Writes at the same time, each with a retry where the store says that nothing was written.
pub(crate) async fn what_two_write_at_the_same_time_is_counted_once(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let stores = [Arc::clone(&one), Arc::clone(&other)];
    let takes = (0..400_u64).map(|number| {
        let store = Arc::clone(&stores[usize::try_from(number % 2).unwrap()]);
        tokio::spawn(async move {
            let of = Counted {
                scope: "s".into(),
                key: 7,
                slice: 100,
                first: 94,
                until_millis: NOW,
                node: format!("n{}", number % 2),
            };
            tokio::time::sleep(Duration::from_millis(number % 50)).await;
            let taken = store.budget_take(BudgetTake { of, amount: 1, limit: 100 }).await.unwrap().outcome;
            let first = store.puzzle_spend(&format!("p{}", number / 4), 1).await.unwrap();
            let put = store.entity_put("c", &number.to_string(), "x".into(), 0).await.unwrap();
            (taken, first, put)
        })
    });
    let (mut taken, mut first, mut revisions) = (0, 0, Vec::new());
    for all in takes.collect::<Vec<_>>() {
        let (outcome, spent, revision) = all.await.unwrap();
        taken += u32::from(outcome == TakeOutcome::Taken);
        first += u32::from(spent);
        revisions.push(revision);
    }
    assert_eq!((taken, first), (100, 100), "a limit of 100, and 100 puzzles");
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=400).collect::<Vec<_>>());
    assert_eq!(one.entities().await, other.entities().await);
}

/// What two add to an incident at once is in it once, and each gets what there is then.
pub(crate) async fn what_two_add_to_an_incident_is_added_once(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let stores = [Arc::clone(&one), Arc::clone(&other)];
    let merge: MergeIncident = Arc::new(|kept, added| {
        let number = |text: &str| text.parse::<u64>().unwrap();
        (kept.map_or(0, number) + number(added)).to_string()
    });
    let adding = (0..200_u64).map(|number| {
        let (store, merge) = (Arc::clone(&stores[usize::try_from(number % 2).unwrap()]), Arc::clone(&merge));
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(number % 40)).await;
            let row = IncidentRow { key: "ip:a".into(), json: "1".into() };
            let merged = store.incidents_merge(vec![row], merge, vec![]).await.unwrap();
            merged[0].json.parse::<u64>().unwrap()
        })
    });
    let mut sums = Vec::new();
    for sum in adding.collect::<Vec<_>>() {
        sums.push(sum.await.unwrap());
    }
    sums.sort_unstable();
    assert_eq!(sums, (1..=200).collect::<Vec<_>>());
}
