//! Identities of operators at providers, in the embedded store.

use rusqlite::{Connection, OptionalExtension, params};

use super::operators::{OPERATOR, operator};
use accounts::{Identity, Operator};

/// The operator who is linked to an identity.
pub(super) fn find(db: &Connection, issuer: &str, subject: &str) -> rusqlite::Result<Option<Operator>> {
    let select = format!(
        "SELECT {OPERATOR} FROM operator_identity AS l JOIN operator AS o ON o.name = l.operator
         WHERE l.issuer = ?1 AND l.subject = ?2"
    );
    db.prepare_cached(&select)?.query_row(params![issuer, subject], |row| operator(row, 0)).optional()
}

/// Whether no operator is linked to an identity.
pub(super) fn is_free(db: &Connection, identity: &Identity) -> rusqlite::Result<bool> {
    Ok(find(db, &identity.issuer, &identity.subject)?.is_none())
}

/// Links an operator to an identity; false where the operator is gone, or either has a link already.
pub(super) fn link(db: &Connection, name: &str, identity: &Identity) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO operator_identity (issuer, subject, operator, linked_at)
        SELECT ?1, ?2, name, ?4 FROM operator WHERE name = ?3 ON CONFLICT DO NOTHING";
    let Identity { issuer, subject, linked_at_millis } = identity;
    Ok(db.execute(insert, params![issuer, subject, name, linked_at_millis])? > 0)
}

/// Removes the identities of an operator; false where there are none.
pub(super) fn unlink(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(db.execute("DELETE FROM operator_identity WHERE operator = ?1", [name])? > 0)
}
