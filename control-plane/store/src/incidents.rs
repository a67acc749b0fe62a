//! Incidents and what operators made of them, in the embedded store.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::fabric::{IncidentRow, MAX_WORKFLOWS, MergeIncident, Workflow};

pub(super) fn put_workflow(db: &Connection, workflow: &Workflow) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO incident_state (ref_key, state, set_by, at, note) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(insert, params![workflow.key, workflow.state, workflow.by, workflow.at, workflow.note])?;
    let superfluous = "DELETE FROM incident_state WHERE rowid IN (
        SELECT rowid FROM incident_state ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?1)";
    db.execute(superfluous, [MAX_WORKFLOWS]).map(|_| ())
}

pub(super) fn clear_workflows(db: &Connection, cleared: &[(String, u64)]) -> rusqlite::Result<()> {
    for (key, at) in cleared {
        db.prepare_cached("DELETE FROM incident_state WHERE ref_key = ?1 AND at <= ?2")?.execute(params![key, at])?;
    }
    Ok(())
}

pub(super) fn workflows(db: &Connection) -> rusqlite::Result<Vec<Workflow>> {
    let select = "SELECT ref_key, state, set_by, at, note FROM incident_state ORDER BY ref_key";
    db.prepare_cached(select)?
        .query_map([], |row| {
            Ok(Workflow { key: row.get(0)?, state: row.get(1)?, by: row.get(2)?, at: row.get(3)?, note: row.get(4)? })
        })?
        .collect()
}

pub(super) fn sweep_workflows(db: &Connection, until: u64) -> rusqlite::Result<()> {
    db.execute("DELETE FROM incident_state WHERE at <= ?1", [until]).map(|_| ())
}

pub(super) fn merge(
    db: &Connection,
    added: Vec<IncidentRow>,
    merge: &MergeIncident,
    removed: &[(String, u64)],
) -> rusqlite::Result<Vec<IncidentRow>> {
    for (key, seen) in removed {
        let delete = "DELETE FROM incident WHERE ref_key = ?1 AND coalesce(json_extract(json, '$.last_seen'), 0) <= ?2";
        db.prepare_cached(delete)?.execute(params![key, seen])?;
    }
    let mut merged = Vec::with_capacity(added.len());
    for IncidentRow { key, json } in added {
        let kept: Option<String> = db
            .prepare_cached("SELECT json FROM incident WHERE ref_key = ?1")?
            .query_row([&key], |row| row.get(0))
            .optional()?;
        let json = merge(kept.as_deref(), &json);
        let write = "INSERT INTO incident (ref_key, json) VALUES (?1, ?2)
            ON CONFLICT (ref_key) DO UPDATE SET json = excluded.json";
        db.prepare_cached(write)?.execute(params![key, json])?;
        merged.push(IncidentRow { key, json });
    }
    Ok(merged)
}

pub(super) fn of(db: &Connection, keys: &[String]) -> rusqlite::Result<Vec<IncidentRow>> {
    let mut select = db.prepare_cached("SELECT json FROM incident WHERE ref_key = ?1")?;
    let mut found = Vec::new();
    for key in keys {
        let json: Option<String> = select.query_row([key], |row| row.get(0)).optional()?;
        found.extend(json.map(|json| IncidentRow { key: key.clone(), json }));
    }
    Ok(found)
}

pub(super) fn all(db: &Connection) -> rusqlite::Result<Vec<IncidentRow>> {
    db.prepare_cached("SELECT ref_key, json FROM incident ORDER BY ref_key")?
        .query_map([], |row| Ok(IncidentRow { key: row.get(0)?, json: row.get(1)? }))?
        .collect()
}
