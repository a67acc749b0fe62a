//! The tables of the embedded store, and how a file of an older release is brought up to date.

use rusqlite::Connection;

/// Marks a file as a Palisade store in SQLite's header (`PSDE`), so that no other database is taken for one.
pub(super) const APPLICATION_ID: i32 = 0x5053_4445;

/// One entry for each schema version, from version 1 on. Entries are never edited: a change is a further entry.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE revision (only INTEGER PRIMARY KEY CHECK (only = 1), value INTEGER NOT NULL);
    INSERT INTO revision VALUES (1, 0);
    CREATE TABLE entity (
        collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL,
        UNIQUE (collection, id)
    );
    CREATE TABLE admin_key (
        id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, secret_sha256 BLOB NOT NULL, scopes TEXT NOT NULL,
        created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER
    );
    CREATE TABLE document (name TEXT PRIMARY KEY NOT NULL, body BLOB NOT NULL);
    CREATE TABLE ban (ref_key TEXT PRIMARY KEY NOT NULL, json TEXT NOT NULL, until_millis INTEGER NOT NULL);
    CREATE INDEX ban_until ON ban (until_millis);
",
    "
    CREATE TABLE operator (
        name TEXT PRIMARY KEY NOT NULL, email TEXT NOT NULL, password_hash TEXT NOT NULL,
        created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL
    );
    CREATE TABLE console_session (
        token_sha256 BLOB PRIMARY KEY NOT NULL, operator TEXT NOT NULL,
        created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
    );
    CREATE INDEX console_session_operator ON console_session (operator);
",
    "
    CREATE TABLE outbox (number INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, event TEXT NOT NULL);
",
    "
    ALTER TABLE ban ADD COLUMN is_range INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX ban_range ON ban (ref_key) WHERE is_range = 1;
    CREATE TABLE allowed (
        ref_key TEXT PRIMARY KEY NOT NULL, is_range INTEGER NOT NULL, reason TEXT NOT NULL, added_by TEXT NOT NULL,
        added_at INTEGER NOT NULL, until_millis INTEGER
    );
    CREATE INDEX allowed_range ON allowed (ref_key) WHERE is_range = 1;
    CREATE TABLE lifted (
        of_ban INTEGER NOT NULL, ref_key TEXT NOT NULL, at INTEGER NOT NULL, until_millis INTEGER NOT NULL,
        PRIMARY KEY (of_ban, ref_key)
    );
    CREATE TABLE ledger (
        ref_key TEXT NOT NULL, slot INTEGER NOT NULL, at INTEGER NOT NULL, points REAL NOT NULL,
        PRIMARY KEY (ref_key, slot)
    );
    CREATE INDEX ledger_at ON ledger (at);
    CREATE TABLE incident_state (
        ref_key TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, set_by TEXT NOT NULL, at INTEGER NOT NULL,
        note TEXT NOT NULL
    );
    CREATE TABLE incident (ref_key TEXT PRIMARY KEY NOT NULL, json TEXT NOT NULL);
