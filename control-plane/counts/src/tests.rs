//! Nodes that count together. The clock is a cell of the test's thread.

use std::cell::Cell;

use snapshot::{CountBatch, CountGroup, CountKind, CountsUp, KeyCount, KeyMembers, MAX_COUNT_MEMBERS};

use super::*;

mod groups;
mod nodes;

thread_local! {
    static CLOCK: Cell<u64> = const { Cell::new(NOW) };
}

/// A slice of 10 s begins.
const NOW: u64 = 1_700_000_000_000;
const SLICE: u64 = NOW / 10_000;

fn counts() -> Counts {
    CLOCK.set(NOW);
    Counts::new([7; 16], 1, || CLOCK.get())
}

fn small(all: u64, of_node: u64) -> Counts {
    let counts = counts();
    counts.lock().set_room(Room { all, of_node });
    counts
}

fn group(kind: CountKind) -> CountGroup {
    let cap = if kind == CountKind::Set { 10 } else { 1000 };
    CountGroup {
        name: "login".into(),
        kind: kind.into(),
        slice_millis: 10_000,
        slices: 6,
        cap,
        everywhere_from: 0,
        max_keys: 100,
    }
}

fn window() -> CountGroup {
    group(CountKind::Window)
}

fn count(key: u64, newest: u64, counts: &[u32]) -> KeyCount {
    KeyCount { key, newest, counts: counts.to_vec() }
}

fn up(group: &CountGroup, counts: Vec<KeyCount>) -> CountsUp {
    up_of(1, group, counts)
}

fn up_of(incarnation: u64, group: &CountGroup, counts: Vec<KeyCount>) -> CountsUp {
    let batches = vec![CountBatch { group: Some(group.clone()), counts, members: Vec::new() }];
    CountsUp { incarnation, batches, dropped: 0, number: 1 }
}

/// A key that a node learns, the newest slice, and the counts.
type Learned = (u64, u64, Vec<u32>);

const NONE: [Learned; 0] = [];

fn learned(counts: &Counts, node: &str, link: u64) -> Vec<Learned> {
    let news = std::iter::from_fn(|| counts.news(node, link));
    let batches = news.flat_map(|down| down.batches);
    batches.flat_map(|batch| batch.counts).map(|count| (count.key, count.newest, count.counts)).collect()
}

fn two_nodes(counts: &Counts) {
    assert!(counts.linked("a", 1).is_some() && counts.linked("b", 2).is_some());
}

#[test]
fn nodes_that_have_counted_a_key_learn_what_the_others_have() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[2, 1]), count(2, SLICE, &[9])]));
    assert_eq!(learned(&counts, "a", 1), NONE, "no other node has the keys");
    assert_eq!(learned(&counts, "b", 2), NONE);
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[5])]));
    assert_eq!(learned(&counts, "a", 1), [(1, SLICE, vec![5])]);
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![2, 1])], "with its first count");
    // A third one gets the sum of both.
    counts.linked("c", 3);
    counts.take("c", &up(&window(), vec![count(1, SLICE + 1, &[1])]));
    assert_eq!(learned(&counts, "c", 3), [(1, SLICE, vec![7, 1])]);
    assert_eq!(learned(&counts, "a", 1), [(1, SLICE + 1, vec![1, 5])]);
}

#[test]
fn a_message_that_comes_twice_or_late_changes_nothing() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[1])]));
    for told in [&[3, 1][..], &[3, 1]] {
        counts.take("a", &up(&window(), vec![count(1, SLICE, told)]));
    }
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![3, 1])]);
    learned(&counts, "a", 1);
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[2])]));
    assert_eq!(learned(&counts, "b", 2), NONE);
    // It has lost its own count, and so may have lost those of others.
    assert_eq!(learned(&counts, "a", 1), [(1, SLICE, vec![1])]);
    counts.take("a", &up(&window(), vec![count(1, SLICE - 1, &[4])]));
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![3, 4])], "of an earlier slice");
}

