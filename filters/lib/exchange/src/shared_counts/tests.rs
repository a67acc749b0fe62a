//! Two nodes whose messages are carried to each other: with two, what one has counted is what all others of the other have.

use node_state::Membership;
use snapshot::{AddedToSet, CountedNow, CountsDown, CountsUp, Message, SetMembership};

use super::groups::note;
use super::node::MAX_CHANGES;
use super::*;
use crate::fake::FakeHost;
use crate::{Answer, Host, Metric};

const NOW: u64 = 1_700_000_000_000;

fn window() -> Window {
    Window::new("login", 60_000, 6).unwrap()
}

fn node() -> FakeHost {
    FakeHost::at(NOW)
}

/// The first message of a link to this process of the control plane.
fn greet(host: &FakeHost, instance: u64) {
    greet_at(host, instance, host.now());
}

/// A node with a link, that has said all that it has to say.
fn linked() -> FakeHost {
    let host = node();
    greet(&host, 1);
    said(&host);
    host
}

fn greet_at(host: &FakeHost, instance: u64, now_millis: u64) {
    let down = CountsDown { now_millis, key: vec![9; 16], instance, ..CountsDown::default() };
    learn(host.shared(), &down, host.now());
}

/// What a node has to say, which the control plane takes.
fn said(host: &FakeHost) -> Vec<CountsUp> {
    let taken = |up: CountsUp| {
        let down = CountsDown { now_millis: host.now(), taken: up.number, ..CountsDown::default() };
        learn(host.shared(), &down, host.now());
        up
    };
    std::iter::from_fn(|| news(host.shared(), host.now()).map(taken)).collect()
}

fn keys(ups: &[CountsUp]) -> usize {
    let batches = ups.iter().flat_map(|up| &up.batches);
    batches.map(|batch| batch.counts.len() + batch.members.len()).sum()
}

/// Carries what waits on one node to the other.
fn carry(from: &FakeHost, to: &FakeHost) {
    for up in said(from) {
        let down = CountsDown { now_millis: to.now(), batches: up.batches, ..CountsDown::default() };
        learn(to.shared(), &down, to.now());
    }
}

fn count(own: u32, others: u32) -> ClusterCount {
    ClusterCount { own, others }
}

#[test]
fn nodes_count_together_and_no_key_leaves_one_as_it_is() {
    let (a, b, window) = (linked(), linked(), window());
    assert_eq!(window.add(&a, b"alice", 2), count(2, 0));
    assert_eq!(window.add(&b, b"alice", 1), count(1, 0));
    assert!(wait(a.shared()));
    let ups = said(&a);
    assert!(!wait(a.shared()) && keys(&ups) == 1);
    assert!(!ups[0].encode_to_vec().windows(5).any(|bytes| bytes == b"alice"));
    for up in ups {
        let down = CountsDown { now_millis: NOW, batches: up.batches, ..CountsDown::default() };
        (0..2).for_each(|_| learn(b.shared(), &down, NOW));
    }
    assert_eq!(window.get(&b, b"alice"), count(1, 2), "once, though it came twice");
    carry(&b, &a);
    assert_eq!(window.add(&a, b"alice", 1), count(3, 1));
    assert_eq!(window.get(&a, b"bob"), count(0, 0));
    // What another window counts is another count, and so is the same in other slices.
    for other in [Window::new("other", 60_000, 6), Window::new("login", 60_000, 5)] {
        assert_eq!(other.unwrap().get(&a, b"alice"), count(0, 0));
    }
    a.advance(70_000);
    assert_eq!(window.get(&a, b"alice"), count(0, 0));
}

#[test]
fn a_node_counts_alone_until_it_has_the_secret_of_all() {
    let (host, window) = (node(), window());
    assert_eq!(window.add(&host, b"k", 2), count(2, 0));
    assert!(said(&host).is_empty(), "no link");
    let set = CappedSet::new("objects", 10, 60_000, 6).unwrap();
    set.insert(&host, b"consumer", b"one");
    let fits = || window.ask(&host, b"k", 100).question.fits() || set.ask(&host, b"k", b"m", 100).question.fits();
    assert!(!fits(), "a question under another secret would be of another key");
    greet(&host, 1);
    assert!(fits());
    assert_eq!(window.add(&host, b"k", 1), count(3, 0), "it has counted them again under the secret");
    assert_eq!(set.contains(&host, b"consumer", b"one"), (true, 1));
    let other = linked();
    assert_eq!((window.get(&other, b"k"), set.contains(&other, b"consumer", b"one")), (count(0, 0), (false, 0)));
    carry(&host, &other);
    assert_eq!((window.get(&other, b"k"), set.contains(&other, b"consumer", b"one")), (count(0, 3), (true, 1)));
    greet(&host, 2);
    assert_eq!(window.get(&host, b"k"), count(3, 0), "once");
}

