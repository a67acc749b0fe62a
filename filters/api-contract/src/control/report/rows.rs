//! How the inventory lies in the store: a record of each operation, and one of each route's paths and findings.

use prost::Message;

use super::compare::{DriftKind, Finding};
use super::state::{Drift, OperationRecord, RouteRecord, WouldRefuseRecord};
use crate::inventory::counts::{CallCounts, Callers, MAX_COUNT};
use crate::inventory::messages::{Counted, PathCount, WouldRefuse};

/// The name of the record of a route.
pub(super) const ROUTE: &str = "route";
/// What the name of an operation's record begins with.
pub(super) const OPERATION: &str = "operation ";

/// A route but for its operations.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RouteRow {
    /// Since when it is observed, in milliseconds since 1970.
    #[prost(uint64, tag = "1")]
    observed_since: u64,
    #[prost(message, repeated, tag = "2")]
    paths: Vec<PathCount>,
    #[prost(message, optional, tag = "3")]
    others: Option<Counted>,
    #[prost(message, repeated, tag = "4")]
    folds: Vec<FoldRow>,
    #[prost(message, optional, tag = "5")]
    outside: Option<WouldRefuse>,
    #[prost(message, repeated, tag = "6")]
    drift: Vec<DriftRow>,
    /// The version of the contract.
    #[prost(string, tag = "7")]
    contract: String,
}

#[derive(Clone, PartialEq, Message)]
struct FoldRow {
    #[prost(string, tag = "1")]
    prefix: String,
    #[prost(bool, tag = "2")]
    any: bool,
}

#[derive(Clone, PartialEq, Message)]
struct DriftRow {
    #[prost(string, tag = "1")]
    operation: String,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(string, tag = "3")]
    place: String,
    #[prost(string, tag = "4")]
    observed: String,
    #[prost(bool, tag = "5")]
    sensitive: bool,
    #[prost(uint64, tag = "6")]
    count: u64,
    #[prost(uint64, tag = "7")]
    last_seen: u64,
}

/// An operation.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OperationRow {
    #[prost(message, optional, tag = "1")]
    counted: Option<Counted>,
    #[prost(message, optional, tag = "2")]
    would_refuse: Option<WouldRefuse>,
}

/// Times are stored as they are: an age at the end of all time.
const END: u64 = u64::MAX;

fn stored(counts: &CallCounts) -> Counted {
    Counted { age: counts.last_seen, ..counts.message(0) }
}

fn read(counted: Counted) -> CallCounts {
    let at = counted.age;
    CallCounts { last_seen: at, ..CallCounts::of_message(Counted { age: 0, ..counted }, END) }
}

impl OperationRow {
    pub(super) fn of(record: &OperationRecord) -> Self {
        Self { counted: Some(stored(&record.counts)), would_refuse: Some(record.would_refuse.message()) }
    }

    pub(super) fn record(self) -> OperationRecord {
        OperationRecord {
            counts: self.counted.map(read).unwrap_or_default(),
            would_refuse: self.would_refuse.map(WouldRefuseRecord::of_message).unwrap_or_default(),
            dirty: false,
        }
    }
}

impl RouteRow {
    pub(super) fn of(record: &RouteRecord) -> Self {
        let path = |((method, path), counts): (&(String, String), &CallCounts)| PathCount {
            method: method.clone(),
            path: path.clone(),
            counted: Some(stored(counts)),
        };
        let drift = record.drift.iter().map(|((operation, finding), seen)| DriftRow {
            operation: operation.clone(),
            kind: finding.kind.word().to_owned(),
            place: finding.place.clone(),
            observed: finding.observed.clone(),
            sensitive: finding.sensitive,
            count: seen.count,
            last_seen: seen.last_seen,
        });
        Self {
            observed_since: record.observed_since,
            paths: record.paths.iter().map(path).collect(),
            others: Some(stored(record.paths.rest())),
            folds: record.paths.folds().map(|(prefix, any)| FoldRow { prefix: prefix.to_owned(), any }).collect(),
            outside: Some(record.outside.message()),
            drift: drift.collect(),
            contract: record.contract.clone(),
        }
    }

    pub(super) fn record(self) -> RouteRecord {
        let mut record = RouteRecord {
            observed_since: self.observed_since,
            outside: self.outside.map(WouldRefuseRecord::of_message).unwrap_or_default(),
            contract: self.contract,
            ..RouteRecord::default()
        };
        self.folds.into_iter().for_each(|fold| record.paths.restore_fold(fold.prefix, fold.any));
        for PathCount { method, path, counted } in self.paths {
            record.paths.restore(&method, &path, counted.map(read).unwrap_or_default());
        }
        if let Some(others) = self.others {
            record.paths.other().add(&read(others));
        }
        for row in self.drift {
            let Some(kind) = DriftKind::ALL.into_iter().find(|kind| kind.word() == row.kind) else { continue };
            let finding = Finding { kind, place: row.place, observed: row.observed, sensitive: row.sensitive };
            let seen = Drift { count: row.count.min(MAX_COUNT), last_seen: row.last_seen };
            record.drift.insert((row.operation, finding), seen);
        }
        record
    }
}

impl WouldRefuseRecord {
    fn message(&self) -> WouldRefuse {
        let kinds = self.kinds.values().cloned().collect();
        WouldRefuse { requests: self.requests, callers: self.callers.hashes().to_vec(), kinds }
    }

    fn of_message(message: WouldRefuse) -> Self {
        let mut callers = Callers::default();
        message.callers.into_iter().for_each(|hash| _ = callers.insert(hash));
        let kinds = message.kinds.into_iter().map(|kind| (kind.kind.clone(), kind)).collect();
        Self { requests: message.requests, callers, kinds }
    }
}
