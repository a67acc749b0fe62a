//! An operator, and callers that solve puzzles.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use palisade_tests::challenge;
use palisade_tests::console::Console;
use palisade_tests::http::{Request, Response};
use serde_json::{Value, json};

use super::site::{listed_bans, program};
use super::{Acknowledged, address};

/// Before a call is repeated that had no answer.
const PAUSE: Duration = Duration::from_millis(10);

/// The operator's calls, one after the other, at the control planes in turn; calls without a positive answer are not noted.
pub(crate) fn operate(
    consoles: &[Console],
    nodes: [SocketAddr; 2],
    round: u32,
    stop: &AtomicBool,
    notes: &Sender<Acknowledged>,
) {
    let mut caught: Vec<Ipv4Addr> = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let console = &consoles[number as usize % consoles.len()];
        let banned = address(32, round, number);
        let key = format!("ip:{banned}");
        if number % 5 == 4 {
            // A tier's ban is acknowledged once it is on the list.
            let attack = Request::get("/?attack=1").send_from(banned, nodes[number as usize % 2]);
            caught.extend(attack.is_ok_and(|answer| answer.status == 403).then_some(banned));
            if let Some(bans) = listed_bans(console) {
                caught.retain(|banned| {
                    let listed = bans.contains(&format!("ip:{banned}"));
                    if listed {
                        let _ = notes.send(Acknowledged::Caught(*banned));
                    }
                    !listed
                });
            }
            continue;
        }
        if !done(console, "_ban", &json!({"ref": key, "duration_seconds": 86_400, "reason": "by hand"})) {
            thread::sleep(PAUSE);
            continue;
        }
        let _ = notes.send(Acknowledged::Banned(banned));
        if done(console, "_incident_state", &json!({"key": key, "state": "acknowledged"})) {
            let _ = notes.send(Acknowledged::State(banned));
        }
        let allowed = address(64, round, number);
        if done(console, "_allow", &json!({"ref": format!("ip:{allowed}"), "reason": "ours"})) {
            let _ = notes.send(Acknowledged::Allowed(allowed));
        }
    }
}

/// Whether a change was acknowledged. Without its store a control plane answers with 500 or above.
fn done(console: &Console, path: &str, body: &Value) -> bool {
    let Ok(answer) = console.try_answer(&format!("security/{path}"), body) else { return false };
    if answer.status >= 500 {
        return false;
    }
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    // The headers may be all that came before the end.
    let Ok(answer) = serde_json::from_slice::<Value>(&answer.body) else { return false };
    assert_eq!(answer["done"], true, "{path} {body}: {answer}");
    true
}

/// Callers that get a puzzle at one node and submit its solution at both, at the same time or one after the other.
pub(crate) fn solve(nodes: [SocketAddr; 2], round: u32, stop: &AtomicBool, notes: &Sender<Acknowledged>) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let source = address(96, round, number);
        let first = number as usize % 2;
        let Ok(asked) = program().send_from(source, nodes[first]) else {
            thread::sleep(PAUSE);
            continue;
        };
        assert_eq!(asked.status, 429, "{}", asked.text());
        let solution = submission(&challenge::solve(&asked).unwrap());
        let submit = |node: usize| accepted(solution.send_from(source, nodes[node]));
        let times = if number % 3 == 0 {
            submit(first) + submit(1 - first)
        } else {
            thread::scope(|scope| {
                let other = scope.spawn(|| submit(1 - first));
                submit(first) + other.join().unwrap()
            })
        };
        let _ = notes.send(Acknowledged::Puzzle(source, solution, times));
    }
}

/// 1 for a submission that was accepted.
fn accepted(answer: std::io::Result<Response>) -> usize {
    let Ok(answer) = answer else { return 0 };
    assert!(matches!(answer.status, 204 | 403), "{} {}", answer.status, answer.text());
    usize::from(answer.status == 204)
}

fn submission(solution: &str) -> Request {
    Request::new("POST", "/?probe=1").header("user-agent", "program/1").header("x-svc-challenge", solution).body("")
}
