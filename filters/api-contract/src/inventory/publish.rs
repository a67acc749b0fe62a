//! From what a worker has counted to its reports.

use exchange::{Host, offline};
use prost::Message as _;

use super::messages::{INVENTORY, InventoryReport, OperationCounts, PathCount, RouteCounts};
use super::{IDLE, Inventory, Route, State};
use crate::inventory::counts::CallCounts;

/// The time between two reports, in milliseconds.
pub(crate) const PUBLISH_MILLIS: u64 = 30_000;
/// The bytes of a report, at most; the link takes reports of 64 KiB.
const MAX_REPORT: usize = 48 * 1024;
/// The bytes of the ids of contracts in a report, at most.
const MAX_IDS: usize = 16 * 1024;
/// The reports of one time, at most: with those before, which are sent once more, they are in the quota of the link. What does not
/// fit is counted on.
const MAX_REPORTS: usize = 4;

impl Inventory {
    /// Sends what was counted, where it is due. `contract` is the id of the contract of the step whose timer it is.
    pub(crate) fn publish(&self, contract: &str, host: &dyn Host) {
        let Ok(mut state) = self.0.try_borrow_mut() else { return };
        let now = host.now();
        state.contracts.insert(contract.to_owned(), now);
        // A clock that was put back does not stop the reports.
        let passed = |since: u64| now.checked_sub(since).is_none_or(|passed| passed >= PUBLISH_MILLIS);
        // What comes after a silence is told at once.
        let due = passed(state.published) || (state.fresh && passed(state.counted));
        if !due || offline::is(host.shared(), now) {
            return;
        }
        state.published = now;
        if std::mem::take(&mut state.fresh) {
            state.counted = now;
        }
        while state.worker == 0 {
            state.worker = host.random() | 1;
        }
        // A step that runs says so at each tick.
        state.contracts.retain(|_, seen| now.saturating_sub(*seen) < 2 * PUBLISH_MILLIS);
        for report in std::mem::take(&mut state.sent) {
            host.send_report(INVENTORY, report);
        }
        let reports = state.reports(now);
        reports.iter().for_each(|report| host.send_report(INVENTORY, report.clone()));
        state.sent = reports;
        state.forget(now);
    }
}

impl State {
    /// What was counted since the last time, in at least one report: that a worker counts is news as well.
    fn reports(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut reports = Vec::new();
        let mut left = MAX_IDS;
        let fits = |id: &&String| {
            left = left.saturating_sub(id.len().saturating_add(4));
            left > 0
        };
        let contracts: Vec<String> = self.contracts.keys().take_while(fits).cloned().collect();
        let fresh = |state: &mut Self, contracts: Vec<String>| {
            state.sequence = state.sequence.saturating_add(1);
            InventoryReport { worker: state.worker, sequence: state.sequence, contracts, routes: Vec::new() }
        };
        let mut report = fresh(self, contracts);
        let mut size = report.encoded_len();
        let mut routes = std::mem::take(&mut self.routes);
        'all: for (id, route) in &mut routes {
            loop {
                let left = MAX_REPORT.saturating_sub(size);
                let (counts, done) = route.take(id, left, now);
                size = size.saturating_add(counts.encoded_len().saturating_add(8));
                if counts != (RouteCounts { route: id.to_string(), ..RouteCounts::default() }) {
                    report.routes.push(counts);
                }
                if done {
                    break;
                }
                reports.push(report.encode_to_vec());
                if reports.len() >= MAX_REPORTS {
                    report = InventoryReport::default();
                    self.fresh = true;
                    break 'all;
                }
                report = fresh(self, Vec::new());
                size = report.encoded_len();
            }
        }
        self.routes = routes;
        if report.worker != 0 {
            reports.push(report.encode_to_vec());
        }
        reports
    }

    /// Forgets what was not asked for lately and was reported.
    fn forget(&mut self, now: u64) {
        let idle = |counts: &CallCounts, seen: u64| counts.is_empty() && now.saturating_sub(seen) > IDLE;
        for route in self.routes.values_mut() {
            route.operations.retain(|_, operation| {
                !idle(&operation.counts, operation.counts.last_seen) || !operation.refusals.is_empty()
            });
            route.paths.retain(|counts| !idle(counts, counts.last_seen));
        }
        let empty = |route: &mut Route| {
            route.operations.is_empty()
                && route.paths.is_empty()
                && route.paths.rest().is_empty()
                && route.outside.is_empty()
        };
        self.routes.retain(|_, route| !empty(route));
    }
}

impl Route {
    /// Takes counts of at most `left` bytes or so; whether those were all.
    fn take(&mut self, id: &str, left: usize, now: u64) -> (RouteCounts, bool) {
        let mut taken = RouteCounts { route: id.to_owned(), ..RouteCounts::default() };
        let mut size = taken.encoded_len();
        for operation in self.operations.values_mut().filter(|operation| !operation.counts.is_empty()) {
            if size >= left {
                return (taken, false);
            }
            let counted = take(&mut operation.counts, now);
            let counts = OperationCounts {
                method: operation.method.clone(),
                path: operation.path.clone(),
                counted: Some(counted),
                would_refuse: operation.refusals.take(now),
            };
            size = size.saturating_add(counts.encoded_len());
            taken.operations.push(counts);
        }
        for ((method, path), counts) in self.paths.iter_mut().filter(|(_, counts)| !counts.is_empty()) {
            if size >= left {
                return (taken, false);
            }
            let counts = PathCount { method: method.clone(), path: path.clone(), counted: Some(take(counts, now)) };
            size = size.saturating_add(counts.encoded_len());
            taken.paths.push(counts);
        }
        if size >= left {
            return (taken, false);
        }
        let others = self.paths.other();
        taken.others = (!others.is_empty()).then(|| take(others, now));
        taken.outside = self.outside.take(now);
        (taken, true)
    }
}

/// Takes the counts; when the last call was and what answers look like stays.
fn take(counts: &mut CallCounts, now: u64) -> super::messages::Counted {
    let message = counts.message(now);
    *counts = CallCounts { last_seen: counts.last_seen, answer: counts.answer.take(), ..CallCounts::default() };
    message
}
