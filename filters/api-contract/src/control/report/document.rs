//! The report as a document.

use exchange::fold::SLUG;
use serde_json::{Map, Value, json};

use super::auth::{Auth, SEVERITIES};
use super::contracts::ReadContract;
use super::routes::ReportedRoute;
use super::state::{OperationRecord, RouteRecord, WouldRefuseRecord};
use crate::inventory::counts::CallCounts;
use crate::inventory::paths::{PathCounts as _, PathKey};

/// How the paths read that have no record of their own.
pub(super) const OTHER_PATHS: &str = "(other paths)";
const DAY: u64 = 86_400_000;

/// A route with all that is known of it.
pub(super) struct Known<'k> {
    pub(super) route: &'k ReportedRoute,
    /// The id, the name, and what was read of it; `None` for a route without a contract.
    pub(super) contract: Option<(&'k str, &'k str, &'k ReadContract)>,
    pub(super) record: Option<&'k RouteRecord>,
    pub(super) auth: Auth,
}

/// What is counted over all routes.
#[derive(Default)]
struct Summary {
    with_contract: usize,
    operations: usize,
    zombies: usize,
    unused: usize,
    shadows: usize,
    confirmed_shadows: usize,
    probes: usize,
    drift: usize,
    sensitive_drift: usize,
    would_refuse: u64,
    auth: [usize; 4],
}

impl Summary {
    fn add_refusals(&mut self, record: &WouldRefuseRecord, is_current: bool) {
        if is_current {
            self.would_refuse = self.would_refuse.saturating_add(record.requests);
        }
    }
}

