//! [`HistoryStore`] on the embedded file.
//!
//! The document in force is in the table of entities alone. A version has it from the moment on that it is replaced, so that an entity
//! that is written once costs no second copy.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::history::{
    Author, AuthorKind, DeletedEntity, DeletedPage, HISTORY_KEPT_MILLIS, HistoryStore, MAX_ENTITY_HISTORY_BYTES,
    MAX_HISTORY_BYTES, MAX_VERSIONS, Origin, VERSION_BYTES, Version, VersionHead, VersionPage,
};
use super::{EntityChange, Pending, SqliteStore};

/// The columns of a [`VersionHead`].
const HEAD: &str = "v.revision, v.at, v.author_kind, v.author, v.author_name, v.action, v.detail, v.is_deletion";
/// The deletions in a collection whose last document is still there, by the index of what is replaced: they are few beside the
/// versions of the collection.
const DELETED: &str = "FROM entity_version AS v INDEXED BY entity_version_until
    JOIN entity_version AS w ON w.collection = v.collection AND w.id = v.id AND w.is_last = 1 AND w.is_deletion = 0
    WHERE v.is_last = 1 AND v.until_millis IS NOT NULL AND v.is_deletion = 1 AND v.collection = ?1";

impl HistoryStore for SqliteStore {
    fn versions(&self, collection: &str, id: &str, skip: u32, limit: u32) -> Pending<'_, VersionPage> {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        Box::pin(self.read(move |db| {
            let view = db.transaction()?;
            let count = "SELECT count(*) FROM entity_version WHERE collection = ?1 AND id = ?2";
            let total = view.prepare_cached(count)?.query_row([&collection, &id], |row| row.get(0))?;
            let select = format!(
                "SELECT {HEAD} FROM entity_version AS v WHERE collection = ?1 AND id = ?2
                 ORDER BY revision DESC LIMIT ?3 OFFSET ?4"
            );
            let mut select = view.prepare_cached(&select)?;
            let versions = select.query_map(params![collection, id, limit, skip], head)?;
            Ok(VersionPage { total, versions: versions.collect::<rusqlite::Result<_>>()? })
        }))
    }

    fn version(&self, collection: &str, id: &str, number: u64) -> Pending<'_, Option<Version>> {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        let Ok(number) = i64::try_from(number) else { return Box::pin(async { Ok(None) }) };
        Box::pin(self.read(move |db| {
            let select = format!(
                "SELECT {HEAD}, coalesce(v.body, e.body) FROM entity_version AS v LEFT JOIN entity AS e
                 ON e.collection = v.collection AND e.id = v.id AND e.revision = v.revision
                 WHERE v.collection = ?1 AND v.id = ?2 AND v.revision = ?3"
            );
            let version = |row: &Row<'_>| Ok(Version { head: head(row)?, body: row.get(8)? });
            db.prepare_cached(&select)?.query_row(params![collection, id, number], version).optional()
        }))
    }

    fn deleted(&self, collection: &str, skip: u32, limit: u32) -> Pending<'_, DeletedPage> {
        let collection = collection.to_owned();
        Box::pin(self.read(move |db| {
            let view = db.transaction()?;
            let count = format!("SELECT count(*) {DELETED}");
            let total = view.prepare_cached(&count)?.query_row([&collection], |row| row.get(0))?;
            let select =
                format!("SELECT {HEAD}, v.id, w.revision {DELETED} ORDER BY v.revision DESC, v.id LIMIT ?2 OFFSET ?3");
            let mut select = view.prepare_cached(&select)?;
            let entity = |row: &Row<'_>| Ok(DeletedEntity { id: row.get(8)?, deletion: head(row)?, last: row.get(9)? });
            let entities = select.query_map(params![collection, limit, skip], entity)?;
            Ok(DeletedPage { total, entities: entities.collect::<rusqlite::Result<_>>()? })
        }))
    }

    fn history_sweep(&self, now_millis: u64) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| {
            let mut swept = HistoryChange::default();
            swept.expire(db, now_millis)?;
            swept.settle(db)?;
            Ok(swept.removed)
        }))
    }
}

