//! What the endpoints are asked for, counted until the next report.

use std::cell::RefCell;
use std::collections::BTreeMap;

use exchange::Host;
use prost::Message as _;

use crate::messages::{OPERATIONS, OperationSeen, OperationsSeen};

/// The operations that a worker counts between two reports; those beyond count together.
const MAX_OPERATIONS: usize = 500;
/// About how many bytes one report has: a longer one than [`exchange::MAX_REPORT`] would be dropped as a whole, and a path alone has up to
/// some thousand bytes.
const REPORT_BYTES: usize = 48 * 1024;
/// The operations of one report.
const PER_REPORT: usize = 200;
/// The name that operations beyond have.
const OTHERS: &str = "(others)";

/// Route, path of the endpoint, kind, name.
type Key = (String, String, &'static str, String);

/// Counts of a worker.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    counts: RefCell<BTreeMap<Key, (u64, u64)>>,
}

impl Inventory {
    /// Counts a request.
    pub(crate) fn count(&self, route: &str, path: &str, (kind, name): (&'static str, &str), mismatched: bool) {
        let mut counts = self.counts.borrow_mut();
        let mut key = (route.to_owned(), path.to_owned(), kind, name.to_owned());
        if !counts.contains_key(&key) && counts.len() >= MAX_OPERATIONS {
            key.3 = OTHERS.to_owned();
        }
        let (count, mismatches) = counts.entry(key).or_default();
        *count = count.saturating_add(1);
        *mismatches = mismatches.saturating_add(u64::from(mismatched));
    }

    /// Sends what was counted, and begins anew.
    pub(crate) fn send(&self, host: &dyn Host) {
        let counts = self.counts.take();
        let operations = counts.into_iter().map(|((route, path, kind, name), (count, mismatches))| OperationSeen {
            route,
            path,
            kind: kind.to_owned(),
            name,
            count,
            mismatches,
        });
        let mut report = OperationsSeen::default();
        let mut bytes = 0_usize;
        for operation in operations {
            // Its length and its tag in the report.
            let more = operation.encoded_len().saturating_add(8);
            let is_full = report.operations.len() >= PER_REPORT || bytes.saturating_add(more) > REPORT_BYTES;
            if is_full && !report.operations.is_empty() {
                host.send_report(OPERATIONS, std::mem::take(&mut report).encode_to_vec());
                bytes = 0;
            }
            bytes = bytes.saturating_add(more);
            report.operations.push(operation);
        }
        if !report.operations.is_empty() {
            host.send_report(OPERATIONS, report.encode_to_vec());
        }
    }
}