#[test]
fn what_has_left_its_window_before_the_secret_came_is_not_counted_again() {
    let (host, window) = (node(), window());
    window.add(&host, b"k", 5);
    host.advance(50_000);
    window.add(&host, b"k", 1);
    host.advance(30_000);
    greet(&host, 1);
    assert_eq!(window.get(&host, b"k"), count(1, 0), "five of them are older than a minute");
}

#[test]
fn what_waits_for_the_secret_is_bounded() {
    let (host, window) = (node(), window());
    for number in 0..10_000_u32 {
        window.add(&host, &number.to_le_bytes(), 1);
    }
    greet(&host, 1);
    assert_eq!(
        (window.get(&host, &0_u32.to_le_bytes()), window.get(&host, &9_999_u32.to_le_bytes())),
        (count(0, 0), count(1, 0))
    );
    assert_eq!(host.counts.borrow().get(&Metric::CountsDropped), Some(&(10_000 - MAX_CHANGES as u64)));
}

#[test]
fn a_new_process_of_the_control_plane_gets_everything_from_one_worker() {
    let (a, b, window) = (linked(), linked(), window());
    let set = CappedSet::new("objects", 10, 60_000, 6).unwrap();
    assert_eq!((window.get(&b, b"k"), set.contains(&b, b"k", b"one")), (count(0, 0), (false, 0)));
    for number in 0..2_500_u32 {
        window.add(&a, &number.to_le_bytes(), 1);
    }
    set.insert(&a, b"consumer", b"one");
    assert_eq!(keys(&said(&a)), 2_501);
    lost(a.shared());
    // It counts on while the control plane is gone, and says nothing.
    window.add(&a, b"offline", 7);
    assert!(said(&a).is_empty() && wait(a.shared()));
    greet(&a, 2);
    a.advance(1);
    let ups = said(&a);
    assert!(ups.len() >= 3 && ups.iter().all(|up| keys(std::slice::from_ref(up)) <= 1_100), "in parts");
    assert!(keys(&ups) >= 2_502);
    for up in ups {
        let down = CountsDown { now_millis: NOW, batches: up.batches, ..CountsDown::default() };
        learn(b.shared(), &down, NOW);
    }
    assert_eq!(window.get(&b, &7_u32.to_le_bytes()), count(0, 1));
    assert_eq!(window.get(&b, b"offline"), count(0, 7));
    assert_eq!(set.contains(&b, b"consumer", b"one"), (true, 1));
    greet(&a, 2);
    assert_eq!(keys(&said(&a)), 0, "another link to the same process");
}

#[test]
fn what_could_not_be_sent_is_sent_again() {
    let (host, window) = (node(), window());
    let set = CappedSet::new("objects", 10, 60_000, 6).unwrap();
    greet(&host, 1);
    said(&host);
    window.add(&host, b"k", 3);
    set.insert(&host, b"consumer", b"one");
    let counts = |up: &CountsUp| -> Vec<u32> {
        up.batches.iter().flat_map(|batch| &batch.counts).flat_map(|count| count.counts.clone()).collect()
    };
    let up = news(host.shared(), host.now()).unwrap();
    assert_eq!((counts(&up), keys(std::slice::from_ref(&up))), (vec![3], 2));
    put_back(host.shared(), &up);
    window.add(&host, b"k", 1);
    let up = news(host.shared(), host.now()).unwrap();
    assert_eq!((counts(&up), keys(&[up])), (vec![4], 2));
    // It was sent, and the link ended before the control plane had taken it; another process has all counts already.
    lost(host.shared());
    greet(&host, 1);
    let up = said(&host).remove(0);
    assert_eq!((counts(&up), keys(&[up])), (vec![4], 2));
    lost(host.shared());
    greet(&host, 1);
    assert_eq!(keys(&said(&host)), 0, "it was taken");
}

#[test]
fn a_control_plane_that_does_not_keep_up_is_sent_no_more() {
    let (host, window) = (linked(), window());
    let mut sent = 0;
    for number in 0..100_u32 {
        window.add(&host, &number.to_le_bytes(), 1);
        sent += u32::from(news(host.shared(), host.now()).is_some());
    }
    assert_eq!(sent, 16);
    assert_eq!(keys(&said(&host)), 0);
    learn(host.shared(), &CountsDown { now_millis: NOW, taken: 17, ..CountsDown::default() }, NOW);
    assert_eq!(keys(&said(&host)), 84);
}