/// The report on these routes at a time.
pub(super) fn document(routes: &[Known<'_>], zombie_days: u64, now: u64) -> Value {
    let mut summary = Summary::default();
    let shown: Vec<Value> = routes.iter().map(|known| route(known, zombie_days * DAY, now, &mut summary)).collect();
    let auth: Map<String, Value> =
        SEVERITIES.iter().zip(summary.auth).map(|(severity, count)| ((*severity).to_owned(), count.into())).collect();
    json!({
        "zombie_after_days": zombie_days,
        "routes": shown,
        "summary": {
            "routes": routes.len(),
            "with_contract": summary.with_contract,
            "operations": summary.operations,
            "zombies": summary.zombies,
            "unused": summary.unused,
            "shadows": summary.shadows,
            "confirmed_shadows": summary.confirmed_shadows,
            "probes": summary.probes,
            "drift": summary.drift,
            "sensitive_drift": summary.sensitive_drift,
            "would_refuse": summary.would_refuse,
            "auth": auth,
        },
    })
}

fn route(known: &Known<'_>, zombie_after: u64, now: u64, summary: &mut Summary) -> Value {
    let nothing = RouteRecord::default();
    let record = known.record.unwrap_or(&nothing);
    // What is known of another version of the contract is not shown: it may not differ from this one.
    let is_current = known.contract.is_some_and(|(_, _, read)| read.version == record.contract);
    let refusals = |record: &WouldRefuseRecord| if is_current { would_refuse(record) } else { Value::Null };
    for (count, severity) in summary.auth.iter_mut().zip(SEVERITIES) {
        *count += known.auth.count(severity);
    }
    summary.with_contract += usize::from(known.contract.is_some());
    let observed_long = record.observed_since > 0 && now.saturating_sub(record.observed_since) >= zombie_after;
    let declared = known.contract.into_iter().flat_map(|(_, _, read)| &read.declared.operations);
    let mut operations = Vec::new();
    for operation in declared {
        let none = OperationRecord::default();
        let key = (operation.method.clone(), operation.path.clone());
        let own = record.operations.get(&key).unwrap_or(&none);
        let recent = now.saturating_sub(own.counts.last_seen) < zombie_after;
        let state = match () {
            () if own.counts.hits > 0 && recent => "used",
            () if observed_long || own.counts.hits > 0 => "zombie",
            () => "unused",
        };
        summary.operations += 1;
        summary.zombies += usize::from(state == "zombie");
        summary.unused += usize::from(state == "unused");
        summary.add_refusals(&own.would_refuse, is_current);
        operations.push(json!({
            "method": operation.method,
            "path": operation.path,
            "operation_id": operation.operation_id,
            "state": state,
            "hits": own.counts.hits,
            "last_seen": time(own.counts.last_seen),
            "statuses": statuses(&own.counts),
            "would_refuse": refusals(&own.would_refuse),
        }));
    }
    let (shadows, probes) = paths(record);
    summary.shadows += shadows.len();
    summary.confirmed_shadows +=
        shadows.iter().filter(|shadow| shadow.get("confirmed") == Some(&Value::Bool(true))).count();
    summary.probes += probes.len();
    summary.add_refusals(&record.outside, is_current);
    let mut drift: Vec<_> = record.drift.iter().filter(|_| is_current).collect();
    drift.sort_by_key(|((operation, finding), seen)| {
        (!finding.sensitive, std::cmp::Reverse(seen.count), operation.as_str())
    });
    summary.drift += drift.len();
    summary.sensitive_drift += drift.iter().filter(|((_, finding), _)| finding.sensitive).count();
    let drift: Vec<Value> = drift
        .into_iter()
        .map(|((operation, finding), seen)| {
            json!({
                "operation": operation,
                "kind": finding.kind.word(),
                "where": finding.place,
                "observed": finding.observed,
                "sensitive": finding.sensitive,
                "count": seen.count,
                "last_seen": time(seen.last_seen),
            })
        })
        .collect();
    let contract = known.contract.map(|(id, name, _)| json!({ "id": id, "name": name }));
    json!({
        "route_id": known.route.id,
        "route_name": known.route.name,
        "contract": contract,
        "mode": known.route.mode,
        "compiles": known.contract.map(|(_, _, read)| read.broken.is_none()),
        "observed_since": time(record.observed_since),
        "operations": operations,
        "shadows": shadows,
        "probes": probes,
        "outside_would_refuse": refusals(&record.outside),
        "drift": drift,
        "auth": known.auth.shown(),
    })
}

/// The paths outside of the contract: those that exist, and the others.
fn paths(record: &RouteRecord) -> (Vec<Value>, Vec<Value>) {
    let mut all: Vec<(&PathKey, &CallCounts)> = record.paths.iter().filter(|(_, counts)| counts.hits > 0).collect();
    all.sort_by_key(|(key, counts)| (std::cmp::Reverse(counts.hits), *key));
    let (mut shadows, mut probes) = (Vec::new(), Vec::new());
    let others = (("*".to_owned(), OTHER_PATHS.to_owned()), record.paths.rest());
    let others = [(&others.0, others.1)].into_iter().filter(|(_, counts)| counts.hits > 0);
    for (key @ (method, path), counts) in all.iter().copied().chain(others) {
        let exists = counts.exists();
        // Refused here or answered with 404: at least half of the calls.
        let absent = counts.not_found.saturating_add(counts.refused).saturating_mul(2) >= counts.hits;
        let state = match () {
            () if exists => "shadow",
            () if absent => "probe",
            () => "unclear",
        };
        let mut shown = json!({
            "method": method,
            "path": path,
            "state": state,
            "hits": counts.hits,
            "last_seen": time(counts.last_seen),
            "statuses": statuses(counts),
        });
        if exists {
            let confirmed = path != OTHER_PATHS && !is_catch_all(key, counts, &all);
            shown.as_object_mut().map(|shown| shown.insert("confirmed".to_owned(), confirmed.into()));
            shadows.push(shown);
        } else {
            probes.push(shown);
        }
    }
    (shadows, probes)
}

/// Whether a path seems to be answered as any path is: all its answers look alike, and those of an unrelated path look the same; or it
/// stands for many names that are all answered the same.
fn is_catch_all((method, path): &PathKey, counts: &CallCounts, all: &[(&PathKey, &CallCounts)]) -> bool {
    let Some(answer) = counts.answer.as_ref().filter(|answer| !answer.varies) else { return false };
    if path.contains(SLUG) && counts.hits > 1 && answer.is_like(answer) {
        return true;
    }
    let unrelated = |other: &str| !is_below(other, path) && !is_below(path, other);
    all.iter().any(|((of, other), counts)| {
        let same = counts.answer.as_ref().is_some_and(|other| !other.varies && answer.is_like(other));
        of == method && same && unrelated(other)
    })
}

/// Whether a path is another one or below it.
fn is_below(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn would_refuse(record: &WouldRefuseRecord) -> Value {
    if record.requests == 0 {
        return Value::Null;
    }
    let samples = record.kinds.values().map(|kind| {
        json!({
            "kind": kind.kind,
            "requests": kind.requests,
            "where": kind.place,
            "detail": kind.detail,
            "last_seen": time(kind.age),
        })
    });
    json!({ "requests": record.requests, "callers": record.callers.number(), "samples": samples.collect::<Vec<_>>() })
}

fn statuses(counts: &CallCounts) -> Value {
    let mut shown = Map::new();
    shown.insert("refused".to_owned(), counts.refused.into());
    for (class, count) in (1..).zip(counts.classes) {
        shown.insert(format!("{class}xx"), count.into());
    }
    Value::Object(shown)
}

/// A time in milliseconds since 1970; null where there is none.
fn time(millis: u64) -> Option<u64> {
    Some(millis).filter(|millis| *millis > 0)
}
