//! The inventory of all gateways, as their reports add up. What they report is not believed: operations are those of the contract, paths
//! have the form of folded ones, and every number has a bound, so that no node makes more than its routes have room for.

use std::collections::{BTreeMap, BTreeSet};

use exchange::fold::{ID, MAX_FOLDED, SLUG, fold};
use prost::Message as _;
use store::inventory::{InventoryChange, InventoryRow, InventoryWorker, KeptInventory};

use super::compare::Finding;
use super::rows::{OPERATION, OperationRow, ROUTE, RouteRow};
use crate::inventory::counts::{CallCounts, Callers, MAX_COUNT};
use crate::inventory::messages::{MismatchCount, RouteCounts, WouldRefuse};
use crate::inventory::paths::{MAX_PATHS, PathBook};

/// How long something is kept that is not seen any more, in milliseconds: six months.
pub(super) const KEPT: u64 = 183 * 86_400_000;
/// The findings of drift on one route, at most.
pub(super) const MAX_DRIFT: usize = 500;
/// The workers of a node that are told apart, at most.
const MAX_WORKERS: usize = 256;
/// The nodes whose workers are told apart, at most.
const MAX_NODES: usize = 4096;
/// How long a worker is remembered that reports nothing, in milliseconds: 30 days.
const WORKER_KEPT: u64 = 30 * 86_400_000;
/// The longest place and the longest detail of a sample, in characters.
const MAX_TEXT: usize = 200;
/// The words of mismatches that enforcing refuses.
const MISMATCHES: [&str; 9] = [
    "unknown_path",
    "method_not_allowed",
    "missing_parameter",
    "invalid_parameter",
    "unknown_parameter",
    "missing_body",
    "unsupported_media_type",
    "invalid_body",
    "body_too_large",
];

/// The inventory.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) routes: BTreeMap<String, RouteRecord>,
    nodes: BTreeMap<String, BTreeMap<u64, Window>>,
    /// Workers whose windows have changed since they were written.
    changed_workers: BTreeSet<(String, u64)>,
    /// Records and workers that are gone from here and not yet from the store.
    removed: Vec<(String, String)>,
    removed_workers: Vec<(String, u64)>,
    /// Reports that were not of the right form.
    pub(super) refused: u64,
}

/// A route.
#[derive(Debug, Default)]
pub(super) struct RouteRecord {
    /// Since when gateways count its calls, in milliseconds since 1970; 0 if none does yet.
    pub(super) observed_since: u64,
    /// Operations by method and path.
    pub(super) operations: BTreeMap<(String, String), OperationRecord>,
    pub(super) paths: PathBook<CallCounts>,
    /// Requests outside of the contract that enforcing would refuse.
    pub(super) outside: WouldRefuseRecord,
    /// By operation and finding.
    pub(super) drift: BTreeMap<(String, Finding), Drift>,
    /// The version of the contract that findings and what enforcing would refuse are about.
    pub(super) contract: String,
    pub(super) dirty: bool,
}

/// An operation.
#[derive(Debug, Default)]
pub(super) struct OperationRecord {
    pub(super) counts: CallCounts,
    pub(super) would_refuse: WouldRefuseRecord,
    pub(super) dirty: bool,
}

/// What enforcing would refuse.
#[derive(Debug, Default)]
pub(super) struct WouldRefuseRecord {
    pub(super) requests: u64,
    pub(super) callers: Callers,
    /// By the word of the mismatch; the ages are times.
    pub(super) kinds: BTreeMap<String, MismatchCount>,
}

/// How often a finding was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Drift {
    pub(super) count: u64,
    pub(super) last_seen: u64,
}

/// Which reports of a worker were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Window {
    /// The highest number.
    highest: u64,
    /// Those before it: a bit each, the lowest for the highest number itself.
    counted: u64,
    seen: u64,
}

impl Window {
    /// Notes a report; false if it was counted before, or is so old that it may have been.
    fn admit(&mut self, sequence: u64, now: u64) -> bool {
        self.seen = now;
        if sequence > self.highest {
            let ahead = u32::try_from(sequence - self.highest).unwrap_or(u32::MAX);
            self.counted = self.counted.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = sequence;
            return true;
        }
        let behind = u32::try_from(self.highest - sequence).unwrap_or(u32::MAX);
        let Some(bit) = 1_u64.checked_shl(behind) else { return false };
        let fresh = self.counted & bit == 0;
        self.counted |= bit;
        fresh
    }
}