#[test]
fn a_flood_of_keys_is_bounded_and_counted() {
    let (host, window) = (linked(), window());
    for number in 0..10_000_u32 {
        window.add(&host, &number.to_le_bytes(), 1);
    }
    let first = news(host.shared(), host.now()).unwrap();
    let excess = 10_000 - MAX_CHANGES as u64;
    assert_eq!((keys(std::slice::from_ref(&first)), first.dropped), (1000, excess));
    assert_eq!(host.counts.borrow().get(&Metric::CountsDropped), Some(&excess));
    assert!(first.encoded_len() < 64 * 1024);
}

#[test]
fn slices_follow_the_clock_of_the_control_plane() {
    let (a, b, window) = (node(), node(), window());
    b.clock.set(NOW - 3_600_000);
    greet(&a, 1);
    greet_at(&b, 1, NOW);
    window.add(&a, b"k", 1);
    window.add(&b, b"k", 1);
    let own = |host: &FakeHost| {
        let ups = said(host);
        ups.iter().flat_map(|up| &up.batches).flat_map(|batch| &batch.counts).map(|count| count.newest).next()
    };
    assert_eq!((own(&a), own(&b)), (Some(NOW / 10_000), Some(NOW / 10_000)));
    // A difference of less than a second may be that of a slow message.
    greet_at(&a, 1, NOW + 900);
    window.add(&a, b"other", 1);
    assert_eq!(own(&a), Some(NOW / 10_000));
}

#[test]
fn a_budget_is_taken_within_what_the_node_knows() {
    let (a, b) = (linked(), linked());
    let budget = Budget::new("objects", 60_000, 6).unwrap();
    assert_eq!(budget.used(&b, b"other"), count(0, 0));
    assert_eq!(budget.take(&a, b"k", 6, 10), BudgetTaken { taken: true, used: count(6, 0) });
    carry(&a, &b);
    assert_eq!(budget.take(&b, b"k", 5, 10), BudgetTaken { taken: false, used: count(0, 6) });
    assert_eq!(budget.take(&b, b"k", 4, 10), BudgetTaken { taken: true, used: count(4, 6) });
    carry(&b, &a);
    assert_eq!(budget.used(&a, b"k"), count(6, 4));
    // An answer has what all others have taken; without one, what the node knows decides.
    let question = budget.ask(&a, b"k", 1, 20, 100).question;
    let asked: snapshot::TakeBudget = question.read().unwrap();
    let own = asked.own.unwrap();
    assert_eq!((own.counts.clone(), asked.amount, asked.limit), (vec![6], 1, 20));
    let others = Some(KeyCount { counts: vec![9], ..own });
    let answer = Answer::Data(snapshot::BudgetTaken { taken: true, others }.encode_to_vec());
    assert_eq!(budget.answered(&a, b"k", &answer), Some(BudgetTaken { taken: true, used: count(6, 9) }));
    assert_eq!(budget.answered(&a, b"k", &Answer::Unavailable), None);
    assert!(!budget.take(&a, b"k", 1, 15).taken);
}

#[test]
fn a_window_that_asks_learns_the_count_of_all() {
    let (host, window) = (node(), window());
    greet(&host, 1);
    window.add(&host, b"k", 2);
    let asked: snapshot::CountNow = window.ask(&host, b"k", 100).question.read().unwrap();
    let own = asked.own.unwrap();
    assert_eq!(own.counts, [2]);
    let answer = |key| {
        let others = Some(KeyCount { key, newest: own.newest, counts: vec![5] });
        Answer::Data(CountedNow { others }.encode_to_vec())
    };
    assert_eq!(window.answered(&host, b"k", &answer(own.key + 1)), Some(count(2, 0)), "of another key");
    assert_eq!(window.answered(&host, b"k", &answer(own.key)), Some(count(2, 5)));
    assert_eq!(window.answered(&host, b"k", &Answer::NoControlPlane), None);
    assert_eq!(window.get(&host, b"k"), count(2, 5));
}

