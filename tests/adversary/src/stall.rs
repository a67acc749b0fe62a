//! Stalls: costly requests, and a clean client beside them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::http::{Connection, Request};

use crate::case::Case;
use crate::run::{Outcome, Target, Verdict, seen};
use crate::wire::{Answers, Ended, Patience, exchange};

/// Clean clients: new connections go to any worker, so that some of them share one with the attack.
const CLIENTS: usize = 6;
/// A pause of a clean client after each answer.
const PAUSE: Duration = Duration::from_millis(5);
/// How long an attack, or a clean request beside it, is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a stall did.
#[derive(Debug, Clone)]
pub struct Stall {
    /// The verdict, as of the other cases.
    pub outcome: Outcome,
    /// Bytes sent, over all connections.
    pub bytes: usize,
    /// How long the attack took.
    pub attack: Duration,
    /// The longest that a clean request took meanwhile.
    pub worst: Duration,
    /// Clean requests that were answered meanwhile.
    pub answered: usize,
    /// Clean requests that were not answered with a status below 500.
    pub lost: usize,
}

/// What clean clients saw.
#[derive(Debug, Clone, Copy, Default)]
struct Clean {
    worst: Duration,
    answered: usize,
    lost: usize,
}

/// Sends a stall while clean clients ask, and then asks once more.
///
/// # Errors
///
/// What is wrong with the case.
///
/// # Panics
///
/// When a thread panicked.
pub fn one(target: &Target, case: &Case, limit: Duration) -> Result<Stall, String> {
    let sending = case.sending(&target.host).map_err(|why| format!("{}: {why}", case.id))?;
    let size = match &sending {
        crate::wire::Sending::Http1 { bytes, .. } => bytes.len(),
        crate::wire::Sending::H2(plan) => {
            let fields: usize = plan.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
            plan.raw.len() + plan.repeat * (fields + plan.body.as_ref().map_or(0, Vec::len))
        }
    };
    let patience = Patience { first: case.wait.unwrap_or(PATIENCE), more: Duration::ZERO };
    let over = AtomicBool::new(false);
    let (attack, all, clean) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| client(target, &over))).collect();
        // The clients' connections are up before the attack begins.
        thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        let attackers: Vec<_> = (0..case.connections)
            .map(|_| {
                scope.spawn(|| -> Vec<Answers> {
                    (0..case.rounds).map(|_| exchange(target.address, &sending, patience)).collect()
                })
            })
            .collect();
        let all: Vec<Answers> =
            attackers.into_iter().flat_map(|attacker| attacker.join().expect("an attacker ends")).collect();
        let attack = start.elapsed();
        // Work that the gateway still does for a connection that has gone shows a moment later.
        thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        let clean = clients.into_iter().map(|client| client.join().expect("a client ends")).fold(
            Clean::default(),
            |whole, one| Clean {
                worst: whole.worst.max(one.worst),
                answered: whole.answered + one.answered,
                lost: whole.lost + one.lost,
            },
        );
        (attack, all, clean)
    });
    let answers_after = clean_request(target.address, &target.host).is_ok_and(|status| status < 500);
    let stalled = clean.worst > limit || clean.lost > 0 || !answers_after;
    let verdict = if stalled { Verdict::Stalled } else { of_all(&all) };
    let mut seen: Vec<String> = all.iter().map(seen).collect();
    seen.sort();
    seen.dedup();
    if !answers_after {
        seen.push("no answer afterwards".to_owned());
    }
    Ok(Stall {
        outcome: Outcome { id: case.id.clone(), verdict, expected: !stalled, seen: seen.join(", ") },
        bytes: size * case.connections * case.rounds,
        attack,
        worst: clean.worst,
        answered: clean.answered,
        lost: clean.lost,
    })
}

/// The verdict on all answers of an attack: the mildest.
fn of_all(all: &[Answers]) -> Verdict {
    let verdicts = all.iter().map(|answers| match answers.ended {
        Some(Ended::Refused) => Verdict::Gone,
        Some(Ended::Silent) => Verdict::Held,
        Some(_) => Verdict::Reset,
        None if answers.statuses.iter().any(|status| *status < 400) => Verdict::Passed,
        None if answers.statuses.is_empty() => Verdict::Reset,
        None => Verdict::Blocked,
    });
    verdicts.max_by_key(|verdict| matches!(verdict, Verdict::Passed)).unwrap_or(Verdict::Reset)
}

fn client(target: &Target, over: &AtomicBool) -> Clean {
    let mut clean = Clean::default();
    let request = clean_get(&target.host);
    let mut connection: Option<Connection> = None;
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        let answer = (|| {
            if connection.is_none() {
                let mut fresh = Connection::open(target.address)?;
                fresh.set_patience(PATIENCE)?;
                connection = Some(fresh);
            }
            connection.as_mut().map_or(Err(std::io::ErrorKind::NotConnected.into()), |open| open.exchange(&request))
        })();
        clean.worst = clean.worst.max(start.elapsed());
        match answer {
            Ok(answer) if answer.status < 500 => clean.answered += 1,
            _ => {
                clean.lost += 1;
                connection = None;
            }
        }
        thread::sleep(PAUSE);
    }
    clean
}

fn clean_get(host: &str) -> Request {
    Request::get("/search?q=garden+chairs").header("host", host)
}

/// A clean request on a connection of its own.
///
/// # Errors
///
/// There is no answer.
pub fn clean_request(address: SocketAddr, host: &str) -> std::io::Result<u16> {
    clean_get(host).send(address).map(|answer| answer.status)
}
