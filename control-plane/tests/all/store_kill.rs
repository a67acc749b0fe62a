//! What was acknowledged survives `kill -9`, however often it strikes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::cli_support::{Server, exchange, request};
use serde_json::{Value, json};

/// Blows, unless `PALISADE_KILL_ROUNDS` names another number.
const ROUNDS: usize = 30;
const WRITERS: usize = 4;
const BASE: &str = "/apis/palisade.svc/v1/waf-rulesets";

fn rounds() -> usize {
    std::env::var("PALISADE_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// The last state of each entity that a writer got an answer for: its number, or that it was deleted.
type Acknowledged = BTreeMap<String, Option<u64>>;

#[test]
fn acknowledged_writes_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut acknowledged = Acknowledged::new();
    let mut writes = 0;
    for round in 0..rounds() {
        let server = Server::start(&data);
        verify(&server, &acknowledged, round);
        // Another number of writes in each round, so that the blow falls on other moments.
        let goal = 3 + round * 7 % 40;
        writes += strike(server, round, goal, &mut acknowledged);
    }
    let server = Server::start(&data);
    verify(&server, &acknowledged, rounds());
    assert!(writes >= rounds() * 3, "{writes} writes");
    assert!(acknowledged.values().any(Option::is_none), "no deletion was tried");
}

/// How many entities a batch writes.
const BATCH: u64 = 60;
const BULK: &str = "/apis/palisade.svc/v1/_bulk?atomic=true";

#[test]
fn a_batch_survives_kill_9_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // For each batch: whether it was acknowledged, and its mark.
    let mut acknowledged = BTreeMap::new();
    let mut written = 0;
    for round in 0..rounds() {
        let mut server = Server::start(&data);
        verify_batches(&server, &acknowledged);
        let (rest, authorization) = (server.rest.clone(), server.authorization.clone());
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (rest, authorization, tell) = (&rest, &authorization, tell.clone());
                scope.spawn(move || batches_until_broken(rest, authorization, &format!("r{round}w{writer}"), &tell));
            }
            for _ in 0..=round % 5 {
                let (batch, mark) = told.recv().unwrap();
                acknowledged.insert(batch, mark);
                written += 1;
            }
            // Into the midst of the next ones: another moment in each round.
            for _ in 0..round * 20_000 {
                std::hint::spin_loop();
            }
            server.child.kill().unwrap();
            server.child.wait().unwrap();
        });
        drop(tell);
        acknowledged.extend(told);
    }
    let server = Server::start(&data);
    verify_batches(&server, &acknowledged);
    assert!(written >= rounds(), "{written} batches");
}

/// Creates the entities of a batch, then changes all of them and deletes the last, as one batch each, until the server
/// is gone.
fn batches_until_broken(rest: &str, authorization: &str, prefix: &str, tell: &mpsc::Sender<(String, u64)>) {
    for number in 0_u64.. {
        let batch = format!("{prefix}b{number}");
        for mark in 0..2 {
            let lines = (0..BATCH).map(|index| {
                let id = format!("{batch}-{index}");
                let entity = json!({ "id": id, "name": batch, "description": mark.to_string() });
                let line = match (mark, index) {
                    (0, _) => json!({ "op": "create", "collection": "waf-rulesets", "entity": entity }),
                    (_, 0) => json!({ "op": "delete", "collection": "waf-rulesets", "id": id }),
                    _ => json!({ "op": "update", "collection": "waf-rulesets", "id": id, "entity": entity }),
                };
                format!("{line}\n")
            });
            let lines: String = lines.collect();
            let headers = [("authorization", authorization), ("content-type", "application/x-ndjson")];
            let Ok((status, _, body)) = exchange(rest, &headers, "POST", BULK, &lines) else {
                return;
            };
            assert_eq!(status, 200, "{body}");
            tell.send((batch.clone(), mark)).unwrap();
        }
    }
}