impl State {
    /// What was kept in the store.
    pub(super) fn load(kept: KeptInventory) -> Self {
        let mut state = Self::default();
        for InventoryRow { route, record, body, .. } in kept.rows {
            let own = state.routes.entry(route).or_default();
            if record == ROUTE {
                let Ok(row) = RouteRow::decode(body.as_slice()) else { continue };
                *own = RouteRecord { operations: std::mem::take(&mut own.operations), ..row.record() };
            } else if let Some(label) = record.strip_prefix(OPERATION)
                && let Some((method, path)) = label.split_once(' ')
                && let Ok(row) = OperationRow::decode(body.as_slice())
            {
                own.operations.insert((method.to_owned(), path.to_owned()), row.record());
            }
        }
        for InventoryWorker { node, worker, sequence, window, seen_millis } in kept.workers {
            let window = Window { highest: sequence, counted: window, seen: seen_millis };
            state.nodes.entry(node).or_default().insert(worker, window);
        }
        state
    }

    /// Whether a report of a worker counts: each does once.
    pub(super) fn admit(&mut self, node: &str, worker: u64, sequence: u64, now: u64) -> bool {
        if worker == 0 || sequence == 0 {
            return false;
        }
        if !self.nodes.contains_key(node) && self.nodes.len() >= MAX_NODES {
            return false;
        }
        let workers = self.nodes.entry(node.to_owned()).or_default();
        if !workers.contains_key(&worker) && workers.len() >= MAX_WORKERS {
            let oldest = workers.iter().min_by_key(|(_, window)| window.seen).map(|(worker, _)| *worker);
            if let Some(oldest) = oldest {
                workers.remove(&oldest);
                self.removed_workers.push((node.to_owned(), oldest));
            }
        }
        let counts = workers.entry(worker).or_default().admit(sequence, now);
        if counts {
            self.changed_workers.insert((node.to_owned(), worker));
        }
        counts
    }

    /// Gateways count the calls of these routes.
    pub(super) fn observe<'r>(&mut self, routes: impl Iterator<Item = &'r str>, now: u64) {
        for id in routes {
            let route = self.routes.entry(id.to_owned()).or_default();
            if route.observed_since == 0 {
                (route.observed_since, route.dirty) = (now, true);
            }
        }
    }

    /// Adds what was counted on a route. Its contract has the version `of`, and the operations that `declares` knows.
    pub(super) fn add(&mut self, counts: RouteCounts, of: &str, declares: impl Fn(&str, &str) -> bool, now: u64) {
        let route = self.routes.entry(counts.route).or_default();
        if route.observed_since == 0 {
            (route.observed_since, route.dirty) = (now, true);
        }
        route.turn_to(of);
        for operation in counts.operations {
            // Of another version of the contract.
            if !declares(&operation.method, &operation.path) {
                continue;
            }
            let record = route.operations.entry((operation.method, operation.path)).or_default();
            record.dirty = true;
            if let Some(counted) = operation.counted {
                record.counts.add(&CallCounts::of_message(counted, now));
            }
            if let Some(would_refuse) = operation.would_refuse {
                record.would_refuse.add(would_refuse, now);
            }
        }
        route.dirty |= !counts.paths.is_empty() || counts.others.is_some() || counts.outside.is_some();
        for path in counts.paths {
            let Some(counted) = path.counted.map(|counted| CallCounts::of_message(counted, now)) else { continue };
            if !is_folded(&path.method, &path.path) {
                self.refused = self.refused.saturating_add(1);
                continue;
            }
            let exists = counted.classes.get(1).is_some_and(|answers| *answers > 0);
            route.paths.get(&path.method, &path.path, exists, MAX_PATHS).add(&counted);
        }
        if let Some(others) = counts.others {
            route.paths.other().add(&CallCounts { answer: None, ..CallCounts::of_message(others, now) });
        }
        if let Some(outside) = counts.outside {
            route.outside.add(outside, now);
        }
    }

    /// Notes how a payload differs from the contract, whose version is `of`.
    pub(super) fn drifted(&mut self, route: &str, operation: &str, of: &str, findings: Vec<Finding>, now: u64) {
        let Some(route) = self.routes.get_mut(route) else { return };
        route.turn_to(of);
        for finding in findings {
            let key = (operation.to_owned(), finding);
            if route.drift.len() >= MAX_DRIFT && !route.drift.contains_key(&key) {
                continue;
            }
            let seen = route.drift.entry(key).or_default();
            *seen = Drift { count: seen.count.saturating_add(1).min(MAX_COUNT), last_seen: now };
            route.dirty = true;
        }
    }

    /// Forgets what was not seen for six months, and routes that are gone for as long.
    pub(super) fn forget(&mut self, now: u64) {
        let before = now.saturating_sub(KEPT);
        for (id, route) in &mut self.routes {
            let removed = &mut self.removed;
            route.operations.retain(|(method, path), operation| {
                let keep = operation.counts.last_seen >= before;
                if !keep {
                    removed.push((id.clone(), format!("{OPERATION}{method} {path}")));
                }
                keep
            });
            let paths = route.paths.len();
            route.paths.retain(|counts| counts.last_seen >= before);
            let drift = route.drift.len();
            route.drift.retain(|_, seen| seen.last_seen >= before);
            route.dirty |= paths != route.paths.len() || drift != route.drift.len();
        }
        let workers_before = now.saturating_sub(WORKER_KEPT);
        let removed = &mut self.removed_workers;
        self.nodes.retain(|node, workers| {
            workers.retain(|worker, window| {
                let keep = window.seen >= workers_before;
                if !keep {
                    removed.push((node.clone(), *worker));
                }
                keep
            });
            !workers.is_empty()
        });
    }

    /// Forgets routes that are not among the entities any more and were not asked for in six months.
    pub(super) fn forget_routes(&mut self, exists: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self
            .routes
            .iter()
            .filter(|(id, route)| !exists(id) && route.operations.is_empty() && route.paths.is_empty())
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.routes.remove(&id);
            self.removed.push((id, ROUTE.to_owned()));
        }
    }

    /// What has changed since the last call, for the store; `None` if nothing has.
    pub(super) fn take_changes(&mut self, now: u64) -> Option<InventoryChange> {
        let mut change = InventoryChange {
            remove: std::mem::take(&mut self.removed),
            remove_workers: std::mem::take(&mut self.removed_workers),
            ..InventoryChange::default()
        };
        for (id, route) in &mut self.routes {
            let mut put = |record: String, seen_millis: u64, body: Vec<u8>| {
                change.put.push(InventoryRow { route: id.clone(), record, seen_millis, body });
            };
            for ((method, path), operation) in &mut route.operations {
                if std::mem::take(&mut operation.dirty) {
                    let body = OperationRow::of(operation).encode_to_vec();
                    put(format!("{OPERATION}{method} {path}"), operation.counts.last_seen, body);
                }
            }
            if std::mem::take(&mut route.dirty) {
                put(ROUTE.to_owned(), now, RouteRow::of(route).encode_to_vec());
            }
        }
        for (node, worker) in std::mem::take(&mut self.changed_workers) {
            let Some(window) = self.nodes.get(&node).and_then(|workers| workers.get(&worker)) else { continue };
            let Window { highest, counted, seen } = *window;
            change.workers.push(InventoryWorker {
                node,
                worker,
                sequence: highest,
                window: counted,
                seen_millis: seen,
            });
        }
        (change != InventoryChange::default()).then_some(change)
    }

    /// A change could not be written: it is one again.
    pub(super) fn put_back(&mut self, change: InventoryChange) {
        self.removed.extend(change.remove);
        self.removed_workers.extend(change.remove_workers);
        for row in change.put {
            let Some(route) = self.routes.get_mut(&row.route) else { continue };
            let label = row.record.strip_prefix(OPERATION).and_then(|label| label.split_once(' '));
            match label.map(|(method, path)| (method.to_owned(), path.to_owned())) {
                Some(key) => {
                    if let Some(operation) = route.operations.get_mut(&key) {
                        operation.dirty = true;
                    }
                }
                None => route.dirty = true,
            }
        }
        self.changed_workers.extend(change.workers.into_iter().map(|worker| (worker.node, worker.worker)));
    }
}

