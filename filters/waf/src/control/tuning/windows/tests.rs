use super::*;

fn matched(config: &str, target: &str, callers: &[u64]) -> Matched {
    Matched {
        config: config.to_owned(),
        rule_id: 942_100,
        target: target.to_owned(),
        path: "/a".to_owned(),
        count: 2,
        would_block: 1,
        paranoia: 1,
        callers: callers.to_vec(),
        ..Matched::default()
    }
}

fn totals(config: &str, requests: u64) -> Totals {
    let scores = vec![ScoreCount { score: 5, requests: 1 }, ScoreCount { score: 4000, requests: 1 }];
    Totals { config: config.to_owned(), requests, matched: 2, would_block: 1, scores }
}

/// Two control planes with the same window, which is written, and its bytes.
fn two() -> (Windows, Windows, Vec<u8>) {
    let mut leader = Windows::default();
    leader.start("shop", 5);
    let (_, bytes) = leader.write_all().remove(0);
    let mut other = Windows::default();
    assert!(other.follow("shop", Some(&bytes), false).is_some());
    (leader, other, bytes)
}

#[test]
fn what_an_operator_does_at_another_control_plane_is_not_overwritten() {
    let (mut leader, mut other, first) = two();
    leader.take("a", &[totals("shop", 10)], &[]);
    assert!(other.stop("shop", 9));
    // Before the other one writes, it looks at what is there, which the leader has counted in.
    let (_, counted) = leader.write_all().remove(0);
    leader.take("a", &[totals("shop", 10)], &[]);
    assert!(other.follow("shop", Some(&counted), false).is_some());
    let (_, stopped) = other.write_all().remove(0);
    assert_eq!((other.get("shop").unwrap().times(), other.get("shop").unwrap().requests), ((5, 9), 10));
    // So does the leader, which has counted since.
    assert!(leader.follow("shop", Some(&stopped), true).is_some());
    assert_eq!(leader.get("shop").map(Window::times), Some((5, 9)));
    assert!(leader.changes().0.is_empty());

    let (mut leader, mut other, _) = two();
    assert!(other.discard("shop"));
    assert!(other.follow("shop", Some(&first), false).is_none() && other.is_gone("shop"));
    leader.take("a", &[totals("shop", 10)], &[]);
    assert!(leader.follow("shop", None, true).is_none() && leader.get("shop").is_none());
    // One that was begun here, whatever was discarded elsewhere.
    leader.start("shop", 20);
    assert!(leader.follow("shop", None, true).is_none() && leader.get("shop").is_some());
    let (_, second) = leader.write_all().remove(0);
    assert!(other.follow("shop", Some(&second), false).is_some() && !other.is_gone("shop"), "a newer one");

    // Of two that were begun, the later one stays.
    let (mut leader, mut other, _) = two();
    other.start("shop", 30);
    let (_, theirs) = other.write_all().remove(0);
    leader.start("shop", 40);
    assert!(leader.follow("shop", Some(&theirs), true).is_none());
    assert_eq!(leader.get("shop").map(Window::times), Some((40, 0)));
    let (_, ours) = leader.write_all().remove(0);
    assert!(other.follow("shop", Some(&ours), false).is_some());
    assert_eq!(other.get("shop").map(Window::times), Some((40, 0)));
}

#[test]
fn a_window_counts_from_its_start_to_its_stop_and_survives_a_restart() {
    let mut windows = Windows::default();
    let report = |windows: &mut Windows, node: &str| {
        windows.take(
            node,
            &[totals("shop", 10)],
            &[matched("shop", "ARGS:q", &[1, 2]), matched("other", "ARGS:q", &[1])],
        );
    };
    report(&mut windows, "a");
    windows.start("shop", 5);
    report(&mut windows, "a");
    report(&mut windows, "b");
    windows.take("c", &[totals("other", 7)], &[]);
    let put = windows.write_all();
    let mut again = Windows::default();
    assert!(put.iter().all(|(_, bytes)| again.load(bytes).is_some()));
    assert!(again.stop("shop", 9) && !again.stop("shop", 10) && !again.stop("other", 10));
    report(&mut again, "a");
    let window = again.get("shop").unwrap();
    assert_eq!((window.requests, window.matched, window.would_block), (20, 4, 2));
    assert_eq!((window.started_at, window.stopped_at), (5, 9));
    assert_eq!(window.scores, BTreeMap::from([(5, 2), (MAX_SCORE, 2)]));
    assert!(window.nodes.iter().map(String::as_str).eq(["a", "b"]));
    let entry = &window.entries[&entry_key(942_100, "ARGS:q", "/a")];
    assert_eq!(
        (entry.count, entry.would_block, entry.paranoia, entry.callers.as_slice()),
        (4, 2, 1, [1, 2].as_slice())
    );
    assert!(again.discard("shop") && !again.discard("shop"));
    assert_eq!(again.changes().1, ["shop"]);
}

#[test]
fn callers_with_other_signs_are_taken_out_whenever_they_are_found() {
    let mut windows = Windows::default();
    windows.start("shop", 1);
    windows.take("a", &[], &[matched("shop", "ARGS:q", &[1 << 32 | 7, 2 << 32 | 7, 3 << 32 | 8])]);
    assert_eq!(windows.get("shop").unwrap().entries["942100|ARGS:q|/a"].networks(), 2);
    windows.suspect(&[3 << 32 | 8]);
    let put = windows.write_all();
    let mut windows = Windows::default();
    assert!(put.iter().all(|(_, bytes)| windows.load(bytes).is_some()), "after a restart too");
    windows.take("a", &[], &[matched("shop", "ARGS:q", &[3 << 32 | 8, 4 << 32 | 7])]);
    let window = windows.get("shop").unwrap();
    let entry = &window.entries["942100|ARGS:q|/a"];
    assert_eq!((entry.count, entry.callers.len(), entry.networks()), (4, 3, 1));
    assert_eq!((window.networks(), window.suspects.len()), (1, 1));
}