fn head(row: &Row<'_>) -> rusqlite::Result<VersionHead> {
    let kind: String = row.get(2)?;
    let author = Author { kind: AuthorKind::from_text(&kind), id: row.get(3)?, name: row.get(4)? };
    let origin = Origin { at_millis: row.get(1)?, author, action: row.get(5)?, detail: row.get(6)? };
    Ok(VersionHead { number: row.get(0)?, origin, is_deletion: row.get(7)? })
}

/// The documents that a change replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// Their versions have them.
    Kept,
    /// Their versions are removed: there is no room for the documents.
    Dropped,
}

/// What a transaction adds to the history and takes from it.
#[derive(Default)]
pub(super) struct HistoryChange {
    added: u64,
    freed: u64,
    removed: u64,
    now_millis: u64,
}

impl HistoryChange {
    /// Adds the version of a change that is written as `revision` right after this: the document that it replaces is still in the
    /// table of entities.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        change: &EntityChange,
        revision: u64,
        replaced: Replaced,
    ) -> rusqlite::Result<()> {
        let EntityChange { collection, id, expected, body, origin } = change;
        let Origin { at_millis, author, action, detail } = origin;
        self.now_millis = self.now_millis.max(*at_millis);
        let deletes = body.is_none();
        let mut latest = 0;
        if *expected > 0 && replaced == Replaced::Dropped {
            let dropped =
                "DELETE FROM entity_version WHERE collection = ?1 AND id = ?2 AND revision = ?3 RETURNING bytes";
            self.remove(db, dropped, params![collection, id, expected])?;
        } else if *expected > 0 {
            let keep = "UPDATE entity_version AS v
                SET until_millis = ?4, is_last = ?5, body = e.body, bytes = ?6 + octet_length(e.body) FROM entity AS e
                WHERE v.collection = ?1 AND v.id = ?2 AND v.revision = ?3 AND e.collection = ?1 AND e.id = ?2
                RETURNING bytes";
            let kept = db
                .prepare_cached(keep)?
                .query_row(params![collection, id, expected, at_millis, deletes, VERSION_BYTES], |row| row.get(0))
                .optional()?;
            latest = kept.unwrap_or(0);
            self.added += latest;
        } else {
            let undone = "UPDATE entity_version SET is_last = 0 WHERE collection = ?1 AND id = ?2 AND is_last = 1";
            db.prepare_cached(undone)?.execute([collection, id])?;
        }
        let (until, bytes) = if deletes { (Some(at_millis), VERSION_BYTES) } else { (None, 0) };
        self.added += bytes;
        let insert = "INSERT INTO entity_version (collection, id, revision, at, author_kind, author, author_name, action,
            detail, is_deletion, until_millis, is_last, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?10, ?12)";
        db.prepare_cached(insert)?.execute(params![
            collection,
            id,
            revision,
            at_millis,
            author.kind.as_str(),
            author.id,
            author.name,
            action,
            detail,
            deletes,
            until,
            bytes
        ])?;
        self.keep_some(db, collection, id, latest)
    }

    /// Removes the oldest versions of an entity beyond its bounds.
    fn keep_some(&mut self, db: &Connection, collection: &str, id: &str, latest: u64) -> rusqlite::Result<()> {
        // The newest one is in force, or a deletion.
        let fit = MAX_ENTITY_HISTORY_BYTES.checked_div(latest).unwrap_or(u64::MAX).saturating_add(1);
        let kept = fit.clamp(2, u64::from(MAX_VERSIONS));
        let beyond = "SELECT revision FROM entity_version WHERE collection = ?1 AND id = ?2
            ORDER BY revision DESC LIMIT 1 OFFSET ?3";
        let beyond: Option<u64> =
            db.prepare_cached(beyond)?.query_row(params![collection, id, kept], |row| row.get(0)).optional()?;
        let Some(beyond) = beyond else { return Ok(()) };
        let remove = "DELETE FROM entity_version WHERE collection = ?1 AND id = ?2 AND revision <= ?3 RETURNING bytes";
        self.remove(db, remove, params![collection, id, beyond])
    }

    /// Removes what was replaced too long ago.
    fn expire(&mut self, db: &Connection, now_millis: u64) -> rusqlite::Result<()> {
        let Some(until) = now_millis.checked_sub(HISTORY_KEPT_MILLIS) else { return Ok(()) };
        let remove = "DELETE FROM entity_version WHERE is_last IN (0, 1) AND until_millis <= ?1 RETURNING bytes";
        self.remove(db, remove, [until])
    }

    /// Removes versions until all of them are within their bytes, and notes how many bytes those are.
    pub(super) fn settle(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.expire(db, self.now_millis)?;
        let most = most_bytes(db)?;
        self.fit(db, bytes(db)?, most)
    }

    /// Removes versions until no more than `most` bytes are left of those that there were `before`, and notes how many are.
    fn fit(&mut self, db: &Connection, before: u64, most: u64) -> rusqlite::Result<()> {
        let total = |change: &HistoryChange| (before + change.added).saturating_sub(change.freed);
        while total(self) > most {
            let first = "DELETE FROM entity_version WHERE rowid = (SELECT rowid FROM entity_version
                WHERE until_millis IS NOT NULL ORDER BY is_last, until_millis, rowid LIMIT 1) RETURNING bytes";
            let removed = self.removed;
            self.remove(db, first, [])?;
            if self.removed == removed {
                break;
            }
        }
        if total(self) != before {
            let note = "INSERT INTO entity_version_bytes (only, bytes) VALUES (1, ?1)
                ON CONFLICT (only) DO UPDATE SET bytes = ?1";
            db.prepare_cached(note)?.execute([total(self)])?;
        }
        Ok(())
    }

    /// Runs a statement that deletes versions and returns the bytes of each.
    fn remove(&mut self, db: &Connection, delete: &str, of: impl rusqlite::Params) -> rusqlite::Result<()> {
        let mut delete = db.prepare_cached(delete)?;
        let mut removed = delete.query(of)?;
        while let Some(row) = removed.next()? {
            self.freed += row.get::<_, u64>(0)?;
            self.removed += 1;
        }
        Ok(())
    }
}