#[test]
fn sets_have_the_members_of_all_nodes() {
    let (a, b) = (linked(), linked());
    let set = CappedSet::new("objects", 3, 60_000, 6).unwrap();
    let joined = |membership, size| SetJoined { membership, size };
    assert_eq!(set.contains(&b, b"k", b"one"), (false, 0));
    assert_eq!(set.insert(&a, b"k", b"one"), joined(Membership::Added, 1));
    assert_eq!(set.insert(&a, b"k", b"two"), joined(Membership::Added, 2));
    carry(&a, &b);
    assert_eq!(set.insert(&b, b"k", b"one"), joined(Membership::Known, 2));
    assert_eq!(set.insert(&b, b"k", b"three"), joined(Membership::Added, 3));
    assert_eq!(set.insert(&b, b"k", b"four"), joined(Membership::Full, 3));
    carry(&b, &a);
    assert_eq!(set.contains(&a, b"k", b"three"), (true, 3));
    let asked: snapshot::AddToSet = set.ask(&a, b"k", b"four", 100).question.read().unwrap();
    assert_eq!(asked.own.unwrap().members.len(), 2);
    let answer = |membership: SetMembership, size| {
        Answer::Data(AddedToSet { membership: membership.into(), size }.encode_to_vec())
    };
    let full = answer(SetMembership::Full, 3);
    assert_eq!(set.answered(&a, b"k", b"four", &full), Some(joined(Membership::Full, 3)));
    a.advance(70_000);
    let added = answer(SetMembership::Added, 1);
    assert_eq!(set.answered(&a, b"k", b"four", &added), Some(joined(Membership::Added, 1)));
    assert_eq!(set.contains(&a, b"k", b"four"), (true, 1));
    assert_eq!(set.answered(&a, b"k", b"four", &Answer::Unavailable), None);
}

#[test]
fn bounds_are_checked_when_a_plugin_is_built() {
    assert!(Window::new("", 60_000, 6).is_err() && Window::new(&"x".repeat(65), 60_000, 6).is_err());
    assert!(
        Window::new("w", 0, 6).is_err()
            && Window::new("w", 60_000, 0).is_err()
            && Window::new("w", 60_000, 17).is_err()
    );
    assert!(CappedSet::new("s", 0, 60_000, 6).is_err() && CappedSet::new("s", 1025, 60_000, 6).is_err());
    assert!(Budget::new("b", u64::MAX, 16).unwrap_err().contains("`b`"));
}

#[test]
fn a_node_has_a_bounded_number_of_groups_and_counts_on_alone_beyond() {
    let host = node();
    greet(&host, 1);
    let windows: Vec<Window> = (0..40).map(|n| Window::new(&format!("w{n}"), 60_000, 6).unwrap()).collect();
    for window in &windows {
        assert_eq!(window.add(&host, b"k", 1), count(1, 0));
    }
    let ups = said(&host);
    let batches = ups.iter().flat_map(|up| &up.batches).filter(|batch| !batch.counts.is_empty());
    assert_eq!(batches.count(), 32);
    assert_eq!(host.counts.borrow().get(&Metric::CountsDropped), Some(&8));
    // A new snapshot makes the same windows again.
    let again = Window::new("w3", 60_000, 6).unwrap();
    assert_eq!(again.add(&host, b"k", 1), count(2, 0));
}

#[test]
fn a_group_gives_way_when_what_was_counted_last_has_left_its_window() {
    let host = linked();
    let add = |number: u32| Window::new(&format!("w{number}"), 60_000, 6).unwrap().add(&host, b"k", 1);
    assert_eq!(add(0), count(1, 0));
    host.advance(1);
    assert!((1..32).all(|number| add(number) == count(1, 0)));
    // A quarter of the 70 s that a count may stay has not passed: this use is not noted.
    host.advance(17_000);
    assert_eq!(add(0), count(2, 0));
    // From the first use on: 70 s, and just below and above a quarter more.
    for (after, lost) in [(70_000, Some(1)), (87_499, Some(2)), (87_500, Some(2))] {
        host.advance(NOW + after - host.now());
        add(32);
        assert_eq!(host.counts.borrow().get(&Metric::CountsDropped).copied(), lost, "{after}");
    }
}

#[test]
fn a_worker_names_what_all_workers_of_its_node_count_when_its_link_begins() {
    let host = node();
    // Another worker has counted it.
    let described = describe("login", CountKind::Window, 60_000, 6, 5).unwrap();
    assert!(note(host.shared(), &described, NOW).is_some());
    greet(&host, 1);
    let batches = said(&host).into_iter().flat_map(|up| up.batches);
    let named: Vec<String> = batches.filter_map(|batch| batch.group).map(|group| group.name).collect();
    assert_eq!(named, ["login"]);
}
