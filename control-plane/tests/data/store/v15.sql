-- A store as the fifteenth schema version left it. Never edited: files like this are out there.
PRAGMA application_id = 0x50534445;
CREATE TABLE schema_version (version INTEGER PRIMARY KEY NOT NULL);
INSERT INTO schema_version VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
CREATE TABLE revision (only INTEGER PRIMARY KEY CHECK (only = 1), value INTEGER NOT NULL);
INSERT INTO revision VALUES (1, 7);
CREATE TABLE entity (
    collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL,
    UNIQUE (collection, id)
);
INSERT INTO entity VALUES ('waf-rulesets', 'base', 7, '{"id":"base","name":"Base","rules":["SecRuleEngine On"]}');
CREATE TABLE admin_key (
    id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, secret_sha256 BLOB NOT NULL, scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER
);
INSERT INTO admin_key VALUES ('key_1', 'first key', zeroblob(32), 'read,write,report', 1700000000000, NULL, NULL);
CREATE TABLE document (name TEXT PRIMARY KEY NOT NULL, body BLOB NOT NULL);
INSERT INTO document VALUES ('notes', x'6e6f7465');
CREATE TABLE ban (ref_key TEXT PRIMARY KEY NOT NULL, json TEXT NOT NULL, until_millis INTEGER NOT NULL);
CREATE INDEX ban_until ON ban (until_millis);
INSERT INTO ban VALUES ('ip:192.0.2.7', '{"reason":"by hand","by_hand":true}', 4102444800000);
CREATE TABLE operator (
    name TEXT PRIMARY KEY NOT NULL, email TEXT NOT NULL, password_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL
);
INSERT INTO operator VALUES ('ada', 'ada@example.com', '$argon2id$', 1700000000000, 1700000000000);
CREATE TABLE console_session (
    token_sha256 BLOB PRIMARY KEY NOT NULL, operator TEXT NOT NULL,
    created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
);
CREATE INDEX console_session_operator ON console_session (operator);
CREATE TABLE outbox (number INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, event TEXT NOT NULL);
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
INSERT INTO allowed VALUES ('ip:198.51.100.9', 0, 'ours', 'ada', 1700000000000, NULL);
CREATE TABLE puzzle (id TEXT PRIMARY KEY NOT NULL, until_millis INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX puzzle_until ON puzzle (until_millis);
INSERT INTO puzzle VALUES ('p1', 4102444800000);
CREATE TABLE alert_told (
    rule TEXT NOT NULL, subject TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (rule, subject)
) WITHOUT ROWID;
CREATE INDEX alert_told_at ON alert_told (at);
CREATE TABLE alert_waiting (id TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE ban ADD COLUMN hand_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ban ADD COLUMN place INTEGER;
UPDATE ban SET hand_until = until_millis;
ALTER TABLE ban ADD COLUMN node TEXT NOT NULL DEFAULT '';
CREATE INDEX ban_place ON ban (place, node, until_millis) WHERE place IS NOT NULL AND hand_until = 0;
CREATE INDEX ban_node ON ban (node, until_millis) WHERE hand_until = 0;
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
INSERT INTO budget VALUES ('shop', 1, 7, 3, 4102444800000, 'n1');
INSERT INTO set_member VALUES ('shop', 1, 2, 7, 4102444800000, 'n1');
INSERT INTO count_rows VALUES ('budget', '', 1), ('budget', 'n1', 1), ('set_member', '', 1), ('set_member', 'n1', 1);
CREATE TABLE feed (id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, current BLOB, previous BLOB) WITHOUT ROWID;
CREATE TABLE feed_list (
    feed TEXT NOT NULL, hash BLOB NOT NULL, bytes BLOB NOT NULL, UNIQUE (feed, hash)
);
INSERT INTO feed VALUES ('tor', '{}', zeroblob(32), NULL);
INSERT INTO feed_list VALUES ('tor', zeroblob(32), x'00');
CREATE TABLE inventory (
    route TEXT NOT NULL, record TEXT NOT NULL, seen_millis INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (route, record)
);
CREATE TABLE inventory_worker (
    node TEXT NOT NULL, worker INTEGER NOT NULL, sequence INTEGER NOT NULL, window INTEGER NOT NULL,
    seen_millis INTEGER NOT NULL, PRIMARY KEY (node, worker)
) WITHOUT ROWID;
INSERT INTO inventory VALUES ('shop', 'GET /', 1700000000000, x'00');
INSERT INTO inventory_worker VALUES ('n1', 0, 7, 127, 1700000000000);
CREATE TABLE entity_version (
    collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, at INTEGER NOT NULL,
    author_kind TEXT NOT NULL, author TEXT NOT NULL, author_name TEXT NOT NULL, action TEXT NOT NULL,
    detail TEXT NOT NULL, is_deletion INTEGER NOT NULL, until_millis INTEGER, is_last INTEGER NOT NULL,
    bytes INTEGER NOT NULL, body TEXT, UNIQUE (collection, id, revision)
);
CREATE INDEX entity_version_until ON entity_version (is_last, until_millis) WHERE until_millis IS NOT NULL;
CREATE TABLE entity_version_bytes (only INTEGER PRIMARY KEY CHECK (only = 1), bytes INTEGER NOT NULL);
INSERT INTO entity_version VALUES
    ('waf-rulesets', 'base', 7, 0, 'unknown', '', '', 'unknown', '', 0, NULL, 0, 0, NULL);
CREATE TABLE rollup (step INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (step, at)) WITHOUT ROWID;
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
INSERT INTO second_factor VALUES ('ada', x'3132333435363738393031323334353637383930', 1700000000000, 56666666, 0, 0);
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
INSERT INTO operator_identity VALUES ('https://id.example', '42', 'ada', 1700000000000);
