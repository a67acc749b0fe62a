//! What events and requests are counted by.

use std::fmt;
use std::sync::{MutexGuard, PoisonError};

use super::EventHub;
use crate::tally::{RollupName, Taken, Tallies};

/// Says which names are counted by themselves.
pub(super) struct Names(Box<dyn Fn(RollupName<'_>) -> bool + Send + Sync>);

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Names").finish_non_exhaustive()
    }
}

impl EventHub {
    /// Counts requests of routes for the rollups, as a gateway reports them; the id is empty for those outside of all routes. Of more than
    /// the gateway can have had since its last report, the rest is not counted.
    pub fn count_requests<'a>(&self, node: &str, routes: impl IntoIterator<Item = (&'a str, u64)>) {
        let now = (self.inner.clock)();
        for (route, requests) in routes {
            let mut reported = self.inner.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let counted = reported.allow(node, requests, now);
            drop(reported);
            if counted < requests {
                metrics::counter!("palisade_requests_uncounted_total").increment(requests - counted);
            }
            self.tallies().count_requests(route, counted, &|name| self.is_known(name), now);
        }
    }

    /// Counts events and requests by the names for which `is_known` holds at that time, and by no others. All names are known before the
    /// first call, which alone counts.
    pub fn count_by(&self, is_known: impl Fn(RollupName<'_>) -> bool + Send + Sync + 'static) {
        let _first_wins = self.inner.names.set(Names(Box::new(is_known)));
    }

    pub(super) fn is_known(&self, name: RollupName<'_>) -> bool {
        self.inner.names.get().is_none_or(|names| (names.0)(name))
    }

    /// What was counted since the last call.
    pub(crate) fn take_tallies(&self) -> Taken {
        self.tallies().take()
    }

    pub(crate) fn put_back_tallies(&self, taken: Taken) {
        self.tallies().put_back(taken);
    }

    pub(super) fn tallies(&self) -> MutexGuard<'_, Tallies> {
        self.inner.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
