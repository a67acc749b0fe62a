use super::*;
use crate::fixture::Dice;
use crate::row::{Rule, Signal};

fn row(id: u64) -> Row {
    Row { id: format!("a.har#{id}"), path: "/".to_owned(), action: "none".to_owned(), status: 200, ..Row::default() }
}

fn totals(rows: &[Row]) -> Summary {
    let mut totals = Totals::new();
    rows.iter().for_each(|row| totals.add(row));
    totals.summary()
}

#[test]
fn every_row_is_in_every_count() {
    let effects = [Effect::Passed, Effect::Observed, Effect::Slowed, Effect::Blocked, Effect::Failed, Effect::Blocked];
    let rows: Vec<_> = (1..).zip(effects).map(|(id, effect)| Row { effect, at: id * 1_000, ..row(id) }).collect();
    let summary = totals(&rows);
    assert_eq!(summary.requests, 6);
    assert_eq!(summary.effects, Effects { passed: 1, observed: 1, slowed: 1, blocked: 2, failed: 1 });
    assert_eq!((summary.effects.all(), summary.statuses[&200], summary.actions["none"]), (6, 6, 6));
    assert_eq!(summary.timeline.buckets.len(), 6);
    assert_eq!((summary.paths.entries[0].count, summary.paths.entries[0].blocked), (6, 2));
    assert_eq!(summary.timing, None);
}

#[test]
fn scores_are_in_buckets_of_five() {
    let scores = [0.0, f64::NAN, -3.0, 0.1, 4.99, 5.0, 99.9, 100.0, 1e300, f64::INFINITY];
    let summary = totals(&scores.map(|score| Row { score, ..row(1) }));
    assert_eq!(summary.scores.zero, 2);
    let filled: Vec<_> = summary.scores.buckets.iter().enumerate().filter(|(_, count)| **count > 0).collect();
    assert_eq!(filled, [(0, &3), (1, &1), (19, &1), (20, &3)]);
    assert_eq!([0, 1, 19, 20].map(Scores::label), ["below 5", "5 to 10", "95 to 100", "100 and more"]);
}

#[test]
fn rules_and_signals_count_once_per_request() {
    let rule = |id, msg: &str| Rule { id, msg: msg.to_owned() };
    let signal = |name: &str| Signal { name: name.to_owned(), weight: 1.0 };
    let rules = vec![rule(942_100, "SQL"), rule(942_100, "SQL again"), rule(949_110, "")];
    let signals = vec![signal("waf:block"), signal("waf:block")];
    let blocked = Row { rules, signals, effect: Effect::Blocked, ..row(1) };
    let summary = totals(&[blocked, Row { rules: vec![rule(949_110, "late")], ..row(2) }]);
    let rules: Vec<_> = summary.rules.entries.iter().map(|r| (&*r.name, &*r.label, r.count, r.blocked)).collect();
    assert_eq!(rules, [("949110", "late", 2, 1), ("942100", "SQL", 1, 1)]);
    assert_eq!((summary.signals.distinct, summary.signals.entries[0].count), (1, 1));
}

#[test]
fn paths_lose_their_query_and_nothing_else() {
    let paths = ["/a?x=1", "/a?y", "/a/1", "/a/2", "*", ""];
    let summary = totals(&paths.map(|path| Row { path: path.to_owned(), ..row(1) }));
    let names: Vec<_> = summary.paths.entries.iter().map(|entry| (&*entry.name, entry.count)).collect();
    assert_eq!(names, [("/a", 2), ("", 1), ("*", 1), ("/a/1", 1), ("/a/2", 1)]);
}

#[test]
fn statuses_are_held_against_the_recorded_ones() {
    let changed = |recorded, status, effect| Row { recorded_status: recorded, status, effect, ..row(1) };
    let rows = [
        changed(None, 403, Effect::Blocked),
        changed(Some(200), 200, Effect::Passed),
        changed(Some(200), 403, Effect::Blocked),
        changed(Some(200), 302, Effect::Blocked),
        changed(Some(403), 200, Effect::Passed),
        changed(Some(404), 403, Effect::Blocked),
        changed(Some(200), 304, Effect::Passed),
    ];
    let expected = Changed { compared: 6, newly_refused: 2, no_longer_refused: 1, other: 2 };
    assert_eq!(totals(&rows).changed, expected);
    assert_eq!(expected.all(), 5);
}

