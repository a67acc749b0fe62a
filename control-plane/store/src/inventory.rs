//! What gateways have counted of the APIs behind them, so that a control plane knows it for months.

use super::Pending;

/// The most records that are kept; further ones are dropped.
pub const MAX_INVENTORY_ROWS: u32 = 500_000;

/// The part of a [`Store`](super::Store) that the API report needs. What was answered with `Ok` is durable, and each call is one
/// transaction.
pub trait InventoryStore: Send + Sync + 'static {
    /// Makes all of a change, or nothing. How many records were not kept, because there are [`MAX_INVENTORY_ROWS`].
    fn inventory_write(&self, change: InventoryChange) -> Pending<'_, u64>;

    /// All that is kept.
    fn inventory(&self) -> Pending<'_, KeptInventory>;
}

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryChange {
    /// Records that are new or other ones now.
    pub put: Vec<InventoryRow>,
    /// Records that are gone: routes and names.
    pub remove: Vec<(String, String)>,
    /// Workers with the reports of theirs that are counted in `put`.
    pub workers: Vec<InventoryWorker>,
    /// Workers that are forgotten: nodes and numbers.
    pub remove_workers: Vec<(String, u64)>,
}

/// Everything at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptInventory {
    /// The records, by route and name.
    pub rows: Vec<InventoryRow>,
    /// The workers, by node and number.
    pub workers: Vec<InventoryWorker>,
}

/// A record of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryRow {
    /// The id of the route.
    pub route: String,
    /// The name of the record, unique in its route.
    pub record: String,
    /// When it was last counted in, in milliseconds since 1970.
    pub seen_millis: u64,
    /// What was counted, in the encoding of its owner.
    pub body: Vec<u8>,
}

/// Which reports of a worker were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryWorker {
    /// The node.
    pub node: String,
    /// The number of the worker.
    pub worker: u64,
    /// The highest number of a report.
    pub sequence: u64,
    /// Which of the 64 up to that one were counted; the lowest bit is the highest number.
    pub window: u64,
    /// When it reported last, in milliseconds since 1970.
    pub seen_millis: u64,
}
