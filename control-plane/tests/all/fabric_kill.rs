//! A ban, an entry of the allowlist and the state of an incident that were acknowledged survive `kill -9`, and so does the
//! audit event of each.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;

use crate::cli_support::{Server, exchange, run_with};
use serde_json::{Value, json};
use store::{FabricStore as _, SqliteOptions, SqliteStore, Store as _};

const ROUNDS: usize = 6;
const NS: &str = "/extensions/svc/extensions/waf";
const PASSWORD: &str = "correct horse battery";

struct Session {
    cookie: String,
    csrf: String,
}

impl Session {
    fn call(&self, rest: &str, method: &str, path: &str, body: &str) -> Option<Value> {
        let headers = [("cookie", self.cookie.as_str()), ("x-csrf-token", self.csrf.as_str())];
        let (status, _, body) = exchange(rest, &headers, method, &format!("{NS}/security/{path}"), body).ok()?;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).ok()
    }
}

fn login(server: &Server, data: &Path) -> Session {
    let added = run_with(&["operator", "add", "alice", "--email", "a@b", "--data", data.to_str().unwrap()], PASSWORD);
    assert!(added.status.success(), "{added:?}");
    let body = json!({ "name": "alice", "password": PASSWORD }).to_string();
    let (status, head, body) = exchange(&server.rest, &[], "POST", &format!("{NS}/session/_login"), &body).unwrap();
    assert_eq!(status, 200, "{body}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let csrf = serde_json::from_str::<Value>(&body).unwrap()["csrf_token"].as_str().unwrap().to_owned();
    Session { cookie: cookie.split(';').next().unwrap().to_owned(), csrf }
}

#[test]
fn what_operators_were_told_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Server::start(&data);
    let session = login(&server, &data);
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let rest = server.rest.clone();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let (session, rest) = (&session, &rest);
            scope.spawn(move || write_until_broken(session, rest, round, &tell));
            // Another number of writes in each round, so that the blow falls on other moments.
            for _ in 0..4 + round * 5 {
                acknowledged.insert(told.recv().unwrap());
            }
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            acknowledged.extend(told);
        });
        server = Server::start(&data);
        verify(&session, &server.rest, &data, &acknowledged);
        verify_audits(&server.events, &acknowledged);
    }
    assert!(acknowledged.len() >= ROUNDS * 4, "{}", acknowledged.len());
}

fn write_until_broken(session: &Session, rest: &str, round: usize, tell: &mpsc::Sender<(&'static str, String)>) {
    for number in 0.. {
        let key = format!("user:r{round}n{number}");
        let (kind, path, body) = match number % 3 {
            0 => ("ban", "_ban", json!({ "ref": key, "duration_seconds": 86_400 })),
            1 => ("allow", "_allow", json!({ "ref": key, "reason": "test" })),
            _ => ("state", "_incident_state", json!({ "key": key, "state": "acknowledged" })),
        };
        let Some(answer) = session.call(rest, "POST", path, &body.to_string()) else {
            return;
        };
        assert_eq!(answer["done"], true, "{answer}");
        tell.send((kind, key)).unwrap();
    }
}

fn verify(session: &Session, rest: &str, data: &Path, acknowledged: &BTreeSet<(&'static str, String)>) {
    let keys = |path: &str, field: &str| -> BTreeSet<String> {
        let list = session.call(rest, "GET", path, "").unwrap();
        list[field].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect()
    };
    let (bans, allowed) = (keys("_bans?pageSize=10000", "bans"), keys("_allowlist?pageSize=10000", "entries"));
    // There is no incident that would show its state, so the store is asked.
    let states: BTreeSet<String> = states(data).into_iter().collect();
    for (kind, key) in acknowledged {
        let kept = match *kind {
            "ban" => bans.contains(key),
            "allow" => allowed.contains(key),
            _ => states.contains(key),
        };
        assert!(kept, "{kind} of {key} was acknowledged and is gone");
    }
}

/// Every change that was acknowledged is audited: before the blow, or by the process after it.
fn verify_audits(file: &Path, acknowledged: &BTreeSet<(&'static str, String)>) {
    let mut missing = BTreeSet::new();
    // The bound only keeps a failure from hanging the test.
    for _ in 0..3000 {
        let lines = std::fs::read_to_string(file).unwrap_or_default();
        let audited: BTreeSet<(String, String)> = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter_map(|event| Some((event["action"].as_str()?.to_owned(), event["ref"].as_str()?.to_owned())))
            .collect();
        missing = acknowledged
            .iter()
            .filter(|(kind, key)| {
                let action = match *kind {
                    "ban" => "ban",
                    "allow" => "allowlist",
                    _ => "incident-acknowledged",
                };
                !audited.contains(&(action.to_owned(), key.clone()))
            })
            .collect();
        if missing.is_empty() {
            return;
        }
        #[allow(clippy::disallowed_methods, reason = "a process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(missing.is_empty(), "acknowledged and never audited: {missing:?}");
}

fn states(data: &Path) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(data, SqliteOptions::default()).unwrap();
        let states = store.workflows().await.unwrap();
        store.close().await.unwrap();
        states.into_iter().map(|workflow| workflow.key).collect()
    })
}
