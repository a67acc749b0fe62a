//! Room for messages: a channel that hangs must not take it from the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Messages that are not delivered yet, at most; further ones are dropped.
pub(super) const MAX_WAITING: u32 = 1000;
/// Those of one rule.
const MAX_WAITING_OF_RULE: usize = 200;
/// Calls of one rule at the same time.
const MAX_CALLS_OF_RULE: usize = 4;

/// The room of all rules.
pub(super) struct Lanes {
    all: Arc<Semaphore>,
    by_rule: Mutex<HashMap<String, Arc<Lane>>>,
}

/// That of one rule, for as long as any of its messages is under way.
struct Lane {
    waiting: Arc<Semaphore>,
    calls: Semaphore,
    /// There was no room for its last message.
    full: AtomicBool,
}

/// A message's own room.
pub(super) struct Room {
    lane: Arc<Lane>,
    _of_rule: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// There is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// There was some for the message before.
    pub(super) first: bool,
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        Lanes { all: Arc::new(Semaphore::new(MAX_WAITING as usize)), by_rule: Mutex::default() }
    }

    /// Room for a message of a rule.
    pub(super) fn enter(&self, rule: &str) -> Result<Room, Full> {
        let lane = self.lane(rule);
        let of_rule = Arc::clone(&lane.waiting).try_acquire_owned();
        let both = of_rule.and_then(|of_rule| Ok((of_rule, Arc::clone(&self.all).try_acquire_owned()?)));
        let Ok((of_rule, of_all)) = both else {
            return Err(Full { first: !lane.full.swap(true, Ordering::Relaxed) });
        };
        lane.full.store(false, Ordering::Relaxed);
        Ok(Room { lane, _of_rule: of_rule, _of_all: of_all })
    }

    /// How many messages are under way.
    pub(super) fn waiting(&self) -> u32 {
        let free = u32::try_from(self.all.available_permits()).unwrap_or(MAX_WAITING);
        MAX_WAITING - free.min(MAX_WAITING)
    }

    /// Waits until none is.
    pub(super) async fn drained(&self) {
        // Never closed.
        let _all = self.all.acquire_many(MAX_WAITING).await;
    }

    fn lane(&self, rule: &str) -> Arc<Lane> {
        let mut lanes = self.by_rule.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody is in is made anew when somebody comes.
        lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        let lane = lanes.entry(rule.to_owned()).or_insert_with(|| {
            Arc::new(Lane {
                waiting: Arc::new(Semaphore::new(MAX_WAITING_OF_RULE)),
                calls: Semaphore::new(MAX_CALLS_OF_RULE),
                full: AtomicBool::new(false),
            })
        });
        Arc::clone(lane)
    }
}

impl Room {
    /// Waits until it may call; for as long as what is answered lives.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed.
        self.lane.calls.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_leaves_room_for_the_others() {
        let lanes = Lanes::new();
        let mut rooms: Vec<Room> = (0..MAX_WAITING_OF_RULE).map(|_| lanes.enter("a").ok().unwrap()).collect();
        assert_eq!(lanes.enter("a").err(), Some(Full { first: true }));
        assert_eq!(lanes.enter("a").err(), Some(Full { first: false }), "told once");
        rooms.push(lanes.enter("b").ok().unwrap());
        assert_eq!(lanes.waiting(), 201);
        rooms.remove(0);
        rooms.push(lanes.enter("a").ok().unwrap());
        assert_eq!(lanes.enter("a").err(), Some(Full { first: true }), "told again");
        rooms.clear();
        assert_eq!(lanes.waiting(), 0);
        drop(lanes.enter("c").ok().unwrap());
        assert_eq!(lanes.by_rule.lock().unwrap().len(), 1, "what is empty is not kept");
    }

    #[test]
    fn all_rules_together_are_bounded() {
        let lanes = Lanes::new();
        let enter = |number: u32| lanes.enter(&format!("r{}", number % 20));
        let rooms: Vec<Room> = (0..MAX_WAITING).map(|number| enter(number).ok().unwrap()).collect();
        assert_eq!(enter(0).err(), Some(Full { first: true }));
        drop(rooms);
        assert!(enter(0).is_ok());
    }

    #[tokio::test]
    async fn a_rule_has_so_many_calls_at_a_time() {
        let lanes = Lanes::new();
        let rooms: Vec<Room> = (0..=MAX_CALLS_OF_RULE).map(|_| lanes.enter("a").ok().unwrap()).collect();
        let (last, first) = rooms.split_last().unwrap();
        let mut turns = Vec::new();
        for room in first {
            turns.push(room.turn().await);
        }
        let other = lanes.enter("b").ok().unwrap();
        drop(other.turn().await);
        let mut waits = at_once(last.turn());
        assert!(waits.is_none(), "its turn has not come");
        turns.pop();
        waits = at_once(last.turn());
        assert!(waits.is_some());
    }

    /// What a future has at once.
    fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }
}
