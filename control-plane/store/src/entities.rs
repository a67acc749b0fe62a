//! The entities in the embedded store.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::sqlite_history::{HistoryChange, Replaced};
use super::writer::Changed;
use super::{EntityChange, EntityRow, EntityRows, StoreError};

/// All entities, in one consistent view.
pub(super) fn all(db: &mut Connection) -> rusqlite::Result<EntityRows> {
    let transaction = db.transaction()?;
    let revision = revision(&transaction)?;
    let mut statement =
        transaction.prepare_cached("SELECT collection, id, revision, body FROM entity ORDER BY collection, id")?;
    let rows = statement.query_map([], |row| {
        Ok(EntityRow { collection: row.get(0)?, id: row.get(1)?, revision: row.get(2)?, body: row.get(3)? })
    })?;
    Ok(EntityRows { revision, rows: rows.collect::<rusqlite::Result<_>>()? })
}

/// The global revision.
pub(super) fn revision(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT value FROM revision")?.query_row([], |row| row.get(0))
}

/// Makes all changes under one new revision. Everything is checked before anything is written: a conflict must not undo
/// the writes of others that share the transaction.
pub(super) fn write(
    db: &Connection,
    changes: &[EntityChange],
    judged_at: Option<u64>,
    replaced: Replaced,
) -> rusqlite::Result<(Result<u64, StoreError>, Changed)> {
    let before = revision(db)?;
    if judged_at.is_some_and(|judged_at| judged_at != before) {
        return Ok((Err(StoreError::Moved { revision: before }), Changed::default()));
    }
    let mut seen = BTreeSet::new();
    for (index, change) in changes.iter().enumerate() {
        let current = at(db, change)?;
        if current != change.expected || !seen.insert((&change.collection, &change.id)) {
            return Ok((Err(StoreError::BatchConflict { index, current }), Changed::default()));
        }
    }
    if changes.is_empty() {
        return Ok((Ok(before), Changed::default()));
    }
    let next = before + 1;
    let mut history = HistoryChange::default();
    for change in changes {
        history.add(db, change, next, replaced)?;
        let EntityChange { collection, id, body, .. } = change;
        match body {
            Some(body) => db
                .prepare_cached(
                    "INSERT INTO entity (collection, id, revision, body) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (collection, id) DO UPDATE SET revision = ?3, body = ?4",
                )?
                .execute(params![collection, id, next, body])?,
            None => {
                db.prepare_cached("DELETE FROM entity WHERE collection = ?1 AND id = ?2")?.execute([collection, id])?
            }
        };
    }
    history.settle(db)?;
    db.prepare_cached("UPDATE revision SET value = ?1")?.execute([next])?;
    Ok((Ok(next), Changed { revision: Some(next), ..Changed::default() }))
}

/// The revision of the entity that a change is about; 0 where there is none.
fn at(db: &Connection, change: &EntityChange) -> rusqlite::Result<u64> {
    let found: Option<u64> = db
        .prepare_cached("SELECT revision FROM entity WHERE collection = ?1 AND id = ?2")?
        .query_row([&change.collection, &change.id], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(0))
}
