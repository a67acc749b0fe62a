//! [`InventoryStore`] on the embedded file.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::inventory::{
    InventoryChange, InventoryRow, InventoryStore, InventoryWorker, KeptInventory, MAX_INVENTORY_ROWS,
};
use super::{Pending, SqliteStore};

impl InventoryStore for SqliteStore {
    fn inventory_write(&self, change: InventoryChange) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| write(db, &change)))
    }

    fn inventory(&self) -> Pending<'_, KeptInventory> {
        Box::pin(self.read(|db| {
            // Both tables as they are at one time.
            let view = db.transaction()?;
            all(&view)
        }))
    }
}

fn write(db: &Connection, change: &InventoryChange) -> rusqlite::Result<u64> {
    for (route, record) in &change.remove {
        db.prepare_cached("DELETE FROM inventory WHERE route = ?1 AND record = ?2")?.execute([route, record])?;
    }
    for (node, worker) in &change.remove_workers {
        let delete = "DELETE FROM inventory_worker WHERE node = ?1 AND worker = ?2";
        db.prepare_cached(delete)?.execute(params![node, worker.cast_signed()])?;
    }
    let mut dropped = 0;
    let mut rows: Option<u32> = None;
    for InventoryRow { route, record, seen_millis, body } in &change.put {
        let update = "UPDATE inventory SET seen_millis = ?3, body = ?4 WHERE route = ?1 AND record = ?2";
        if db.prepare_cached(update)?.execute(params![route, record, seen_millis.cast_signed(), body])? > 0 {
            continue;
        }
        let count = match rows {
            Some(count) => count,
            None => db
                .prepare_cached("SELECT count(*) FROM inventory")?
                .query_row([], |row| row.get(0))
                .optional()?
                .unwrap_or(0),
        };
        if count >= MAX_INVENTORY_ROWS {
            (rows, dropped) = (Some(count), dropped + 1);
            continue;
        }
        rows = Some(count + 1);
        let insert = "INSERT INTO inventory (route, record, seen_millis, body) VALUES (?1, ?2, ?3, ?4)";
        db.prepare_cached(insert)?.execute(params![route, record, seen_millis.cast_signed(), body])?;
    }
    for InventoryWorker { node, worker, sequence, window, seen_millis } in &change.workers {
        let put = "INSERT OR REPLACE INTO inventory_worker (node, worker, sequence, window, seen_millis) VALUES (?1, ?2, ?3, ?4, ?5)";
        let numbers = [worker, sequence, window, seen_millis].map(|number| number.cast_signed());
        db.prepare_cached(put)?.execute(params![node, numbers[0], numbers[1], numbers[2], numbers[3]])?;
    }
    Ok(dropped)
}

fn all(db: &Connection) -> rusqlite::Result<KeptInventory> {
    let number = |row: &rusqlite::Row<'_>, at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let mut select =
        db.prepare_cached("SELECT route, record, seen_millis, body FROM inventory ORDER BY route, record")?;
    let rows = select.query_map([], |row| {
        Ok(InventoryRow { route: row.get(0)?, record: row.get(1)?, seen_millis: number(row, 2)?, body: row.get(3)? })
    })?;
    let rows = rows.collect::<rusqlite::Result<_>>()?;
    let select = "SELECT node, worker, sequence, window, seen_millis FROM inventory_worker ORDER BY node, worker";
    let mut select = db.prepare_cached(select)?;
    let workers = select.query_map([], |row| {
        let (worker, sequence) = (number(row, 1)?, number(row, 2)?);
        let (window, seen_millis) = (number(row, 3)?, number(row, 4)?);
        Ok(InventoryWorker { node: row.get(0)?, worker, sequence, window, seen_millis })
    })?;
    let mut workers: Vec<InventoryWorker> = workers.collect::<rusqlite::Result<_>>()?;
    // Numbers lie there with a sign.
    workers.sort_by(|one, two| (&one.node, one.worker).cmp(&(&two.node, two.worker)));
    Ok(KeptInventory { rows, workers })
}
