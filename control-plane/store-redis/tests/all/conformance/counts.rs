//! What nodes decide together.

use std::sync::Arc;

use store::Store;
use store::counts::{
    AddOutcome, BudgetTake, BudgetTaken, Counted, MAX_COUNT_ROWS_OF_NODE, SetAdd, SetAdded, TakeOutcome,
};

use super::NOW;

/// Slices of ten seconds, six of them and one more.
const SLICE: u64 = NOW / 10_000;

fn counted(key: u64, slice: u64) -> Counted {
    let until_millis = (slice + 7) * 10_000;
    Counted { scope: "objects.1.10000x6".into(), key, slice, first: slice - 6, until_millis, node: "n1".into() }
}

fn by(node: &str, of: Counted) -> Counted {
    Counted { node: node.into(), ..of }
}

async fn take(store: &Arc<dyn Store>, of: Counted, amount: u32, limit: u64) -> BudgetTaken {
    store.budget_take(BudgetTake { of, amount, limit }).await.unwrap()
}

async fn add(store: &Arc<dyn Store>, of: Counted, member: u64, known: &[u64]) -> SetAdded {
    store.set_add(SetAdd { of, member, cap: 3, known: known.to_vec() }).await.unwrap()
}

pub(crate) async fn a_budget_is_never_overdrawn_however_many_take_at_once(store: Arc<dyn Store>) {
    let takes: Vec<_> = (0..1000)
        .map(|number: u64| {
            let store = Arc::clone(&store);
            // Two budgets, in two slices, by two nodes.
            let of =
                by(if number.is_multiple_of(2) { "n1" } else { "n2" }, counted(number % 4 / 2, SLICE + number % 3 % 2));
            tokio::spawn(async move { (number % 4 / 2, take(&store, of, 2, 101).await.outcome) })
        })
        .collect();
    let mut taken = [0_u32; 2];
    for outcome in takes {
        let (budget, outcome) = outcome.await.unwrap();
        taken[usize::try_from(budget).unwrap()] += 2 * u32::from(outcome == TakeOutcome::Taken);
    }
    assert_eq!(taken, [100, 100]);
    let refused = take(&store, counted(0, SLICE + 1), 2, 101).await;
    assert_eq!((refused.outcome, refused.sums.iter().map(|(_, sum)| sum).sum::<u32>()), (TakeOutcome::Over, 100));
    assert_eq!(take(&store, counted(0, SLICE + 1), 1, 101).await.outcome, TakeOutcome::Taken);
    // Another scope is another budget; so is one with a key whose highest bit is set.
    let other = Counted { scope: "other".into(), ..counted(0, SLICE) };
    assert_eq!(take(&store, other, 101, 101).await.outcome, TakeOutcome::Taken);
    assert_eq!(take(&store, counted(u64::MAX, SLICE), 101, 101).await.outcome, TakeOutcome::Taken);
    assert_eq!(take(&store, counted(u64::MAX, SLICE), 1, 101).await.outcome, TakeOutcome::Over);
    // More than the largest number is never taken.
    assert_eq!(take(&store, counted(9, SLICE), u32::MAX, u64::MAX).await.outcome, TakeOutcome::Taken);
    assert_eq!(take(&store, counted(9, SLICE + 1), 1, u64::MAX).await.outcome, TakeOutcome::Over);
}

pub(crate) async fn what_was_taken_comes_free_with_its_slice_and_survives(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    take(&store, counted(1, SLICE), 4, 10).await;
    take(&store, counted(1, SLICE), 1, 10).await;
    let store = reopened(store).await;
    let taken = take(&store, counted(1, SLICE + 3), 5, 10).await;
    assert_eq!(taken, BudgetTaken { outcome: TakeOutcome::Taken, sums: vec![(SLICE + 3, 5), (SLICE, 5)] });
    assert_eq!(take(&store, counted(1, SLICE + 6), 1, 10).await.outcome, TakeOutcome::Over);
    let taken = take(&store, counted(1, SLICE + 7), 5, 10).await;
    assert_eq!(taken.sums, [(SLICE + 7, 5), (SLICE + 3, 5)]);
    // A clock that was put back: what it took later counts all the same.
    assert_eq!(take(&store, counted(1, SLICE + 4), 1, 10).await.outcome, TakeOutcome::Over);
    let until = |slice: u64| (slice + 7) * 10_000;
    assert_eq!(store.counts_sweep(until(SLICE) - 1).await, Ok(0));
    assert_eq!(store.counts_sweep(until(SLICE)).await, Ok(1));
    assert_eq!(store.counts_sweep(u64::from(u32::MAX) * 1000).await, Ok(2));
    assert_eq!(take(&store, counted(1, SLICE), 10, 10).await.outcome, TakeOutcome::Taken);
}

