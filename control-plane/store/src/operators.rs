//! Operators of the console and their sessions, in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{sqlite_identities, sqlite_passkeys, sqlite_sign_in};
use accounts::{Operator, Role, Session, SessionOrigin, Via};

/// Adds an operator; false when the name is taken.
pub(super) fn add(db: &Connection, operator: &Operator) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO operator (name, email, password_hash, created_at, changed_at, role)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO NOTHING";
    let added = db.execute(
        insert,
        params![
            operator.name,
            operator.email,
            operator.password_hash,
            operator.created_at_millis,
            operator.changed_at_millis,
            operator.role.as_str()
        ],
    )?;
    Ok(added > 0)
}

/// The operator of this name.
pub(super) fn find(db: &Connection, name: &str) -> rusqlite::Result<Option<Operator>> {
    db.prepare_cached(&format!("SELECT {OPERATOR} FROM operator AS o WHERE o.name = ?1"))?
        .query_row([name], |row| operator(row, 0))
        .optional()
}

/// All operators by name.
pub(super) fn all(db: &Connection) -> rusqlite::Result<Vec<Operator>> {
    db.prepare_cached(&format!("SELECT {OPERATOR} FROM operator AS o ORDER BY o.name"))?
        .query_map([], |row| operator(row, 0))?
        .collect()
}

/// Whether there is an operator of this name whose admin role, if it is theirs, others have as well.
pub(super) fn is_spare(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let select = "SELECT role <> 'admin' OR EXISTS (SELECT 1 FROM operator WHERE role = 'admin' AND name <> ?1)
        FROM operator WHERE name = ?1";
    Ok(db.query_row(select, [name], |row| row.get(0)).optional()?.unwrap_or(false))
}

/// Gives an operator another role and ends their sessions; false when there is none of this name, or one who has it.
pub(super) fn set_role(db: &Connection, name: &str, role: Role) -> rusqlite::Result<bool> {
    let update = "UPDATE operator SET role = ?2 WHERE name = ?1 AND role <> ?2";
    let changed = db.execute(update, params![name, role.as_str()])? > 0;
    if changed {
        end_sessions(db, name, None)?;
    }
    Ok(changed)
}

/// Removes an operator with what belongs to them; false when there is none of this name.
pub(super) fn remove(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    end_sessions(db, name, None)?;
    sqlite_sign_in::remove_factor(db, name)?;
    sqlite_identities::unlink(db, name)?;
    sqlite_passkeys::remove(db, name, None)?;
    Ok(db.execute("DELETE FROM operator WHERE name = ?1", [name])? > 0)
}

/// Gives an operator another password and ends their sessions; false when there is none of this name.
pub(super) fn set_password(db: &Connection, name: &str, hash: &str, now_millis: u64) -> rusqlite::Result<bool> {
    end_sessions(db, name, None)?;
    let update = "UPDATE operator SET password_hash = ?2, changed_at = ?3 WHERE name = ?1";
    Ok(db.execute(update, params![name, hash, now_millis])? > 0)
}

/// Begins a session, if the operator is still there, still has the password that was checked, and has no second factor or it
/// was checked. Ends the operator's oldest sessions where there are `limit` already.
pub(super) fn begin(
    db: &Connection,
    session: &Session,
    password_hash: &str,
    with_code: bool,
    limit: u32,
) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO console_session (token_sha256, operator, created_at, seen_at, address, agent, via)
                  SELECT ?1, name, ?3, ?4, ?7, ?8, ?9 FROM operator WHERE name = ?2 AND password_hash = ?5 AND (?6 OR NOT EXISTS (
                      SELECT 1 FROM second_factor WHERE operator = ?2 AND confirmed_at IS NOT NULL
                      UNION ALL SELECT 1 FROM passkey WHERE operator = ?2))";
    let origin = &session.origin;
    let begun = db.execute(
        insert,
        params![
            session.token_sha256,
            session.operator,
            session.created_at_millis,
            session.seen_at_millis,
            password_hash,
            with_code,
            origin.address.map(|address| address.to_string()).unwrap_or_default(),
            origin.agent,
            origin.via.as_str()
        ],
    )?;
    let superfluous = "DELETE FROM console_session WHERE rowid IN (
        SELECT rowid FROM console_session WHERE operator = ?1 ORDER BY seen_at DESC, rowid DESC LIMIT -1 OFFSET ?2)";
    db.execute(superfluous, params![session.operator, limit])?;
    Ok(begun > 0)
}

/// The session of a token, and whose it is.
pub(super) fn session(db: &Connection, token_sha256: &[u8; 32]) -> rusqlite::Result<Option<(Session, Operator)>> {
    let select = format!(
        "SELECT {SESSION}, {OPERATOR} FROM console_session AS s JOIN operator AS o ON o.name = s.operator
         WHERE s.token_sha256 = ?1"
    );
    let read = |row: &Row<'_>| Ok((read_session(row, 0)?, operator(row, 7)?));
    db.prepare_cached(&select)?.query_row([token_sha256], read).optional()
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

/// The columns of [`operator`], of a table `o`.
pub(super) const OPERATOR: &str = "o.name, o.email, o.password_hash, o.created_at, o.changed_at, o.role, EXISTS (
    SELECT 1 FROM second_factor AS f WHERE f.operator = o.name AND f.confirmed_at IS NOT NULL),
    EXISTS (SELECT 1 FROM operator_identity AS i WHERE i.operator = o.name),
    (SELECT count(*) FROM passkey AS p WHERE p.operator = o.name)";

/// The seven columns of [`read_session`], of a table `s`.
pub(super) const SESSION: &str = "s.token_sha256, s.operator, s.created_at, s.seen_at, s.address, s.agent, s.via";

/// Ends the sessions of an operator but for one, and the tickets that would begin others.
pub(super) fn end_sessions(db: &Connection, name: &str, keep: Option<&[u8; 32]>) -> rusqlite::Result<()> {
    db.execute("DELETE FROM login_ticket WHERE operator = ?1", [name])?;
    let delete = "DELETE FROM console_session WHERE operator = ?1 AND token_sha256 IS NOT ?2";
    db.execute(delete, params![name, keep]).map(|_| ())
}

/// Reads [`SESSION`], beginning with column `from`.
pub(super) fn read_session(row: &Row<'_>, from: usize) -> rusqlite::Result<Session> {
    let (address, via): (String, String) = (row.get(from + 4)?, row.get(from + 6)?);
    let origin = SessionOrigin { address: address.parse().ok(), agent: row.get(from + 5)?, via: Via::from_store(&via) };
    Ok(Session {
        token_sha256: row.get(from)?,
        operator: row.get(from + 1)?,
        created_at_millis: row.get(from + 2)?,
        seen_at_millis: row.get(from + 3)?,
        origin,
    })
}

/// Reads [`OPERATOR`], beginning with column `from`.
pub(super) fn operator(row: &Row<'_>, from: usize) -> rusqlite::Result<Operator> {
    Ok(Operator {
        name: row.get(from)?,
        email: row.get(from + 1)?,
        password_hash: row.get(from + 2)?,
        created_at_millis: row.get(from + 3)?,
        changed_at_millis: row.get(from + 4)?,
        role: Role::from_store(&row.get::<_, String>(from + 5)?),
        second_factor: row.get(from + 6)?,
        has_identity: row.get(from + 7)?,
        passkeys: row.get(from + 8)?,
    })
}
