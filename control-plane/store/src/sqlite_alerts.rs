//! [`AlertStore`] on the embedded file.

use rusqlite::{Connection, params};

use super::alerts::{AlertNotes, AlertStore, MAX_TOLD, MAX_WAITING, Told, WaitingAlert};
use super::{Pending, SqliteStore};

impl AlertStore for SqliteStore {
    fn alerts_note(&self, noted: AlertNotes) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| note(db, &noted)))
    }

    fn alerts_settle(&self, ids: Vec<String>) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| {
            for id in &ids {
                db.prepare_cached("DELETE FROM alert_waiting WHERE id = ?1")?.execute([id])?;
            }
            Ok(())
        }))
    }

    fn alerts_told(&self) -> Pending<'_, Vec<Told>> {
        Box::pin(self.read(|db| {
            db.prepare_cached("SELECT rule, subject, at FROM alert_told ORDER BY at, rule, subject")?
                .query_map([], |row| Ok(Told { rule: row.get(0)?, subject: row.get(1)?, at: row.get(2)? }))?
                .collect()
        }))
    }

    fn alerts_waiting(&self) -> Pending<'_, Vec<WaitingAlert>> {
        Box::pin(self.read(|db| {
            db.prepare_cached("SELECT id, at, json FROM alert_waiting ORDER BY at, id")?
                .query_map([], |row| Ok(WaitingAlert { id: row.get(0)?, at: row.get(1)?, json: row.get(2)? }))?
                .collect()
        }))
    }

    fn alerts_sweep(&self, until: u64) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| db.execute("DELETE FROM alert_told WHERE at <= ?1", [until]).map(|_| ())))
    }
}

fn note(db: &Connection, noted: &AlertNotes) -> rusqlite::Result<()> {
    for (rule, subject) in &noted.forgotten {
        db.prepare_cached("DELETE FROM alert_told WHERE rule = ?1 AND subject = ?2")?.execute([rule, subject])?;
    }
    for Told { rule, subject, at } in &noted.told {
        db.prepare_cached("INSERT OR REPLACE INTO alert_told (rule, subject, at) VALUES (?1, ?2, ?3)")?
            .execute(params![rule, subject, at])?;
    }
    for WaitingAlert { id, at, json } in &noted.waiting {
        db.prepare_cached("INSERT OR REPLACE INTO alert_waiting (id, at, json) VALUES (?1, ?2, ?3)")?
            .execute(params![id, at, json])?;
    }
    let told = "DELETE FROM alert_told WHERE (rule, subject) IN (
        SELECT rule, subject FROM alert_told ORDER BY at DESC, rule DESC, subject DESC LIMIT -1 OFFSET ?1)";
    db.prepare_cached(told)?.execute([MAX_TOLD])?;
    let waiting = "DELETE FROM alert_waiting WHERE id IN (
        SELECT id FROM alert_waiting ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?1)";
    db.prepare_cached(waiting)?.execute([MAX_WAITING]).map(|_| ())
}