",
    "
    CREATE TABLE puzzle (id TEXT PRIMARY KEY NOT NULL, until_millis INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX puzzle_until ON puzzle (until_millis);
",
    "
    CREATE TABLE alert_told (
        rule TEXT NOT NULL, subject TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (rule, subject)
    ) WITHOUT ROWID;
    CREATE INDEX alert_told_at ON alert_told (at);
    CREATE TABLE alert_waiting (id TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
",
    "
    ALTER TABLE ban ADD COLUMN hand_until INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE ban ADD COLUMN place INTEGER;
    UPDATE ban SET hand_until = until_millis
        WHERE CASE WHEN json_valid(json) THEN coalesce(json_extract(json, '$.by_hand'), 0) ELSE 0 END = 1;
    CREATE INDEX ban_place ON ban (place, until_millis) WHERE place IS NOT NULL AND hand_until = 0;
    CREATE INDEX ban_tier ON ban (until_millis) WHERE hand_until = 0;
",
    "
    ALTER TABLE ban ADD COLUMN node TEXT NOT NULL DEFAULT '';
    UPDATE ban SET node = CASE WHEN json_valid(json) THEN coalesce(json_extract(json, '$.issued_by'), '') ELSE '' END
        WHERE hand_until = 0;
    UPDATE ban SET place = 9223372036854775807 WHERE place IS NULL AND hand_until = 0 AND substr(ref_key, 1, 3) <> 'ip:'
        AND CASE WHEN json_valid(json) THEN coalesce(json_extract(json, '$.address'), '') ELSE '' END = '';
    DROP INDEX ban_place;
    DROP INDEX ban_tier;
    CREATE INDEX ban_place ON ban (place, node, until_millis) WHERE place IS NOT NULL AND hand_until = 0;
    CREATE INDEX ban_node ON ban (node, until_millis) WHERE hand_until = 0;
",
    "
    CREATE TABLE budget (
        scope TEXT NOT NULL, ref_key INTEGER NOT NULL, slice INTEGER NOT NULL, used INTEGER NOT NULL,
        until_millis INTEGER NOT NULL, node TEXT NOT NULL, PRIMARY KEY (scope, ref_key, slice)
    ) WITHOUT ROWID;
    CREATE INDEX budget_until ON budget (until_millis, node);
    CREATE TABLE set_member (
        scope TEXT NOT NULL, ref_key INTEGER NOT NULL, member INTEGER NOT NULL, slice INTEGER NOT NULL,
        until_millis INTEGER NOT NULL, node TEXT NOT NULL, PRIMARY KEY (scope, ref_key, member)
    ) WITHOUT ROWID;
    CREATE INDEX set_member_until ON set_member (until_millis, node);
    CREATE TABLE count_rows (
        kind TEXT NOT NULL, node TEXT NOT NULL, rows INTEGER NOT NULL, PRIMARY KEY (kind, node)
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE feed (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, current BLOB, previous BLOB) WITHOUT ROWID;
    CREATE TABLE feed_list (
        feed TEXT NOT NULL, hash BLOB NOT NULL, bytes BLOB NOT NULL, UNIQUE (feed, hash)
    );
",
    "
    CREATE TABLE inventory (
        route TEXT NOT NULL, record TEXT NOT NULL, seen_millis INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (route, record)
    );
    CREATE TABLE inventory_worker (
        node TEXT NOT NULL, worker INTEGER NOT NULL, sequence INTEGER NOT NULL, window INTEGER NOT NULL,
        seen_millis INTEGER NOT NULL, PRIMARY KEY (node, worker)
    ) WITHOUT ROWID;
",
    // Entities that are there already have a first version without an author: their documents can be read and reverted to once they change.
    "
    CREATE TABLE entity_version (
        collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, at INTEGER NOT NULL,
        author_kind TEXT NOT NULL, author TEXT NOT NULL, author_name TEXT NOT NULL, action TEXT NOT NULL,
        detail TEXT NOT NULL, is_deletion INTEGER NOT NULL, until_millis INTEGER, is_last INTEGER NOT NULL,
        bytes INTEGER NOT NULL, body TEXT, UNIQUE (collection, id, revision)
    );
    CREATE INDEX entity_version_until ON entity_version (is_last, until_millis) WHERE until_millis IS NOT NULL;
    CREATE TABLE entity_version_bytes (only INTEGER PRIMARY KEY CHECK (only = 1), bytes INTEGER NOT NULL);
    INSERT INTO entity_version SELECT collection, id, revision, 0, 'unknown', '', '', 'unknown', '', 0, NULL, 0, 0, NULL
        FROM entity ORDER BY revision;
",
    "
    CREATE TABLE rollup (step INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (step, at)) WITHOUT ROWID;
",
    // Operators that are there already may do everything, as before there were roles.
    "
    ALTER TABLE operator ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
    ALTER TABLE console_session ADD COLUMN address TEXT NOT NULL DEFAULT '';
    ALTER TABLE console_session ADD COLUMN agent TEXT NOT NULL DEFAULT '';
    ALTER TABLE console_session ADD COLUMN via TEXT NOT NULL DEFAULT 'password';
    CREATE TABLE login_ticket (
        sha256 BLOB PRIMARY KEY NOT NULL, operator TEXT NOT NULL, kind TEXT NOT NULL, until_millis INTEGER NOT NULL,
        failures INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX login_ticket_operator ON login_ticket (operator, kind, until_millis);
    CREATE TABLE second_factor (
        operator TEXT PRIMARY KEY NOT NULL, secret BLOB NOT NULL, confirmed_at INTEGER, last_step INTEGER NOT NULL,
        failures INTEGER NOT NULL, failed_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE recovery_code (
        operator TEXT NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (operator, sha256)
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE operator_identity (
        issuer TEXT NOT NULL, subject TEXT NOT NULL, operator TEXT NOT NULL, linked_at INTEGER NOT NULL,
        PRIMARY KEY (issuer, subject)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX operator_identity_operator ON operator_identity (operator, issuer);
    CREATE TABLE ceremony (
        sha256 BLOB PRIMARY KEY NOT NULL, kind TEXT NOT NULL, operator TEXT NOT NULL, data TEXT NOT NULL,
        until_millis INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX ceremony_until ON ceremony (until_millis);
    CREATE TABLE passkey (
        credential BLOB PRIMARY KEY NOT NULL, operator TEXT NOT NULL, name TEXT NOT NULL, public_key BLOB NOT NULL,
        sign_count INTEGER NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX passkey_operator ON passkey (operator, created_at);
",
    "
    CREATE TABLE recording (
        id TEXT NOT NULL UNIQUE, added_at INTEGER NOT NULL, bytes INTEGER NOT NULL, is_listed INTEGER NOT NULL,
        json TEXT NOT NULL
    );
    CREATE TABLE replay_job (
        id TEXT NOT NULL UNIQUE, recording TEXT NOT NULL, runner TEXT NOT NULL, beat INTEGER NOT NULL,
        has_ended INTEGER NOT NULL, result_bytes INTEGER NOT NULL, json TEXT NOT NULL
    );
    CREATE TABLE replay_leftover (owner TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
",
];

/// Puts what an empty store begins with into tables that have no rows.
pub(super) fn begin(db: &Connection) -> rusqlite::Result<()> {
    db.execute("INSERT INTO revision VALUES (1, 0)", []).map(|_| ())
}

/// The newest schema version that this release reads and writes.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// The schema version of an opened file; 0 for an empty one.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    let exists: bool =
        db.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_version')", [], |row| {
            row.get(0)
        })?;
    if !exists {
        return Ok(0);
    }
    db.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0))
}

/// Applies what is missing, each step in a transaction of its own, and returns the version reached.
pub(super) fn migrate(db: &mut Connection) -> rusqlite::Result<u32> {
    let mut reached = version(db)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(reached).unwrap_or(usize::MAX)) {
        let transaction = db.transaction()?;
        if reached == 0 {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.execute_batch("CREATE TABLE schema_version (version INTEGER PRIMARY KEY NOT NULL)")?;
        }
        transaction.execute_batch(step)?;
        reached += 1;
        transaction.execute("INSERT INTO schema_version VALUES (?1)", [reached])?;
        transaction.commit()?;
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    /// Who upgrades reads there which releases share a store.
    #[test]
    fn the_upgrade_guide_names_the_version() {
        let guide = include_str!("../../../docs/upgrading.md");
        let line = format!("| tables of the store | {} |", super::known_version());
        assert!(guide.contains(&line), "docs/upgrading.md has no `{line}`");
    }
}