/// Every batch is there as a whole, at its acknowledged state or at the one after it.
fn verify_batches(server: &Server, acknowledged: &BTreeMap<String, u64>) {
    let (status, body) = request(&server.rest, &server.authorization, "GET", BASE, "").unwrap();
    assert_eq!(status, 200, "{body}");
    let list: Vec<Value> = serde_json::from_str(&body).unwrap();
    let mut found: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for entity in &list {
        let mark = entity["description"].as_str().unwrap().parse().unwrap();
        found.entry(entity["name"].as_str().unwrap()).or_default().push(mark);
    }
    for (batch, marks) in &found {
        let mark = marks[0];
        assert!(marks.iter().all(|one| *one == mark), "{batch} is half written: {marks:?}");
        assert_eq!(u64::try_from(marks.len()).unwrap(), BATCH - mark, "{batch} is half written");
        if let Some(known) = acknowledged.get(*batch) {
            assert!(mark >= *known, "{batch} was acknowledged at {known} and is at {mark}");
        }
    }
    for batch in acknowledged.keys() {
        assert!(found.contains_key(batch.as_str()), "{batch} was acknowledged and is gone");
    }
}

/// Lets several clients write until `goal` writes are acknowledged, kills the server in the middle, and returns how
/// many were.
fn strike(mut server: Server, round: usize, goal: usize, acknowledged: &mut Acknowledged) -> usize {
    let done = AtomicUsize::new(0);
    let (rest, authorization) = (server.rest.clone(), server.authorization.clone());
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (rest, authorization, done, tell) = (&rest, &authorization, &done, tell.clone());
            scope.spawn(move || {
                write_until_broken(rest, authorization, &format!("r{round}-w{writer}"), |id, state| {
                    done.fetch_add(1, Ordering::SeqCst);
                    tell.send((id, state)).unwrap();
                });
            });
        }
        while done.load(Ordering::SeqCst) < goal {
            std::hint::spin_loop();
        }
        // SIGKILL, at once.
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    });
    drop(tell);
    acknowledged.extend(told);
    done.into_inner()
}

/// Creates, changes and deletes entities, and reports each answer, until the server is gone.
fn write_until_broken(rest: &str, authorization: &str, prefix: &str, mut report: impl FnMut(String, Option<u64>)) {
    let call = |method: &str, path: &str, body: String| request(rest, authorization, method, path, &body).ok();
    for number in 0_u64.. {
        let id = format!("{prefix}-{number}");
        let document = |count: u64| json!({ "id": id, "description": count.to_string() }).to_string();
        let one = format!("{BASE}/{id}");
        let Some((status, body)) = call("POST", BASE, document(0)) else {
            return;
        };
        assert_eq!(status, 201, "{body}");
        report(id.clone(), Some(0));
        let Some((status, body)) = call("PUT", &one, document(1)) else {
            return;
        };
        assert_eq!(status, 200, "{body}");
        report(id.clone(), Some(1));
        if number % 3 == 0 {
            let Some((status, body)) = call("DELETE", &one, String::new()) else {
                return;
            };
            assert_eq!(status, 200, "{body}");
            report(id.clone(), None);
        }
    }
}

/// Everything that was acknowledged is there. A write without an answer may be there or not.
fn verify(server: &Server, acknowledged: &Acknowledged, round: usize) {
    let (status, body) = request(&server.rest, &server.authorization, "GET", BASE, "").unwrap();
    assert_eq!(status, 200, "{body}");
    let list: Vec<Value> = serde_json::from_str(&body).unwrap();
    let found: BTreeMap<&str, u64> = list
        .iter()
        .map(|entity| (entity["id"].as_str().unwrap(), entity["description"].as_str().unwrap().parse().unwrap()))
        .collect();
    for (id, state) in acknowledged {
        let now = found.get(id.as_str()).copied();
        let number = |id: &str| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
        // The one write that may have come after the last acknowledged one, and not been answered.
        let kept = match state {
            Some(0) => matches!(now, Some(0 | 1)),
            Some(_) => now == Some(1) || (now.is_none() && number(id) % 3 == 0),
            None => now.is_none(),
        };
        assert!(kept, "before round {round}, {id} was acknowledged as {state:?} and is {now:?}");
    }
}
