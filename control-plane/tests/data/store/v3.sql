-- A store as the third schema version left it. Never edited: files like this are out there.
PRAGMA application_id = 0x50534445;
CREATE TABLE schema_version (version INTEGER PRIMARY KEY NOT NULL);
INSERT INTO schema_version VALUES (1), (2), (3);
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
INSERT INTO ban VALUES ('ip:192.0.2.7', '{"reason":"by hand"}', 4102444800000);
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
