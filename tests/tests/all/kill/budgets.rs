//! Consumers that read objects at both nodes until their budget refuses.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use palisade_tests::http::Request;

use super::{Acknowledged, address};

/// The distinct objects that a consumer may read.
pub(crate) const BUDGET: usize = 5;
/// The objects that each consumer asks for.
const ASKED: u32 = 8;

/// The admin interfaces of both nodes, `None` while one is gone: they count the questions without an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(Arc<Mutex<[Option<SocketAddr>; 2]>>);

impl Counters {
    pub(crate) fn set(&self, node: usize, admin: Option<SocketAddr>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[node] = admin;
    }

    /// The admin addresses and the questions that had no answer so far; `None` if a node does not say.
    fn unanswered(&self) -> Option<([SocketAddr; 2], u64)> {
        let [one, other] = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let admins = [one?, other?];
        let mut sum = 0;
        for admin in admins {
            let path = r"/stats?format=json&filter=palisade%5C.questions_unanswered%24";
            let answer = Request::get(path).send(admin).ok()?;
            let stats: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
            sum += stats["stats"].as_array()?.iter().filter_map(|stat| stat["value"].as_u64()).sum::<u64>();
        }
        Some((admins, sum))
    }
}

/// One consumer after the other reads objects at both nodes, in turn or at the same time.
pub(crate) fn read_objects(
    nodes: [SocketAddr; 2],
    round: u32,
    counters: &Counters,
    stop: &AtomicBool,
    notes: &Sender<Acknowledged>,
) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let source = address(112, round, number);
        let Some((admins, before)) = counters.unanswered() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let ask = |object: u32, node: usize| read(source, object, nodes[node]);
        let answers: Vec<Option<u16>> = if number % 2 == 0 {
            (0..ASKED).map(|object| ask(object, object as usize % 2)).collect()
        } else {
            thread::scope(|scope| {
                let at = |object: u32| scope.spawn(move || ask(object, object as usize % 2));
                let asking: Vec<_> = (0..ASKED).map(at).collect();
                asking.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        // A worker counts a question when its time is over, which it may notice a second later.
        let complete = answers.iter().all(Option::is_some);
        let admitted: Vec<u32> =
            (0..ASKED).zip(&answers).filter(|(_, status)| **status == Some(200)).map(|it| it.0).collect();
        let Some((same, after)) = counters.unanswered().filter(|_| complete) else { continue };
        match after.checked_sub(before) {
            Some(0) if same == admins => {
                assert_eq!(admitted.len(), BUDGET, "{source}, every question answered: {answers:?}");
                let _ = notes.send(Acknowledged::Budget(source, admitted));
            }
            Some(unanswered) if same == admins => {
                // Each of them lets one object pass, and no more.
                let most = BUDGET as u64 + unanswered;
                assert!(admitted.len() as u64 <= most, "{source}: {answers:?}, {unanswered} without an answer");
                let _ = notes.send(Acknowledged::Uncounted);
            }
            _ => {}
        }
    }
}

/// The status of a request for an object: 200, or 429 beyond the budget.
pub(super) fn read(source: Ipv4Addr, object: u32, node: SocketAddr) -> Option<u16> {
    let answer = Request::get(format!("/objects/{}", object + 1)).send_from(source, node).ok()?;
    assert!(matches!(answer.status, 200 | 429), "{} {}", answer.status, answer.text());
    Some(answer.status)
}

/// An object that no consumer has asked for.
pub(super) const OTHER: u32 = ASKED + 100;
