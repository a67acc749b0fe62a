//! A number that all workers of a node make up together, each its share of it.

use crate::SharedData;
use crate::cas::{self, ATTEMPTS};

/// Such a number: one value of shared data, with the share of each worker. A worker that is gone tells nothing any more, so
/// a share counts for a time and is to be told again before.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// Its key in shared data.
    pub name: &'static str,
    /// For how long a share counts that its worker does not tell again, in milliseconds.
    pub lease: u64,
}

struct Share {
    worker: u64,
    count: u32,
    until: u64,
}

impl Shares {
    /// Sets the share of a worker to what `wanted` makes of it and of the whole number, atomically over all workers; the new
    /// share. `None` where it makes nothing, or where other workers won every one of sixteen tries.
    pub fn change(
        &self,
        data: &dyn SharedData,
        worker: u64,
        now: u64,
        wanted: impl Fn(u32, u32) -> Option<u32>,
    ) -> Option<u32> {
        for _ in 0..ATTEMPTS {
            let (bytes, token) = cas::read(data, self.name);
            let mut shares = read(&bytes);
            shares.retain(|share| share.until > now && share.count > 0);
            let all = shares.iter().fold(0_u32, |all, share| all.saturating_add(share.count));
            let own = shares.iter().find(|share| share.worker == worker).map_or(0, |share| share.count);
            let count = wanted(own, all)?;
            shares.retain(|share| share.worker != worker);
            shares.push(Share { worker, count, until: now.saturating_add(self.lease) });
            if data.set(self.name, &write(&shares), Some(token)).is_ok() {
                return Some(count);
            }
        }
        None
    }
}

fn read(bytes: &[u8]) -> Vec<Share> {
    let (shares, _) = bytes.as_chunks::<20>();
    let part = |share: &[u8; 20]| {
        let (worker, rest) = share.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let until = rest.first_chunk::<8>()?;
        Some(Share {
            worker: u64::from_le_bytes(*worker),
            count: u32::from_le_bytes(*count),
            until: u64::from_le_bytes(*until),
        })
    };
    shares.iter().filter_map(part).collect()
}

fn write(shares: &[Share]) -> Vec<u8> {
    let bytes = |share: &Share| {
        [&share.worker.to_le_bytes()[..], &share.count.to_le_bytes(), &share.until.to_le_bytes()].concat()
    };
    shares.iter().flat_map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::{Conflict, MemorySharedData, WorkerMemory};

    const SHARES: Shares = Shares { name: "held", lease: 10 };

    fn take(data: &dyn SharedData, worker: u64, now: u64) -> Option<u32> {
        SHARES.change(data, worker, now, |own, all| (all < 3).then_some(own + 1))
    }

    #[test]
    fn the_limit_is_that_of_all_workers_together() {
        let data = MemorySharedData::default();
        assert_eq!([take(&data, 1, 0), take(&data, 2, 0), take(&data, 1, 0)], [Some(1), Some(1), Some(2)]);
        assert_eq!((take(&data, 1, 0), take(&data, 2, 0)), (None, None));
        assert_eq!(SHARES.change(&data, 1, 0, |_, _| Some(0)), Some(0));
        assert_eq!(take(&data, 2, 0), Some(2));
    }

    #[test]
    fn a_worker_that_tells_nothing_any_more_is_forgotten() {
        let data = MemorySharedData::default();
        (0..3).for_each(|_| assert!(take(&data, 1, 0).is_some()));
        assert_eq!((take(&data, 2, 9), take(&data, 2, 10)), (None, Some(1)));
        // What is no share is none.
        data.set(SHARES.name, b"torn", None).unwrap();
        assert_eq!(take(&data, 2, 10), Some(1));
    }

    /// Another worker is faster a number of times.
    struct Contended(MemorySharedData, Cell<usize>);

    impl SharedData for Contended {
        fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
            self.0.get(key)
        }

        fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
            match self.1.get().checked_sub(1) {
                Some(left) => {
                    self.1.set(left);
                    Err(Conflict)
                }
                None => self.0.set(key, value, token),
            }
        }

        fn memory(&self) -> Rc<WorkerMemory> {
            self.0.memory()
        }

        fn random(&self) -> u64 {
            self.0.random()
        }
    }

    #[test]
    fn a_write_that_was_too_late_is_tried_again_and_given_up_in_the_end() {
        let data = Contended(MemorySharedData::default(), Cell::new(ATTEMPTS - 1));
        assert_eq!(take(&data, 1, 0), Some(1));
        data.1.set(ATTEMPTS);
        assert_eq!(take(&data, 1, 0), None);
        assert_eq!(take(&data, 1, 0), Some(2), "nothing was counted that was given up");
    }
}
