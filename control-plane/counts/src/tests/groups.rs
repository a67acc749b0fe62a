//! Groups that nodes count no more.

use super::*;

const HOUR: u64 = 3_600_000;

fn named(number: u64) -> CountGroup {
    CountGroup { name: format!("w{number}"), everywhere_from: 2, ..window() }
}

/// Counts a group on two nodes, of which each learns what the other has.
fn counted_by_both(counts: &Counts, links: (u64, u64), incarnation: u64, group: &CountGroup) -> bool {
    let slice = CLOCK.get() / 10_000;
    counts.take("a", &up_of(incarnation, group, vec![count(1, slice, &[1])]));
    counts.take("b", &up_of(incarnation, group, vec![count(1, slice, &[1])]));
    let other = [(1, slice, vec![1])];
    learned(counts, "a", links.0) == other && learned(counts, "b", links.1) == other
}

#[test]
fn groups_that_come_one_after_the_other_are_counted_however_many_they_are() {
    let counts = counts();
    two_nodes(&counts);
    for number in 0..40 {
        assert!(counted_by_both(&counts, (1, 2), 1, &named(number)), "{number}");
        CLOCK.set(CLOCK.get() + HOUR);
        counts.sweep();
    }
    assert_eq!(counts.lock().groups(), MAX_GROUPS.1, "the links are those of before");
    // Both gateways start anew.
    counts.unlinked("a", 1);
    counts.unlinked("b", 2);
    assert!(counts.linked("a", 3).is_some() && counts.linked("b", 4).is_some());
    assert!(counted_by_both(&counts, (3, 4), 2, &named(100)));
    CLOCK.set(CLOCK.get() + HOUR);
    assert!(counted_by_both(&counts, (3, 4), 2, &named(100)));
    counts.sweep();
    assert_eq!(counts.lock().groups(), 1, "what was not named since the links began");
}

#[test]
fn a_group_that_a_node_has_named_on_its_link_stays_although_it_counts_nothing() {
    let counts = counts();
    two_nodes(&counts);
    counts.take("b", &up(&named(1), vec![]));
    CLOCK.set(NOW + 24 * HOUR);
    counts.sweep();
    let slice = CLOCK.get() / 10_000;
    counts.take("a", &up(&named(1), vec![count(1, slice, &[5])]));
    assert_eq!(learned(&counts, "b", 2), [(1, slice, vec![5])]);
    // Another worker's link does not end it, and the only one does.
    counts.linked("b", 3);
    CLOCK.set(CLOCK.get() + HOUR);
    counts.sweep();
    counts.unlinked("b", 3);
    let slice = CLOCK.get() / 10_000;
    counts.take("a", &up(&named(1), vec![count(2, slice, &[5])]));
    assert_eq!(learned(&counts, "b", 2), [(2, slice, vec![5])]);
    counts.unlinked("b", 2);
    counts.sweep();
    counts.linked("b", 4);
    assert_eq!(learned(&counts, "b", 4), NONE);
    counts.take("b", &up(&named(1), vec![]));
    assert_eq!(learned(&counts, "b", 4), [(2, slice, vec![5])], "with its first word");
}

#[test]
fn a_group_whose_counts_have_left_their_window_gives_way_before_the_next_sweep() {
    let counts = counts();
    two_nodes(&counts);
    let all = |first: u64| (first..first + 32).all(|number| counted_by_both(&counts, (1, 2), 1, &named(number)));
    assert!(all(0));
    CLOCK.set(CLOCK.get() + HOUR);
    assert!(all(100));
}

#[test]
fn a_node_that_names_ever_new_groups_has_no_more_than_its_share() {
    let counts = counts();
    two_nodes(&counts);
    for round in 0..20 {
        (0..64).for_each(|number| counts.take("a", &up(&named(round * 64 + number), vec![])));
        assert_eq!(counts.lock().groups(), MAX_GROUPS.1);
        CLOCK.set(CLOCK.get() + SPARE_MILLIS);
    }
    // Groups with counts do not give way.
    let slice = CLOCK.get() / 10_000;
    (0..64).for_each(|number| counts.take("b", &up(&named(9_000 + number), vec![count(1, slice, &[1])])));
    CLOCK.set(CLOCK.get() + SPARE_MILLIS);
    counts.take("b", &up(&named(9_999), vec![count(1, slice, &[1])]));
    assert_eq!(counts.lock().groups(), 2 * MAX_GROUPS.1);
}
