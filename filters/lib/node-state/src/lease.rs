//! The election of one worker of a node.

use crate::SharedData;
use crate::cas::{self, Edited};

/// A worker can be stopped between reading its clock and taking the lease, in milliseconds: for as long, what others have taken
/// meanwhile looks like the work of a clock that was put back, and is none.
const LONGEST_STALL: u64 = 60_000;

/// A task that one worker of the node does for all of them. The worker that holds the lease does it; when it has died, or is
/// stuck, its lease ends and another worker takes over.
///
/// A worker calls [`Lease::hold`] before each run of the task, at least three times in the length of the lease. Never do two
/// workers hold the lease at one time, as far as their clocks agree; a run that lasts beyond the end of the lease can
/// overlap with the next holder's, so a run should be short or safe to repeat.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    /// The key in shared data, unique on the node.
    pub name: &'static str,
    /// For how long a lease lasts after it was last renewed, in milliseconds.
    pub millis: u64,
}

/// Who holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This worker, until the given time (milliseconds since the Unix epoch).
    This {
        /// The end, unless renewed before.
        until: u64,
        /// The number of the term: higher with each change of the holder. A write that carries it can be refused after the
        /// next holder's.
        term: u64,
    },
    /// Another worker. Also returned if other workers wrote first at each of sixteen tries.
    Other,
}

struct Held {
    worker: u64,
    until: u64,
    term: u64,
}

impl Lease {
    /// Takes the lease if no worker holds it, or renews it if this one does. `worker` is a number that no other worker of the
    /// node has, such as a random one that was drawn once.
    pub fn hold(&self, data: &dyn SharedData, worker: u64, now: u64) -> Holder {
        let Edited { result, lost } = cas::edit(data, self.name, |bytes| {
            let held = read(bytes);
            if held.as_ref().is_some_and(|held| held.worker != worker && self.stands(held, now)) {
                return (Holder::Other, None);
            }
            let term = match held {
                Some(held) if held.worker == worker && self.stands(&held, now) => held.term,
                Some(held) => held.term.saturating_add(1),
                None => 1,
            };
            let until = now.saturating_add(self.millis);
            (Holder::This { until, term }, Some(encode(&Held { worker, until, term })))
        });
        if lost {
            data.memory().note(self.name, crate::Losses { lost_updates: 1, evicted: 0 });
            return Holder::Other;
        }
        result
    }

    /// Ends the lease of this worker, so that another one need not wait for its end. Nothing happens if it holds none.
    pub fn release(&self, data: &dyn SharedData, worker: u64, now: u64) {
        let edited = cas::edit(data, self.name, |bytes| match read(bytes) {
            Some(held) if held.worker == worker && self.stands(&held, now) => {
                ((), Some(encode(&Held { until: 0, ..held })))
            }
            _ => ((), None),
        });
        if edited.lost {
            data.memory().note(self.name, crate::Losses { lost_updates: 1, evicted: 0 });
        }
    }

    /// A lease that ends much later than one that is taken now was taken by a clock that has since been put back: without
    /// this, no worker could take over for as long as that.
    fn stands(&self, held: &Held, now: u64) -> bool {
        held.until > now && held.until - now <= self.millis.saturating_mul(2).max(LONGEST_STALL)
    }
}

fn read(bytes: &[u8]) -> Option<Held> {
    let (worker, rest) = bytes.split_first_chunk::<8>()?;
    let (until, rest) = rest.split_first_chunk::<8>()?;
    let term = rest.first_chunk::<8>()?;
    Some(Held {
        worker: u64::from_le_bytes(*worker),
        until: u64::from_le_bytes(*until),
        term: u64::from_le_bytes(*term),
    })
}

fn encode(held: &Held) -> Vec<u8> {
    [held.worker, held.until, held.term].iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::MemorySharedData;
    use crate::testing;

    const LEASE: Lease = Lease { name: "svc.timer/feeds", millis: 3000 };
    const NOW: u64 = 1_700_000_000_000;

    #[test]
    fn another_worker_takes_over_when_the_holder_has_died_or_gone() {
        let data = MemorySharedData::default();
        let hold = |worker, after| LEASE.hold(&data, worker, NOW + after);
        assert_eq!(hold(1, 0), Holder::This { until: NOW + 3000, term: 1 });
        assert_eq!(hold(2, 1000), Holder::Other);
        assert_eq!(hold(1, 1000), Holder::This { until: NOW + 4000, term: 1 });
        // Worker 1 dies. Until its end, its lease stands.
        assert_eq!(hold(2, 3999), Holder::Other);
        assert_eq!(hold(2, 4000), Holder::This { until: NOW + 7000, term: 2 });
        assert_eq!(hold(1, 4001), Holder::Other, "it was only stuck, and notices");
        LEASE.release(&data, 1, NOW + 4002);
        assert_eq!(hold(1, 4002), Holder::Other, "what it does not hold it cannot release");
        LEASE.release(&data, 2, NOW + 4002);
        assert_eq!(hold(1, 4002), Holder::This { until: NOW + 7002, term: 3 });
        // The same worker after its own lease has ended: others may have worked in between.
        assert_eq!(hold(1, 8000), Holder::This { until: NOW + 11_000, term: 4 });
    }

    #[test]
    fn a_clock_that_was_put_back_or_a_torn_value_stops_no_election() {
        let data = MemorySharedData::default();
        LEASE.hold(&data, 1, NOW + 3_600_000);
        assert_eq!(LEASE.hold(&data, 2, NOW + 3_543_000), Holder::Other, "a clock that was read a minute ago");
        assert_eq!(LEASE.hold(&data, 2, NOW), Holder::This { until: NOW + 3000, term: 2 });
        assert_eq!(LEASE.hold(&data, 3, NOW - 2000), Holder::Other, "a little behind");
        data.set(LEASE.name, b"torn", None).unwrap();
        assert_eq!(LEASE.hold(&data, 3, NOW), Holder::This { until: NOW + 3000, term: 1 });
    }

    #[test]
    fn in_no_interleaving_do_two_workers_hold_it_at_one_time() {
        let lease = Lease { name: "race", millis: 30 };
        let mut takeovers = 0;
        for seed in 0..200 {
            let held = Mutex::new(Vec::new());
            testing::run(seed, 5, |data, worker| {
                // The clock is the number of steps that all workers have made. Each worker dies at another time, the
                // holder among them, and no value is there at first.
                for _ in 0..10 + worker * 10 {
                    let now = data.clock();
                    if let Holder::This { until, term } = lease.hold(data, worker as u64, now) {
                        held.lock().unwrap().push((term, worker, now, until));
                    }
                }
            });
            let mut held = held.into_inner().unwrap();
            held.sort_unstable();
            takeovers += held.last().unwrap().0 - 1;
            for pair in held.windows(2) {
                let ((term, worker, _, until), (next_term, next_worker, now, _)) = (pair[0], pair[1]);
                match next_term - term {
                    0 => assert_eq!(worker, next_worker, "seed {seed}"),
                    1 => assert!(until <= now, "seed {seed}: {pair:?}"),
                    _ => panic!("seed {seed}: a term is missing"),
                }
            }
        }
        assert!(takeovers > 200, "{takeovers}");
    }
}
