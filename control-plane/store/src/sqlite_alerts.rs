//! [`AlertStore`] on the embedded file.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::alerts::{
    AlertNotes, AlertStore, Burst, CLOCK_SKEW, Claim, Forgotten, JUST_TOLD, MAX_BURST_PARTS, MAX_TOLD, MAX_WAITING,
    Told, WaitingAlert,
};
use super::{Pending, SqliteStore};

/// The documents of bursts begin so; the rule follows.
const BURST: &str = "alerts/burst/";

impl AlertStore for SqliteStore {
    fn alerts_note(&self, noted: AlertNotes) -> Pending<'_, Vec<Option<u64>>> {
        Box::pin(self.write(move |db| note(db, &noted)))
    }

    fn alerts_keep(&self, waiting: Vec<WaitingAlert>) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| {
            for WaitingAlert { id, at, json } in &waiting {
                db.prepare_cached("UPDATE alert_waiting SET at = ?2, json = ?3 WHERE id = ?1")?
                    .execute(params![id, at, json])?;
            }
            Ok(())
        }))
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
        Box::pin(self.write(move |db| {
            db.execute("DELETE FROM alert_told WHERE at <= ?1", [until])?;
            let select = "SELECT name FROM document WHERE substr(name, 1, length(?1)) = ?1";
            let names: Vec<String> =
                db.prepare(select)?.query_map([BURST], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            for name in names {
                if kept(db, &name)?.parts.last_key_value().is_none_or(|(last, _)| *last <= until) {
                    db.execute("DELETE FROM document WHERE name = ?1", [name])?;
                }
            }
            Ok(())
        }))
    }

    fn alerts_burst(&self, burst: Burst) -> Pending<'_, Vec<(u64, u64)>> {
        Box::pin(self.write(move |db| count(db, burst)))
    }
}

fn note(db: &Connection, noted: &AlertNotes) -> rusqlite::Result<Vec<Option<u64>>> {
    for Forgotten { rule, subject, at } in &noted.forgotten {
        db.prepare_cached("DELETE FROM alert_told WHERE rule = ?1 AND subject = ?2 AND at <= ?3")?.execute(params![
            rule,
            subject,
            at.saturating_sub(JUST_TOLD)
        ])?;
    }
    let mut outcomes = Vec::with_capacity(noted.claims.len());
    for Claim { told: Told { rule, subject, at }, cooldown, message } in &noted.claims {
        let before: Option<u64> = db
            .prepare_cached("SELECT at FROM alert_told WHERE rule = ?1 AND subject = ?2")?
            .query_row([rule, subject], |row| row.get(0))
            .optional()?;
        // A clock that was set back does not hold messages up, one that is a little behind another does not repeat them.
        let holds = |before: &u64| match at.checked_sub(*before) {
            Some(since) => since < *cooldown,
            None => before - at <= CLOCK_SKEW && *cooldown > 0,
        };
        if let Some(before) = before.filter(holds) {
            outcomes.push(Some(before));
            continue;
        }
        db.prepare_cached("INSERT OR REPLACE INTO alert_told (rule, subject, at) VALUES (?1, ?2, ?3)")?
            .execute(params![rule, subject, at])?;
        db.prepare_cached("INSERT OR REPLACE INTO alert_waiting (id, at, json) VALUES (?1, ?2, ?3)")?
            .execute(params![message.id, message.at, message.json])?;
        outcomes.push(None);
    }
    let told = "DELETE FROM alert_told WHERE (rule, subject) IN (
        SELECT rule, subject FROM alert_told ORDER BY at DESC, rule DESC, subject DESC LIMIT -1 OFFSET ?1)";
    db.prepare_cached(told)?.execute([MAX_TOLD])?;
    let waiting = "DELETE FROM alert_waiting WHERE id IN (
        SELECT id FROM alert_waiting ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?1)";
    db.prepare_cached(waiting)?.execute([MAX_WAITING])?;
    Ok(outcomes)
}

/// A burst as it is kept.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    window: u64,
    /// When each part begins, and its events.
    parts: BTreeMap<u64, u64>,
}

fn kept(db: &Connection, name: &str) -> rusqlite::Result<Kept> {
    let body: Option<Vec<u8>> = db
        .prepare_cached("SELECT body FROM document WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    // One of another release begins anew.
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default())
}

fn count(db: &Connection, burst: Burst) -> rusqlite::Result<Vec<(u64, u64)>> {
    let Burst { rule, window, added, since } = burst;
    let name = format!("{BURST}{rule}");
    let mut kept = kept(db, &name)?;
    if kept.window != window {
        kept = Kept { window, ..Kept::default() };
    }
    let changes = !added.is_empty();
    for (begin, events) in added {
        let part = kept.parts.entry(begin).or_default();
        *part = part.saturating_add(events);
    }
    kept.parts = kept.parts.split_off(&since);
    while kept.parts.len() > MAX_BURST_PARTS {
        kept.parts.pop_first();
    }
    if changes && let Ok(body) = serde_json::to_vec(&kept) {
        db.prepare_cached("INSERT OR REPLACE INTO document (name, body) VALUES (?1, ?2)")?
            .execute(params![name, body])?;
    }
    Ok(kept.parts.into_iter().collect())
}