#[test]
fn a_node_that_restarts_counts_on_and_learns_what_it_has_lost() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("a", &up_of(1, &window(), vec![count(1, SLICE, &[3])]));
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[1])]));
    learned(&counts, "a", 1);
    learned(&counts, "b", 2);
    counts.unlinked("a", 1);
    counts.linked("a", 4);
    counts.take("a", &up_of(2, &window(), vec![count(1, SLICE, &[1])]));
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![4])]);
    assert_eq!(learned(&counts, "a", 4), [(1, SLICE, vec![4])], "three of before, and one of the other");
    // Of many starts the last ones are kept.
    (3..10).for_each(|start| counts.take("a", &up_of(start, &window(), vec![count(1, SLICE, &[1])])));
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![4])]);
}

#[test]
fn another_link_of_a_node_gets_what_the_lost_one_got() {
    let counts = counts();
    two_nodes(&counts);
    let mut second = counts.linked("a", 3).unwrap();
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[1])]));
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[2])]));
    assert_eq!(learned(&counts, "a", 3), NONE, "one link gets it");
    assert_eq!(learned(&counts, "a", 1), [(1, SLICE, vec![2])]);
    second.mark_unchanged();
    counts.unlinked("a", 1);
    assert!(second.has_changed().unwrap());
    assert_eq!(learned(&counts, "a", 3), [(1, SLICE, vec![2])]);
    // While it has none, others count on; with the next link it gets all.
    counts.unlinked("a", 3);
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[5])]));
    counts.linked("a", 4);
    assert_eq!(learned(&counts, "a", 4), [(1, SLICE, vec![5])]);
}

#[test]
fn from_a_total_on_every_node_learns_of_a_key() {
    let counts = counts();
    two_nodes(&counts);
    counts.linked("c", 3);
    let group = CountGroup { everywhere_from: 4, ..window() };
    counts.take("c", &up(&group, vec![]));
    counts.take("a", &up(&group, vec![count(1, SLICE, &[2]), count(2, SLICE, &[3])]));
    assert_eq!(learned(&counts, "c", 3), NONE);
    counts.take("b", &up(&group, vec![count(1, SLICE, &[2])]));
    assert_eq!(learned(&counts, "c", 3), [(1, SLICE, vec![4])]);
    // One that counts the group from now on gets it with its first word on the group.
    counts.linked("d", 4);
    assert_eq!(learned(&counts, "d", 4), NONE);
    counts.take("d", &up(&group, vec![]));
    assert_eq!(learned(&counts, "d", 4), [(1, SLICE, vec![4])]);
    // A node that does not count the group does not.
    counts.linked("e", 5);
    counts.take("e", &up(&window(), vec![]));
    assert_eq!(learned(&counts, "e", 5), NONE);
}

#[test]
fn a_node_speaks_for_itself_and_within_its_cap() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[u32::MAX, u32::MAX])]));
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[1])]));
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![1000, 1000])]);
    // Ahead by more than a slice, or long over.
    counts.take("a", &up(&window(), vec![count(1, SLICE + 2, &[5]), count(1, SLICE - 7, &[5])]));
    counts.take("a", &up(&CountGroup { slices: 0, ..window() }, vec![count(1, SLICE, &[1])]));
    assert_eq!(learned(&counts, "b", 2), NONE);
    let set = group(CountKind::Set);
    let members = KeyMembers { key: 1, members: (1..500).collect(), slices: vec![SLICE; 499] };
    let batch = CountBatch { group: Some(set.clone()), counts: vec![], members: vec![members] };
    counts.take("a", &CountsUp { incarnation: 1, batches: vec![batch], dropped: 0, number: 1 });
    let asking = Asking { node: "b", incarnation: 1, group: &set };
    assert_eq!(counts.members(asking, &KeyMembers { key: 1, ..KeyMembers::default() }).unwrap().len(), 10);
    // Groups of its own, as many as a node may have.
    for number in 0..100 {
        counts.take("a", &up(&CountGroup { name: format!("g{number}"), ..window() }, vec![count(1, SLICE, &[1])]));
    }
    assert_eq!(counts.lock().groups(), MAX_GROUPS.1);
}

