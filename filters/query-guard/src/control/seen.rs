//! What gateways report of their endpoints: merged, kept in the store, shown by the console.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::{GatewayReports, Sources};
use prost::Message;
use tokio::time::{MissedTickBehavior, interval};

use crate::{OPERATIONS, OperationSeen, OperationsSeen};

/// The operations that are kept; the one that was not seen for longest gives way.
pub(super) const MAX_OPERATIONS: usize = 10_000;
/// How long an operation is kept that is not seen, in milliseconds: 180 days.
const KEPT: u64 = 180 * 24 * 3_600_000;
/// How often they are kept in the store.
const SWEEP: Duration = Duration::from_secs(60);
/// The document in the store.
const DOCUMENT: &str = "query-guard.operations";
/// The longest text of a report that is taken, in bytes. Gateways are not believed.
const MAX_TEXT: usize = 1024;

/// Route, path of the endpoint, kind, name.
pub(super) type Key = (String, String, String, String);

/// What was seen of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) mismatches: u64,
    /// In milliseconds since 1970.
    pub(super) first: u64,
    /// In milliseconds since 1970.
    pub(super) last: u64,
}

/// The operations.
#[derive(Debug, Default)]
pub(super) struct Seen {
    operations: Mutex<BTreeMap<Key, Counted>>,
}

#[derive(Clone, PartialEq, Message)]
struct Kept {
    #[prost(message, repeated, tag = "1")]
    operations: Vec<KeptOperation>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptOperation {
    #[prost(message, optional, tag = "1")]
    seen: Option<OperationSeen>,
    #[prost(uint64, tag = "2")]
    first: u64,
    #[prost(uint64, tag = "3")]
    last: u64,
}

impl Seen {
    /// The operations as they are now.
    pub(super) fn operations(&self) -> MutexGuard<'_, BTreeMap<Key, Counted>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report.
    pub(super) fn take(&self, report: &[u8], now: u64) {
        let Ok(report) = OperationsSeen::decode(report) else { return };
        let mut operations = self.operations();
        for seen in report.operations {
            if [&seen.route, &seen.path, &seen.kind, &seen.name].iter().any(|text| text.len() > MAX_TEXT) {
                continue;
            }
            let key = (seen.route, seen.path, seen.kind, seen.name);
            if !operations.contains_key(&key) && operations.len() >= MAX_OPERATIONS {
                let oldest = operations.iter().min_by_key(|(_, counted)| counted.last).map(|(key, _)| key.clone());
                oldest.map(|oldest| operations.remove(&oldest));
            }
            let counted = operations.entry(key).or_insert(Counted { count: 0, mismatches: 0, first: now, last: now });
            counted.count = counted.count.saturating_add(seen.count);
            counted.mismatches = counted.mismatches.saturating_add(seen.mismatches);
            counted.last = now;
        }
    }

    fn expire(&self, now: u64) {
        self.operations().retain(|_, counted| counted.last.saturating_add(KEPT) > now);
    }

    /// The document of the store.
    pub(super) fn document(&self) -> Vec<u8> {
        let kept = |((route, path, kind, name), counted): (&Key, &Counted)| KeptOperation {
            seen: Some(OperationSeen {
                route: route.clone(),
                path: path.clone(),
                kind: kind.clone(),
                name: name.clone(),
                count: counted.count,
                mismatches: counted.mismatches,
            }),
            first: counted.first,
            last: counted.last,
        };
        Kept { operations: self.operations().iter().map(kept).collect() }.encode_to_vec()
    }

    /// Takes up a document of the store.
    pub(super) fn restore(&self, document: &[u8]) {
        let Ok(kept) = Kept::decode(document) else { return };
        let mut operations = self.operations();
        for one in kept.operations {
            let Some(seen) = one.seen else { continue };
            let key = (seen.route, seen.path, seen.kind, seen.name);
            let counted = Counted { count: seen.count, mismatches: seen.mismatches, first: one.first, last: one.last };
            operations.insert(key, counted);
        }
    }
}

/// Merges what gateways report for as long as the control plane runs.
pub(super) async fn gather(sources: Sources) {
    let Some(seen) = sources.runtime::<Seen>() else { return };
    // The inventory is no decision: what cannot be read is counted anew.
    match sources.store.document(DOCUMENT).await {
        Ok(document) => seen.restore(&document.unwrap_or_default()),
        Err(error) => sources.trouble(&format!("the inventory of queries could not be read: {error}")),
    }
    let mut entities = sources.entities.clone();
    let mut others = sources.store.elsewhere();
    let mut reports = sources.reports(OPERATIONS);
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unkept = false;
    loop {
        let receiving = async {
            match reports.next().await {
                Some(reports) => reports,
                // Another receiver has taken over, as in tests of the frame.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            GatewayReports { reports, .. } = receiving => {
                for report in &reports {
                    seen.take(report, (sources.clock)());
                }
                unkept = true;
            }
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            // The control plane that leads has counted; the others have nothing of their own.
            Some(changed) = others.next() => {
                if changed.has_documents(DOCUMENT) && !*sources.store.leads().borrow()
                    && let Ok(Some(document)) = sources.store.document(DOCUMENT).await
                {
                    seen.restore(&document);
                }
            }
            _ = sweep.tick() => {
                seen.expire((sources.clock)());
                if std::mem::take(&mut unkept)
                    && let Err(error) = sources.store.document_put(DOCUMENT, seen.document()).await
                {
                    unkept = true;
                    sources.trouble(&format!("the inventory of queries could not be kept: {error}"));
                }
            }
        }
    }
}