pub(crate) async fn a_set_never_exceeds_its_cap_however_many_add_at_once(store: Arc<dyn Store>) {
    let adds: Vec<_> = (0..600)
        .map(|number: u64| {
            let store = Arc::clone(&store);
            // Each member comes twice, from two nodes.
            let of = by(if number < 300 { "n1" } else { "n2" }, counted(1, SLICE));
            tokio::spawn(async move { add(&store, of, number % 300, &[]).await.outcome })
        })
        .collect();
    let (mut added, mut known) = (0, 0);
    for outcome in adds {
        match outcome.await.unwrap() {
            AddOutcome::Added => added += 1,
            AddOutcome::Known => known += 1,
            outcome => assert_eq!(outcome, AddOutcome::Over),
        }
    }
    assert_eq!((added, known), (3, 3));
    let added = add(&store, counted(1, SLICE), 999, &[]).await;
    assert_eq!((added.outcome, added.size, added.members.len()), (AddOutcome::Over, 3, 3));
    assert_eq!(add(&store, counted(2, SLICE), 999, &[]).await.outcome, AddOutcome::Added);
}

pub(crate) async fn members_leave_with_their_slice_and_survive(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let expect = |added: SetAdded, outcome, size, members: &[(u64, u64)]| {
        assert_eq!(added, SetAdded { outcome, size, members: members.to_vec() });
    };
    let high = u64::MAX;
    expect(add(&store, counted(1, SLICE), high, &[]).await, AddOutcome::Added, 1, &[(high, SLICE)]);
    let store = reopened(store).await;
    expect(add(&store, counted(1, SLICE), high, &[]).await, AddOutcome::Known, 1, &[(high, SLICE)]);
    // Members that nodes have added without asking take room, and are added once a node asks for them.
    expect(add(&store, counted(1, SLICE), 5, &[5, 6]).await, AddOutcome::Known, 3, &[(high, SLICE), (5, SLICE)]);
    expect(add(&store, counted(1, SLICE), 7, &[5, 6]).await, AddOutcome::Over, 3, &[(high, SLICE), (5, SLICE)]);
    // Its time begins anew; the other one leaves.
    add(&store, counted(1, SLICE + 6), 5, &[]).await;
    expect(add(&store, counted(1, SLICE + 7), 8, &[]).await, AddOutcome::Added, 2, &[(5, SLICE + 6), (8, SLICE + 7)]);
    // One that has left and was not forgotten yet.
    let members = [(5, SLICE + 6), (8, SLICE + 7), (high, SLICE + 7)];
    expect(add(&store, counted(1, SLICE + 7), high, &[]).await, AddOutcome::Added, 3, &members);
    assert_eq!(store.counts_sweep((SLICE + 13) * 10_000).await, Ok(1));
    assert_eq!(store.counts_sweep((SLICE + 14) * 10_000).await, Ok(2));
}

pub(crate) async fn shared_counts_have_a_bounded_number_of_rows_and_no_node_has_all_of_them(store: Arc<dyn Store>) {
    let fill = async |store: &Arc<dyn Store>, node: &str, keys: std::ops::Range<u64>| {
        let mut outcomes = Vec::new();
        for keys in keys.collect::<Vec<_>>().chunks(1000) {
            let takes = keys.iter().map(|key| {
                let (store, of) = (Arc::clone(store), by(node, counted(*key, SLICE)));
                tokio::spawn(async move { take(&store, of, 1, 10).await.outcome })
            });
            for take in takes.collect::<Vec<_>>() {
                outcomes.push(take.await.unwrap());
            }
        }
        outcomes
    };
    let share = u64::from(MAX_COUNT_ROWS_OF_NODE);
    let outcomes = fill(&store, "n1", 0..share + 10).await;
    let refused = outcomes.iter().filter(|outcome| **outcome == TakeOutcome::Full).count();
    assert_eq!((outcomes.len() as u64, refused), (share + 10, 10));
    // What it has goes on, and others have room.
    assert_eq!(take(&store, counted(3, SLICE), 1, 10).await.outcome, TakeOutcome::Taken);
    assert_eq!(fill(&store, "n2", share * 2..share * 2 + 1).await, [TakeOutcome::Taken]);
    assert_eq!(add(&store, counted(1, SLICE), 1, &[]).await.outcome, AddOutcome::Added, "sets have room of their own");
    assert_eq!(store.counts_sweep((SLICE + 7) * 10_000).await, Ok(share + 2));
    assert_eq!(fill(&store, "n1", 0..1).await, [TakeOutcome::Taken]);
}
