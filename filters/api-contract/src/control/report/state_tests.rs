use super::*;
use crate::control::report::compare::DriftKind;
use crate::inventory::messages::{Counted, OperationCounts, PathCount};

const NOW: u64 = 1_800_000_000_000;
const DAY: u64 = 86_400_000;

fn counted(hits: u64, answered: u64) -> Counted {
    Counted { hits, classes: vec![0, answered, 0, hits - answered, 0], age: 1000, ..Counted::default() }
}

fn path(path: &str, hits: u64, answered: u64) -> PathCount {
    PathCount { method: "GET".into(), path: path.into(), counted: Some(counted(hits, answered)) }
}

fn operation(path: &str, hits: u64) -> OperationCounts {
    OperationCounts { method: "GET".into(), path: path.into(), counted: Some(counted(hits, hits)), would_refuse: None }
}

fn of_route(operations: Vec<OperationCounts>, paths: Vec<PathCount>) -> RouteCounts {
    RouteCounts { route: "app".into(), operations, paths, ..RouteCounts::default() }
}

fn declares(_: &str, path: &str) -> bool {
    path == "/items"
}

/// Writes what has changed into what is kept, as a store does.
fn store(state: &mut State, kept: &mut KeptInventory) {
    let Some(change) = state.take_changes(NOW) else { return };
    kept.rows.retain(|row| !change.remove.contains(&(row.route.clone(), row.record.clone())));
    for row in change.put {
        kept.rows.retain(|known| (&known.route, &known.record) != (&row.route, &row.record));
        kept.rows.push(row);
    }
    kept.workers.retain(|known| !change.remove_workers.contains(&(known.node.clone(), known.worker)));
    for worker in change.workers {
        kept.workers.retain(|known| (&known.node, known.worker) != (&worker.node, worker.worker));
        kept.workers.push(worker);
    }
}

#[test]
fn what_nodes_report_adds_up_and_comes_back_after_a_restart() {
    let (mut state, mut kept) = (State::default(), KeptInventory::default());
    for _ in 0..3 {
        state.add(of_route(vec![operation("/items", 2)], vec![path("/old/{id}", 3, 1)]), "v1", declares, NOW);
        let mut outside = of_route(vec![], vec![]);
        let kind =
            MismatchCount { kind: "unknown_path".into(), requests: 3, place: "path".into(), ..Default::default() };
        outside.outside = Some(WouldRefuse { requests: 3, callers: vec![1, 2], kinds: vec![kind] });
        outside.others = Some(counted(4, 0));
        state.add(outside, "v1", declares, NOW);
        let finding = Finding {
            kind: DriftKind::UndeclaredField,
            place: "200 $.ssn".into(),
            observed: "string".into(),
            sensitive: true,
        };
        state.drifted("app", "GET /items", "v1", vec![finding], NOW);
        store(&mut state, &mut kept);
        state = State::load(kept.clone());
        assert_eq!(state.take_changes(NOW), None, "what was read is no change");
    }
    let route = &state.routes["app"];
    assert_eq!(route.observed_since, NOW);
    let operation = &route.operations[&("GET".to_owned(), "/items".to_owned())];
    assert_eq!((operation.counts.hits, operation.counts.last_seen), (6, NOW - 1000));
    let (key, counts) = route.paths.iter().next().unwrap();
    assert_eq!((key.1.as_str(), counts.hits, counts.classes[1]), ("/old/{id}", 9, 3));
    assert_eq!(route.paths.rest().hits, 12);
    assert_eq!((route.outside.requests, route.outside.callers.number()), (9, 2));
    assert_eq!((route.outside.kinds["unknown_path"].requests, route.outside.kinds["unknown_path"].age), (9, NOW));
    assert_eq!(route.drift.values().next(), Some(&Drift { count: 3, last_seen: NOW }));
}

#[test]
fn a_report_counts_once_whatever_comes_in_between() {
    let (mut state, mut kept) = (State::default(), KeptInventory::default());
    let mut admitted = Vec::new();
    for sequence in [1, 2, 2, 1, 5, 3, 3, 4, 5, 100, 99, 36, 37, 0, u64::MAX, u64::MAX, 100] {
        if state.admit("n1", 7, sequence, NOW) {
            admitted.push(sequence);
        }
        store(&mut state, &mut kept);
        state = State::load(kept.clone());
    }
    // 36 is too far behind 100 to be known, and so it is not counted a second time, nor a first.
    assert_eq!(admitted, [1, 2, 5, 3, 4, 100, 99, 37, u64::MAX]);
    assert!(state.admit("n1", 8, 1, NOW) && state.admit("n2", 7, 1, NOW), "other workers");
    assert!(!state.admit("n1", 0, 1, NOW));
}