#[test]
fn a_count_asked_for_contains_all_that_was_counted_before() {
    let counts = counts();
    let ask = |node: &str, own: &[u32]| {
        let (group, own) = (window(), count(1, SLICE, own));
        let others = counts.count_now(Asking { node, incarnation: 1, group: &group }, &own).unwrap();
        own.counts.iter().chain(&others.counts).sum::<u32>()
    };
    assert_eq!([ask("a", &[1]), ask("b", &[1]), ask("c", &[1]), ask("a", &[2])], [1, 2, 3, 4]);
    let ahead = count(1, SLICE + 2, &[1]);
    assert_eq!(counts.count_now(Asking { node: "a", incarnation: 1, group: &window() }, &ahead), None);
}

#[test]
fn what_was_taken_by_asking_is_known_to_all_and_counted_apart() {
    let counts = counts();
    two_nodes(&counts);
    let budget = group(CountKind::Budget);
    let asking = |node| Asking { node, incarnation: 1, group: &budget };
    assert_eq!(counts.taken_unasked(asking("a"), &count(1, SLICE, &[3])), Some(3));
    counts.note_taken(&budget, 1, &[(SLICE, 4), (SLICE - 2, 5)]);
    assert_eq!(counts.taken_unasked(asking("b"), &count(1, SLICE, &[2])), Some(5));
    assert_eq!(learned(&counts, "a", 1), [(1, SLICE, vec![6, 0, 5])]);
    assert_eq!(counts.count_now(asking("b"), &count(1, SLICE, &[2])).unwrap().counts, [7, 0, 5]);
    CLOCK.set(NOW + 70_000);
    assert_eq!(counts.taken_unasked(asking("a"), &count(1, SLICE + 7, &[1])), Some(1));
}

#[test]
fn members_of_sets_are_shared_one_by_one() {
    let counts = counts();
    two_nodes(&counts);
    let set = group(CountKind::Set);
    let take = |node, members: &[u64], slice| {
        let slices = vec![slice; members.len()];
        let members = vec![KeyMembers { key: 1, members: members.to_vec(), slices }];
        let batch = CountBatch { group: Some(set.clone()), counts: vec![], members };
        counts.take(node, &CountsUp { incarnation: 1, batches: vec![batch], dropped: 0, number: 1 });
    };
    let learned = |node, link| {
        let batches = std::iter::from_fn(|| counts.news(node, link)).flat_map(|down| down.batches);
        batches.flat_map(|batch| batch.members).map(|set| (set.members, set.slices)).collect::<Vec<_>>()
    };
    take("a", &[10, 20], SLICE);
    take("b", &[20, 30], SLICE);
    assert_eq!(learned("a", 1), [(vec![20, 30], vec![SLICE; 2])]);
    assert_eq!(learned("b", 2), [(vec![10, 20], vec![SLICE; 2])]);
    take("a", &[10, 20], SLICE);
    assert!(learned("b", 2).is_empty());
    CLOCK.set(NOW + 10_000);
    take("a", &[10, 40], SLICE + 1);
    assert_eq!(learned("b", 2), [(vec![10, 40], vec![SLICE + 1; 2])]);
    counts.note_members(&set, 1, &[(50, SLICE)]);
    assert_eq!(learned("a", 1), [(vec![50], vec![SLICE])]);
    let asking = Asking { node: "a", incarnation: 1, group: &set };
    let none = KeyMembers { key: 1, ..KeyMembers::default() };
    assert_eq!(counts.members(asking, &none).unwrap(), [10, 20, 30, 40, 50]);
    CLOCK.set(NOW + 70_000);
    assert_eq!(counts.members(asking, &none).unwrap(), [10, 40]);
}

