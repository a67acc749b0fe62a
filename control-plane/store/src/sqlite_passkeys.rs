//! Passkeys in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::operators::{OPERATOR, end_sessions, operator};
use super::{PasskeyStore, Pending, SqliteStore};
use accounts::{Operator, PASSKEYS, Passkey};

/// The columns of [`read`], of a table `k`.
const PASSKEY: &str = "k.credential, k.operator, k.name, k.public_key, k.sign_count, k.created_at, k.used_at";

impl PasskeyStore for SqliteStore {
    fn passkeys(&self, operator: &str) -> Pending<'_, Vec<Passkey>> {
        let operator = operator.to_owned();
        Box::pin(self.read(move |db| {
            let select =
                format!("SELECT {PASSKEY} FROM passkey AS k WHERE k.operator = ?1 ORDER BY k.created_at, k.credential");
            db.prepare_cached(&select)?.query_map([operator], read)?.collect()
        }))
    }

    fn passkey(&self, credential: &[u8]) -> Pending<'_, Option<(Passkey, Operator)>> {
        let credential = credential.to_vec();
        Box::pin(self.read(move |db| {
            let select = format!(
                "SELECT {PASSKEY}, {OPERATOR} FROM passkey AS k JOIN operator AS o ON o.name = k.operator WHERE k.credential = ?1"
            );
            let both = |row: &Row<'_>| Ok((read(row)?, operator(row, 7)?));
            db.prepare_cached(&select)?.query_row([credential], both).optional()
        }))
    }

    fn passkey_use(&self, credential: &[u8], sign_count: u32, now_millis: u64) -> Pending<'_, bool> {
        let credential = credential.to_vec();
        Box::pin(self.write(move |db| {
            let select = format!("SELECT {PASSKEY} FROM passkey AS k WHERE k.credential = ?1");
            let found = db.prepare_cached(&select)?.query_row([&credential], read).optional()?;
            if !found.is_some_and(|passkey| passkey.accepts_count(sign_count)) {
                return Ok(false);
            }
            let update = "UPDATE passkey SET sign_count = ?2, used_at = ?3 WHERE credential = ?1";
            Ok(db.execute(update, params![credential, sign_count, now_millis])? > 0)
        }))
    }
}

/// Adds a passkey, and ends the operator's other sessions and a second factor that is not confirmed; false where the operator is gone or has [`PASSKEYS`], or the credential is there.
pub(super) fn add(db: &Connection, passkey: &Passkey, keep_session: &[u8; 32]) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO passkey (credential, operator, name, public_key, sign_count, created_at, used_at)
        SELECT ?1, name, ?3, ?4, ?5, ?6, ?7 FROM operator
        WHERE name = ?2 AND (SELECT count(*) FROM passkey WHERE operator = ?2) < ?8 ON CONFLICT DO NOTHING";
    let Passkey { credential, operator, name, public_key, sign_count, created_at_millis, used_at_millis } = passkey;
    let values =
        params![credential, operator, name, public_key, sign_count, created_at_millis, used_at_millis, PASSKEYS];
    let added = db.execute(insert, values)? > 0;
    if added {
        // It was begun without a passkey as a proof.
        db.execute("DELETE FROM second_factor WHERE operator = ?1 AND confirmed_at IS NULL", [operator])?;
        end_sessions(db, operator, Some(keep_session))?;
    }
    Ok(added)
}

/// Removes a passkey of an operator, or all; false where there is none.
pub(super) fn remove(db: &Connection, name: &str, credential: Option<&[u8]>) -> rusqlite::Result<bool> {
    let delete = "DELETE FROM passkey WHERE operator = ?1 AND (?2 IS NULL OR credential = ?2)";
    Ok(db.execute(delete, params![name, credential])? > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Passkey> {
    Ok(Passkey {
        credential: row.get(0)?,
        operator: row.get(1)?,
        name: row.get(2)?,
        public_key: row.get(3)?,
        sign_count: row.get(4)?,
        created_at_millis: row.get(5)?,
        used_at_millis: row.get(6)?,
    })
}
