//! What is kept of the APIs behind gateways.

use std::sync::Arc;

use store::Store;
use store::inventory::{InventoryChange, InventoryRow, InventoryWorker, KeptInventory};

fn row(route: &str, record: &str, body: &[u8]) -> InventoryRow {
    InventoryRow { route: route.into(), record: record.into(), seen_millis: 7, body: body.to_vec() }
}

fn worker(node: &str, worker: u64, sequence: u64) -> InventoryWorker {
    InventoryWorker { node: node.into(), worker, sequence, window: u64::MAX, seen_millis: 9 }
}

pub(crate) async fn the_inventory_comes_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    assert_eq!(store.inventory().await, Ok(KeptInventory::default()));
    let first = InventoryChange {
        put: vec![row("b", "route", b"1"), row("a", "operation GET /x y", b"\x00\xff"), row("a", "route", b"")],
        workers: vec![worker("n2", 1, u64::MAX), worker("n1", u64::MAX, 3), worker("n1", 5, 1)],
        ..InventoryChange::default()
    };
    assert_eq!(store.inventory_write(first).await, Ok(0));
    let second = InventoryChange {
        put: vec![row("b", "route", b"2")],
        remove: vec![("a".into(), "route".into()), ("none".into(), "route".into())],
        workers: vec![worker("n1", 5, 2)],
        remove_workers: vec![("n2".into(), 1), ("n3".into(), 1)],
    };
    assert_eq!(store.inventory_write(second).await, Ok(0));
    let expected = KeptInventory {
        rows: vec![row("a", "operation GET /x y", b"\x00\xff"), row("b", "route", b"2")],
        workers: vec![worker("n1", 5, 2), worker("n1", u64::MAX, 3)],
    };
    assert_eq!(store.inventory().await.as_ref(), Ok(&expected));
    let store = reopened(store).await;
    assert_eq!(store.inventory().await, Ok(expected));
}