#[test]
fn a_flood_of_a_million_keys_keeps_to_its_room_and_to_its_node() {
    let counts = small(3_000, 2_000);
    two_nodes(&counts);
    counts.take("b", &up(&window(), (0..500).map(|key| count(key << 40, SLICE, &[1])).collect()));
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[9])]));
    for batch in 0..1000_u64 {
        let keys = (0..1000).map(|key| count(1_000 + batch * 1000 + key, SLICE, &[1]));
        counts.take("a", &up(&window(), keys.collect()));
    }
    assert_eq!(counts.lock().units(), (2_500, 2_500));
    // What the flooding node has counted more often stays, and so does all of the other node.
    counts.take("b", &up(&window(), vec![count(1, SLICE, &[1])]));
    assert_eq!(learned(&counts, "b", 2), [(1, SLICE, vec![9])]);
    // A third node: those of the node that has most give way.
    counts.take("c", &up(&window(), (0..900).map(|key| count(key << 41, SLICE, &[1])).collect()));
    let state = counts.lock();
    assert_eq!((state.units().0, state.units_of("a"), state.units_of("b")), (3_000, 1_599, 501));
    assert_eq!(state.units_of("c"), 900);
}

#[test]
fn what_has_left_its_window_is_forgotten_and_so_are_nodes_and_groups() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("a", &up(&window(), vec![count(1, SLICE, &[1])]));
    counts.take("b", &up(&window(), vec![count(1, SLICE + 1, &[1])]));
    counts.unlinked("a", 1);
    CLOCK.set(NOW + 70_000);
    counts.sweep();
    assert_eq!(counts.lock().units(), (1, 1));
    counts.unlinked("b", 2);
    CLOCK.set(NOW + 80_000);
    counts.sweep();
    let state = counts.lock();
    assert_eq!((state.units(), state.groups(), state.nodes()), ((0, 0), 0, 0));
}

#[test]
fn a_message_has_a_bounded_number_of_keys() {
    let counts = counts();
    two_nodes(&counts);
    let keys = || (0..1200).map(|key| count(key, SLICE, &[1])).collect();
    counts.take("a", &up(&window(), keys()));
    counts.take("b", &up(&window(), keys()));
    let sizes: Vec<usize> = std::iter::from_fn(|| counts.news("a", 1))
        .map(|down| down.batches.iter().map(|batch| batch.counts.len()).sum())
        .collect();
    assert_eq!(sizes, [500, 500, 200]);
    counts.take("a", &up(&window(), (0..20_000).map(|key| count(key, SLICE, &[2])).collect()));
    assert_eq!(counts.lock().units().1, MAX_KEYS_UP);
}

#[test]
fn a_batch_has_what_its_group_counts_and_no_more_members_than_a_set_has() {
    let counts = counts();
    two_nodes(&counts);
    let members = |size: u64| KeyMembers { key: 1, members: (0..size).collect(), slices: vec![SLICE; size as usize] };
    let take = |group: &CountGroup, told: KeyMembers| {
        let batch = CountBatch { group: Some(group.clone()), counts: vec![count(2, SLICE, &[1])], members: vec![told] };
        counts.take("a", &CountsUp { incarnation: 1, batches: vec![batch], dropped: 0, number: 1 });
    };
    // Members of a window would have no cap, and a count of a set no slice.
    take(&window(), members(5));
    assert_eq!(counts.lock().units().1, 1);
    let set = group(CountKind::Set);
    take(&set, members(2 * u64::from(MAX_COUNT_MEMBERS) + 1));
    assert_eq!(counts.lock().units().1, 1, "the whole key is left out");
    take(&set, members(8));
    assert!(counts.lock().units().1 > 1);
    let message = || {
        let batch = |number: u32| CountBatch {
            group: Some(CountGroup { name: format!("g{number}"), ..window() }),
            ..CountBatch::default()
        };
        CountsUp { incarnation: 1, batches: (0..100_000).map(batch).collect(), dropped: 0, number: 2 }
    };
    counts.take("c", &message());
    assert!(counts.lock().groups() <= 2 + MAX_GROUPS.1);
}

#[test]
fn as_many_nodes_count_as_a_control_plane_has() {
    let counts = counts();
    let links: Vec<_> = (0..MAX_NODES as u64).map(|number| counts.linked(&format!("n{number}"), number)).collect();
    assert!(links.len() == 10_000 && links.iter().all(Option::is_some));
    assert!(counts.linked("one more", 10_000).is_none());
}
