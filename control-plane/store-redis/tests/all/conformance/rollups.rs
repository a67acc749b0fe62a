//! What happened, counted by steps of time.

use std::sync::Arc;

use store::Store;
use store::rollups::{Rollup, RollupCounts, RollupStep, Tally};

use super::NOW;

fn rollup(step: RollupStep, at: u64, route: &str, refused: u64) -> Rollup {
    let tally = Tally { requests: 3 * refused, refused, observed: 2 * refused, dry_run: 1 };
    let mut counts = RollupCounts { total: tally, ..RollupCounts::default() };
    counts.routes.add(route, tally);
    Rollup { step, at_millis: step.begin(at), counts }
}

pub(crate) async fn rollups_add_up_and_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let (minute, hour) = (RollupStep::Minute, RollupStep::Hour);
    let first = vec![rollup(minute, NOW, "a", 1), rollup(minute, NOW - 60_000, "a", 10), rollup(hour, NOW, "a", 11)];
    store.rollups_add(first, NOW).await.unwrap();
    let second = vec![rollup(minute, NOW, "b", 5), rollup(minute, NOW, "a", 100)];
    store.rollups_add(second, NOW).await.unwrap();
    store.rollups_add(Vec::new(), NOW).await.unwrap();
    let check = async |store: &dyn Store| {
        let found = store.rollups(minute, 0, u64::MAX).await.unwrap();
        let times: Vec<u64> = found.iter().map(|rollup| rollup.at_millis).collect();
        assert_eq!(times, [NOW - 60_000, NOW].map(|at| minute.begin(at)));
        assert_eq!(found[1].counts.total, Tally { requests: 318, refused: 106, observed: 212, dry_run: 3 });
        assert_eq!(found[1].counts.routes.names["a"].refused, 101);
        let last = store.rollups(minute, minute.begin(NOW), NOW + 1).await.unwrap();
        assert_eq!(last, found[1..]);
        assert!(store.rollups(minute, 0, minute.begin(NOW - 60_000)).await.unwrap().is_empty());
        assert_eq!(store.rollups(hour, 0, u64::MAX).await.unwrap().len(), 1);
        assert!(store.rollups(RollupStep::Day, 0, u64::MAX).await.unwrap().is_empty());
    };
    check(&*store).await;
    let store = reopened(store).await;
    check(&*store).await;
    // Each length has its own time.
    let later = NOW + minute.kept_millis() + 120_000;
    store.rollups_add(vec![rollup(minute, later, "a", 1)], later).await.unwrap();
    assert_eq!(store.rollups(minute, 0, u64::MAX).await.unwrap().len(), 1);
    assert_eq!(store.rollups(hour, 0, u64::MAX).await.unwrap().len(), 1);
    let much_later = NOW + RollupStep::Day.kept_millis() * 2;
    store.rollups_add(Vec::new(), much_later).await.unwrap();
    assert!(store.rollups(hour, 0, u64::MAX).await.unwrap().is_empty());
}

pub(crate) async fn what_two_count_is_added(store: Arc<dyn Store>, other: Arc<dyn Store>) {
    let adding = |store: Arc<dyn Store>, route: &'static str| {
        tokio::spawn(async move {
            for _ in 0..50 {
                store.rollups_add(vec![rollup(RollupStep::Day, NOW, route, 1)], NOW).await.unwrap();
            }
        })
    };
    let both = (adding(Arc::clone(&store), "a"), adding(Arc::clone(&other), "b"));
    both.0.await.unwrap();
    both.1.await.unwrap();
    for store in [store, other] {
        let found = store.rollups(RollupStep::Day, 0, u64::MAX).await.unwrap();
        let names = &found[0].counts.routes.names;
        assert_eq!((found[0].counts.total.refused, names["a"].refused, names["b"].refused), (100, 50, 50));
    }
}