impl RouteRecord {
    /// The contract has this version now: what differed from another one may not differ from this one.
    fn turn_to(&mut self, of: &str) {
        if self.contract == of {
            return;
        }
        of.clone_into(&mut self.contract);
        self.dirty = true;
        self.drift.clear();
        self.outside = WouldRefuseRecord::default();
        for operation in self.operations.values_mut().filter(|operation| operation.would_refuse.requests > 0) {
            operation.would_refuse = WouldRefuseRecord::default();
            operation.dirty = true;
        }
    }
}

impl WouldRefuseRecord {
    fn add(&mut self, message: WouldRefuse, now: u64) {
        self.requests = self.requests.saturating_add(message.requests).min(MAX_COUNT);
        message.callers.into_iter().for_each(|hash| _ = self.callers.insert(hash));
        for kind in message.kinds.into_iter().filter(|kind| MISMATCHES.contains(&kind.kind.as_str())) {
            let known = self.kinds.entry(kind.kind.clone()).or_default();
            *known = MismatchCount {
                requests: known.requests.saturating_add(kind.requests).min(MAX_COUNT),
                place: kind.place.chars().filter(|shown| !shown.is_control()).take(MAX_TEXT).collect(),
                detail: kind.detail.chars().filter(|shown| !shown.is_control()).take(MAX_TEXT).collect(),
                age: now.saturating_sub(kind.age),
                kind: kind.kind,
            };
        }
    }
}

/// Whether a method and a path are as a worker folds them.
fn is_folded(method: &str, path: &str) -> bool {
    let is_method =
        method == "(other)" || (1..=16).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_uppercase());
    // What stands for an identifier is no text of a request.
    let bare = path.replace(SLUG, "a").replace(ID, "a");
    is_method
        && path.len() <= MAX_FOLDED
        && path.starts_with('/')
        && fold(bare.as_bytes()).is_some_and(|folded| folded == bare)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
