//! Reports of plugins on their way to the control plane.

use std::cell::RefCell;

use exchange::{Metric, ReportQueues};
use snapshot::ReportBatch;

use crate::proxy_host;

thread_local! {
    static QUEUES: RefCell<ReportQueues> = RefCell::default();
}

/// Queues a report.
pub(crate) fn queue(kind: &'static str, data: Vec<u8>) {
    let dropped = QUEUES.with_borrow_mut(|queues| queues.push(kind, data));
    if dropped > 0 {
        proxy_host::count(Metric::ReportsDropped, dropped);
    }
}

/// Whether something waits.
pub(crate) fn wait() -> bool {
    QUEUES.with_borrow(|queues| !queues.is_empty())
}

/// The next reports of each kind.
pub(crate) fn take() -> Vec<ReportBatch> {
    QUEUES.with_borrow_mut(ReportQueues::take)
}

/// Takes back what could not be sent.
pub(crate) fn put_back(batches: Vec<ReportBatch>) {
    QUEUES.with_borrow_mut(|queues| queues.put_back(batches));
}