#[test]
fn a_liar_makes_no_more_than_its_route_has_room_for() {
    let mut state = State::default();
    let mut random = 1_u64;
    for _ in 0..200 {
        let paths = (0..1000).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let name: String = (0..10).map(|at| char::from(b'a' + (random >> (6 * at)) as u8 % 26)).collect();
            PathCount {
                method: "GET".into(),
                path: format!("/{name}"),
                counted: Some(Counted {
                    hits: u64::MAX,
                    classes: vec![u64::MAX; 5],
                    age: u64::MAX,
                    ..Counted::default()
                }),
            }
        });
        let operations = (0..1000).map(|number| operation(&format!("/made-up-{number}"), 5)).collect();
        state.add(of_route(operations, paths.collect()), "v1", declares, NOW);
    }
    let route = &state.routes["app"];
    assert!(route.operations.is_empty() && route.paths.len() <= MAX_PATHS, "{}", route.paths.len());
    assert!(route.paths.iter().all(|(_, counts)| counts.hits <= MAX_COUNT && counts.last_seen <= NOW));
    for wrong in [
        "",
        "items",
        "/a b",
        "/42",
        "/<script>",
        "/{}",
        "/\u{e9}",
        &format!("/{}", "x".repeat(600)),
        "/a//b",
        "/ann@example.com",
    ] {
        state.add(of_route(vec![], vec![path(wrong, 1, 1)]), "v1", declares, NOW);
    }
    let lower = PathCount { method: "get me".into(), ..path("/x", 1, 1) };
    state.add(of_route(vec![], vec![lower]), "v1", declares, NOW);
    assert_eq!(state.refused, 11);
    for worker in 1..10_000 {
        state.admit("liar", worker, 1, NOW + worker);
    }
    assert_eq!(state.nodes["liar"].len(), MAX_WORKERS);
    let mut kept = KeptInventory::default();
    store(&mut state, &mut kept);
    assert_eq!(kept.workers.len(), MAX_WORKERS);
    let rows: usize = kept.rows.iter().map(|row| row.body.len()).sum();
    assert!(kept.rows.len() == 1 && rows < 100_000, "{rows}");
    for node in 0..10_000 {
        state.admit(&format!("node-{node}"), 1, 1, NOW);
    }
    assert_eq!(state.nodes.len(), MAX_NODES);
}

#[test]
fn every_path_that_a_worker_folds_is_taken() {
    for path in [
        "/",
        "/a%2Fb",
        "/%FF%FE/%80",
        "/v2/{id}/x.y",
        "/{id}.pdf",
        "/blog/{slug}/comments",
        "/%25zz",
        "/a/how-to-x",
        "/%7Bid%7D",
    ] {
        assert!(is_folded("GET", path), "{path}");
    }
    let mut seed = 7_u32;
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..seed % 40)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b"/abZ09%-_.~@,;{}\x00\xff F2"[(seed >> 16) as usize % 21]
            })
            .collect();
        seed = seed.wrapping_add(1);
        if let Some(folded) = fold(&[b"/", bytes.as_slice()].concat()) {
            assert!(is_folded("(other)", &folded), "{folded} of {bytes:?}");
        }
    }
}

#[test]
fn what_was_not_seen_for_six_months_is_forgotten() {
    let (mut state, mut kept) = (State::default(), KeptInventory::default());
    state.add(of_route(vec![operation("/items", 1)], vec![path("/old", 1, 1)]), "v1", declares, NOW);
    state.admit("n1", 1, 1, NOW);
    store(&mut state, &mut kept);
    assert_eq!((kept.rows.len(), kept.workers.len()), (2, 1));
    state.forget(NOW + 182 * DAY);
    state.forget_routes(|_| false);
    store(&mut state, &mut kept);
    assert_eq!((kept.rows.len(), kept.workers.len()), (2, 0), "workers are forgotten after a month");
    state.forget(NOW + 184 * DAY);
    state.forget_routes(|_| true);
    store(&mut state, &mut kept);
    assert_eq!(kept.rows.len(), 1, "the route is still there, and observed");
    state.forget_routes(|_| false);
    store(&mut state, &mut kept);
    assert_eq!(kept.rows.len(), 0);
}

#[test]
fn findings_are_about_one_version_of_the_contract_and_bounded() {
    let mut state = State::default();
    state.observe(["app"].into_iter(), NOW);
    let finding = |number: usize| Finding {
        kind: DriftKind::UndeclaredField,
        place: format!("200 $.f{number}"),
        observed: "string".into(),
        sensitive: false,
    };
    state.drifted("app", "GET /items", "v1", (0..MAX_DRIFT + 9).map(finding).collect(), NOW);
    assert_eq!(state.routes["app"].drift.len(), MAX_DRIFT);
    let would_refuse = WouldRefuse { requests: 3, callers: vec![1], kinds: vec![] };
    let counts = OperationCounts { would_refuse: Some(would_refuse), ..operation("/items", 3) };
    state.add(of_route(vec![counts], vec![]), "v1", declares, NOW);
    let refused = |state: &State| state.routes["app"].operations.values().next().unwrap().would_refuse.requests;
    assert_eq!(refused(&state), 3);
    state.drifted("app", "GET /items", "v2", vec![], NOW);
    assert!(state.routes["app"].drift.is_empty());
    assert_eq!(refused(&state), 0, "another version may refuse others");
    state.drifted("none", "GET /items", "v2", vec![finding(1)], NOW);
    assert!(!state.routes.contains_key("none"));
}

#[test]
fn what_could_not_be_written_is_a_change_again() {
    let mut state = State::default();
    state.add(of_route(vec![operation("/items", 1)], vec![path("/old", 1, 1)]), "v1", declares, NOW);
    state.admit("n1", 1, 1, NOW);
    let change = state.take_changes(NOW).unwrap();
    assert_eq!((change.put.len(), change.workers.len()), (2, 1));
    assert_eq!(state.take_changes(NOW), None);
    state.put_back(change.clone());
    assert_eq!(state.take_changes(NOW), Some(change));
}