#[test]
fn faults_bad_entries_and_notes_are_counted_and_the_first_kept() {
    let mut totals = Totals::new();
    for id in 1..=150 {
        let note = if id % 3 == 0 { "the body is cut" } else { "the host is a guess" };
        totals.add(&Row { fault: Some("x".repeat(9_000)), notes: vec![note.to_owned()], held_millis: id, ..row(id) });
        totals.bad(&BadEntryText { id: format!("b.har#{id}"), why: "line 3: no method".to_owned() });
        totals.timer_fault("on_tick", "unreachable");
    }
    let summary = totals.summary();
    assert_eq!((summary.faults.count, summary.faults.first.len()), (150, 100));
    assert_eq!((summary.timer_faults.count, summary.timer_faults.first.len()), (150, 100));
    let dead = Fault { id: "on_tick".to_owned(), what: "unreachable".to_owned() };
    assert_eq!(summary.timer_faults.first[99], dead);
    assert!(summary.faults.first.iter().all(|fault| fault.what.len() <= REASON + 3));
    assert_eq!((summary.bad_entries.count, summary.bad_entries.first.len()), (150, 100));
    assert_eq!(summary.bad_entries.first[99], "b.har#100: line 3: no method");
    assert_eq!((summary.notes.requests, &*summary.notes.texts.entries[0].name), (150, "the host is a guess"));
    assert_eq!(summary.held, Held { requests: 150, total_millis: 150 * 151 / 2, longest_millis: 150 });
}

#[test]
fn what_the_clock_says_is_apart() {
    let rows: Vec<_> = (1..100).map(row).collect();
    let timed: Vec<_> = rows.iter().map(|row| Row { micros: row.id.len() as u64 * 100, ..row.clone() }).collect();
    let mut slow = Totals::new();
    timed.iter().for_each(|row| slow.add(row));
    slow.took(Duration::from_millis(1_980));
    let slow = slow.summary();
    let timing = slow.timing.unwrap();
    assert_eq!((timing.elapsed_millis, timing.rate, timing.latency.unwrap().measured), (1_980, 50.0, 99));
    assert_eq!(Summary { timing: None, ..slow }, totals(&rows));
}

#[test]
fn a_summary_is_read_back_as_it_was_written() {
    let mut totals = Totals::new();
    totals.add(&Row { score: 7.5, rules: vec![Rule { id: 1, msg: "m".to_owned() }], micros: 7, ..row(1) });
    totals.bad(&BadEntryText::default());
    totals.took(Duration::from_secs(1));
    let text = serde_json::to_string(&totals).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), totals.summary());
}

#[test]
fn a_million_rows_take_no_more_memory_than_a_few_thousand() {
    let mut dice = Dice(42);
    let mut totals = Totals::new();
    for id in 0..1_000_000 {
        let common = dice.below(4) == 0;
        let caller = if common { "192.0.2.1".to_owned() } else { format!("caller-{}", dice.below(1 << 40)) };
        let path = if common { "/login".to_owned() } else { format!("/item/{}", dice.below(1 << 40)) };
        let signals = vec![Signal { name: format!("signal-{}", dice.below(1 << 30)), weight: 1.0 }];
        let rules = vec![Rule { id: dice.below(1 << 30), msg: String::new() }];
        let notes = vec![format!("note {}", dice.below(1 << 30))];
        let at = dice.below(1 << 42);
        let action = format!("action-{}", dice.below(1_000));
        let status = (dice.below(500) + 100) as u16;
        totals.add(&Row { caller, path, signals, rules, notes, at, action, status, ..row(id) });
    }
    for held in [totals.paths.held(), totals.callers.held(), totals.signals.held(), totals.notes.held()] {
        assert_eq!(held, COUNTERS);
    }
    assert_eq!(totals.rules.held(), COUNTERS);
    assert!(totals.timeline.held() <= 240);
    let summary = totals.summary();
    assert_eq!((summary.requests, summary.timeline.buckets.iter().map(Effects::all).sum()), (1_000_000, 1_000_000_u64));
    assert!(summary.actions.len() <= ACTIONS + 1 && summary.actions[OTHER_ACTIONS] > 0);
    // Every fourth request is one caller's, and the sketch has not lost sight of it.
    let first = &summary.callers.entries[0];
    assert!(!summary.callers.exact && first.name == "192.0.2.1");
    assert!((245_000..=255_000).contains(&first.count), "{}", first.count);
    assert_eq!((summary.paths.entries[0].name.as_str(), summary.rules.entries.len()), ("/login", LISTED));
}

#[test]
fn equal_rows_have_equal_totals() {
    let mut dice = Dice(9);
    let rows: Vec<_> = (0..20_000)
        .map(|id| Row { caller: format!("c{}", dice.below(9_000)), at: dice.below(1 << 36), ..row(id) })
        .collect();
    assert_eq!(serde_json::to_string(&totals(&rows)).unwrap(), serde_json::to_string(&totals(&rows)).unwrap());
}
