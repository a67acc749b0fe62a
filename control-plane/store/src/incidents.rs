//! Incidents and what operators made of them, in the embedded store.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::fabric::{IncidentRow, MAX_WORKFLOWS, MergeIncident, Workflow};

pub(super) fn put_workflow(db: &Connection, workflow: &Workflow) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO incident_state (ref_key, state, set_by, at, note) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(insert, params![workflow.key, workflow.state, workflow.by, workflow.at, workflow.note])?;
    // Counted first: to sort all of them takes much longer.
    let count: u32 = db.prepare_cached("SELECT count(*) FROM incident_state")?.query_row([], |row| row.get(0))?;
    if count <= MAX_WORKFLOWS {
        return Ok(());
    }
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

pub(super) fn page(db: &Connection, after: &str, limit: u32) -> rusqlite::Result<Vec<IncidentRow>> {
    db.prepare_cached("SELECT ref_key, json FROM incident WHERE ref_key > ?1 ORDER BY ref_key LIMIT ?2")?
        .query_map(params![after, limit], |row| Ok(IncidentRow { key: row.get(0)?, json: row.get(1)? }))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_states_those_set_first_are_forgotten() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut db).unwrap();
        let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO incident_state (ref_key, state, set_by, at, note) SELECT 'user:' || i, 'resolved', 'a', i, '' FROM n";
        db.execute(fill, [MAX_WORKFLOWS - 1]).unwrap();
        let set = |key: &str, at| {
            put_workflow(&db, &Workflow { key: key.into(), state: "resolved".into(), at, ..Workflow::default() })
                .unwrap();
            let kept = workflows(&db).unwrap();
            (kept.len(), kept.iter().any(|workflow| workflow.key == "user:1"))
        };
        let most = usize::try_from(MAX_WORKFLOWS).unwrap();
        assert_eq!(set("user:ada", 1 << 30), (most, true));
        assert_eq!(set("user:bob", 1 << 30), (most, false));
    }
}
