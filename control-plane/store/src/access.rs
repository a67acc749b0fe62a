//! Who has access, and the outbox of what commands have changed of it, in the embedded store.

use rusqlite::{Connection, Row, params};

use super::{
    AccessChange, Kept, operators, scopes_from_text, scopes_to_text, sqlite_identities, sqlite_passkeys, sqlite_sign_in,
};
use accounts::{AdminKey, Role};

/// The columns of [`admin_key`].
pub(super) const SELECT_KEY: &str =
    "SELECT id, name, secret_sha256, scopes, created_at, expires_at, revoked_at FROM admin_key";

/// Makes the change and keeps what is to be told of it; false, and neither, where there is nothing to change.
pub(super) fn change(db: &Connection, change: &AccessChange, event: &str) -> rusqlite::Result<bool> {
    let changed = match change {
        AccessChange::KeyPut(key) => put(db, key).map(|()| true)?,
        AccessChange::KeyRevoke { id, at_millis } => revoke(db, id, *at_millis)?,
        AccessChange::KeyExpire { id, at_millis } => {
            let update = "UPDATE admin_key SET expires_at = ?2 WHERE id = ?1";
            db.execute(update, params![id, at_millis])? > 0
        }
        AccessChange::OperatorAdd(operator) => operators::add(db, operator)?,
        AccessChange::OperatorAddLinked { operator, identity } => {
            sqlite_identities::is_free(db, identity)?
                && operators::add(db, operator)?
                && sqlite_identities::link(db, &operator.name, identity)?
        }
        AccessChange::IdentityLink { name, identity } => sqlite_identities::link(db, name, identity)?,
        AccessChange::PasskeyAdd { passkey, keep_session } => sqlite_passkeys::add(db, passkey, keep_session)?,
        AccessChange::PasskeyRemove { name, credential, end_sessions } => {
            let removed = sqlite_passkeys::remove(db, name, credential.as_deref())?;
            if removed && *end_sessions {
                operators::end_sessions(db, name, None)?;
            }
            removed
        }
        AccessChange::IdentityUnlink { name } => {
            let unlinked = sqlite_identities::unlink(db, name)?;
            if unlinked {
                operators::end_sessions(db, name, None)?;
            }
            unlinked
        }
        AccessChange::OperatorRemove { name, keep_admin } => {
            (!keep_admin || operators::is_spare(db, name)?) && operators::remove(db, name)?
        }
        AccessChange::OperatorPassword { name, hash, at_millis } => {
            operators::set_password(db, name, hash, *at_millis)?
        }
        AccessChange::OperatorRole { name, role, keep_admin } => {
            (!keep_admin || *role == Role::Admin || operators::is_spare(db, name)?)
                && operators::set_role(db, name, *role)?
        }
        AccessChange::LoginLink(ticket) => sqlite_sign_in::put_ticket(db, ticket, None)?,
        AccessChange::SecondFactorConfirm { name, step, at_millis, recovery_codes, keep_session } => {
            sqlite_sign_in::confirm(db, name, (*step, *at_millis), recovery_codes, keep_session)?
        }
        AccessChange::SecondFactorRemove { name, end_sessions } => {
            let removed = sqlite_sign_in::remove_factor(db, name)?;
            if removed && *end_sessions {
                operators::end_sessions(db, name, None)?;
            }
            removed
        }
        AccessChange::KeyRotate { id, until_millis, now_millis, key } => {
            let update = "UPDATE admin_key SET expires_at = min(coalesce(expires_at, ?2), ?2)
                WHERE id = ?1 AND revoked_at IS NULL AND coalesce(expires_at, ?2 + ?3) > ?3";
            let rotated = db.execute(update, params![id, until_millis, now_millis])? > 0;
            if rotated {
                put(db, key)?;
            }
            rotated
        }
    };
    if changed {
        keep(db, &[event])?;
    }
    Ok(changed)
}

/// Keeps events until they were sent.
pub(super) fn keep(db: &Connection, events: &[impl AsRef<str>]) -> rusqlite::Result<()> {
    for event in events {
        db.prepare_cached("INSERT INTO outbox (event) VALUES (?1)")?.execute([event.as_ref()])?;
    }
    Ok(())
}

/// Adds a key, or replaces the one with the same id.
pub(super) fn put(db: &Connection, key: &AdminKey) -> rusqlite::Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO admin_key (id, name, secret_sha256, scopes, created_at, expires_at, revoked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            key.id,
            key.name,
            key.secret_sha256,
            scopes_to_text(&key.scopes),
            key.created_at_millis,
            key.expires_at_millis,
            key.revoked_at_millis
        ],
    )?;
    Ok(())
}

/// Marks a key as revoked; the first revocation stands. False when there is no such key.
pub(super) fn revoke(db: &Connection, id: &str, now_millis: u64) -> rusqlite::Result<bool> {
    let update = "UPDATE admin_key SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1";
    Ok(db.execute(update, params![id, now_millis])? > 0)
}

/// What is kept to be told with a higher number, oldest first.
pub(super) fn kept(db: &Connection, after: u64) -> rusqlite::Result<Vec<Kept>> {
    let select = "SELECT number, event FROM outbox WHERE number > ?1 ORDER BY number LIMIT 1000";
    db.prepare_cached(select)?.query_map([after], |row| Ok(Kept { number: row.get(0)?, event: row.get(1)? }))?.collect()
}

/// Forgets what was told, up to this one, if it is there.
pub(super) fn told(db: &Connection, last: &Kept) -> rusqlite::Result<()> {
    let delete =
        "DELETE FROM outbox WHERE number <= ?1 AND EXISTS (SELECT 1 FROM outbox WHERE number = ?1 AND event = ?2)";
    db.prepare_cached(delete)?.execute(params![last.number, last.event]).map(|_| ())
}

/// A key as [`SELECT_KEY`] reads it.
pub(super) fn admin_key(row: &Row<'_>) -> rusqlite::Result<AdminKey> {
    Ok(AdminKey {
        id: row.get(0)?,
        name: row.get(1)?,
        secret_sha256: row.get(2)?,
        scopes: scopes_from_text(&row.get::<_, String>(3)?),
        created_at_millis: row.get(4)?,
        expires_at_millis: row.get(5)?,
        revoked_at_millis: row.get(6)?,
    })
}
