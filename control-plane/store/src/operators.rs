//! Operators of the console and their sessions, in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use accounts::{Operator, Session};

/// Adds an operator; false when the name is taken.
pub(super) fn add(db: &Connection, operator: &Operator) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO operator (name, email, password_hash, created_at, changed_at)
                  VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING";
    let added = db.execute(
        insert,
        params![
            operator.name,
            operator.email,
            operator.password_hash,
            operator.created_at_millis,
            operator.changed_at_millis
        ],
    )?;
    Ok(added > 0)
}

/// The operator of this name.
pub(super) fn find(db: &Connection, name: &str) -> rusqlite::Result<Option<Operator>> {
    db.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?.query_row([name], |row| operator(row, 0)).optional()
}

/// All operators by name.
pub(super) fn all(db: &Connection) -> rusqlite::Result<Vec<Operator>> {
    db.prepare_cached(&format!("{SELECT} ORDER BY name"))?.query_map([], |row| operator(row, 0))?.collect()
}

/// Removes an operator and ends their sessions; false when there is none of this name.
pub(super) fn remove(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    end_sessions(db, name)?;
    Ok(db.execute("DELETE FROM operator WHERE name = ?1", [name])? > 0)
}

/// Gives an operator another password and ends their sessions; false when there is none of this name.
pub(super) fn set_password(db: &Connection, name: &str, hash: &str, now_millis: u64) -> rusqlite::Result<bool> {
    end_sessions(db, name)?;
    let update = "UPDATE operator SET password_hash = ?2, changed_at = ?3 WHERE name = ?1";
    Ok(db.execute(update, params![name, hash, now_millis])? > 0)
}

/// Begins a session, if the operator is still there and still has the password that was checked. Ends the operator's
/// oldest sessions where there are `limit` already.
pub(super) fn begin(db: &Connection, session: &Session, password_hash: &str, limit: u32) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO console_session (token_sha256, operator, created_at, seen_at)
                  SELECT ?1, name, ?3, ?4 FROM operator WHERE name = ?2 AND password_hash = ?5";
    let begun = db.execute(
        insert,
        params![
            session.token_sha256,
            session.operator,
            session.created_at_millis,
            session.seen_at_millis,
            password_hash
        ],
    )?;
    let superfluous = "DELETE FROM console_session WHERE rowid IN (
        SELECT rowid FROM console_session WHERE operator = ?1 ORDER BY seen_at DESC, rowid DESC LIMIT -1 OFFSET ?2)";
    db.execute(superfluous, params![session.operator, limit])?;
    Ok(begun > 0)
}

/// The session of a token, and whose it is.
pub(super) fn session(db: &Connection, token_sha256: &[u8; 32]) -> rusqlite::Result<Option<(Session, Operator)>> {
    let select = "SELECT token_sha256, operator, s.created_at, seen_at,
                  o.name, o.email, o.password_hash, o.created_at, o.changed_at
                  FROM console_session s JOIN operator o ON o.name = s.operator WHERE token_sha256 = ?1";
    let read = |row: &Row<'_>| {
        let session = Session {
            token_sha256: row.get(0)?,
            operator: row.get(1)?,
            created_at_millis: row.get(2)?,
            seen_at_millis: row.get(3)?,
        };
        Ok((session, operator(row, 4)?))
    };
    db.prepare_cached(select)?.query_row([token_sha256], read).optional()
}

/// Notes that a session was used.
pub(super) fn touch(db: &Connection, token_sha256: &[u8; 32], now_millis: u64) -> rusqlite::Result<()> {
    let update = "UPDATE console_session SET seen_at = max(seen_at, ?2) WHERE token_sha256 = ?1";
    db.execute(update, params![token_sha256, now_millis]).map(|_| ())
}

/// Ends a session; false when there is none.
pub(super) fn end(db: &Connection, token_sha256: &[u8; 32]) -> rusqlite::Result<bool> {
    Ok(db.execute("DELETE FROM console_session WHERE token_sha256 = ?1", [token_sha256])? > 0)
}

/// Forgets the sessions that were last used, or begun, at these times or before.
pub(super) fn sweep(db: &Connection, seen_until: u64, created_until: u64) -> rusqlite::Result<u64> {
    let delete = "DELETE FROM console_session WHERE seen_at <= ?1 OR created_at <= ?2";
    let removed = db.execute(delete, [seen_until, created_until])?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}

const SELECT: &str = "SELECT name, email, password_hash, created_at, changed_at FROM operator";

fn end_sessions(db: &Connection, name: &str) -> rusqlite::Result<()> {
    db.execute("DELETE FROM console_session WHERE operator = ?1", [name]).map(|_| ())
}

/// Reads an operator from the columns of [`SELECT`], beginning with column `from`.
fn operator(row: &Row<'_>, from: usize) -> rusqlite::Result<Operator> {
    Ok(Operator {
        name: row.get(from)?,
        email: row.get(from + 1)?,
        password_hash: row.get(from + 2)?,
        created_at_millis: row.get(from + 3)?,
        changed_at_millis: row.get(from + 4)?,
    })
}