/// Removes half of the history, the oldest first, for changes that had no room; false if there was nothing to remove, or if all of it
/// would not make room: a document that is too large for the store leaves the history as it is.
pub(super) fn give_way(db: &Connection, changes: &[EntityChange]) -> rusqlite::Result<bool> {
    let (mut change, before) = (HistoryChange::default(), bytes(db)?);
    let (mut old, mut new) = (0, 0);
    for EntityChange { collection, id, body, .. } in changes {
        let length = "SELECT octet_length(body) FROM entity WHERE collection = ?1 AND id = ?2";
        let length = db.prepare_cached(length)?.query_row([collection, id], |row| row.get::<_, usize>(0)).optional()?;
        old += length.unwrap_or(0);
        new += body.as_ref().map_or(0, String::len);
    }
    if u64::try_from(new.saturating_sub(old)).unwrap_or(u64::MAX) > before {
        return Ok(false);
    }
    change.fit(db, before, before / 2)?;
    Ok(change.removed > 0)
}

/// The bytes that the history has.
fn bytes(db: &Connection) -> rusqlite::Result<u64> {
    let select = "SELECT bytes FROM entity_version_bytes";
    Ok(db.prepare_cached(select)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The bytes that the history may have: a quarter of a file whose size is bounded, so that it leaves room for what is in force.
fn most_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
    let file = number("max_page_count")?.saturating_mul(number("page_size")?);
    Ok(MAX_HISTORY_BYTES.min(file / 4))
}
