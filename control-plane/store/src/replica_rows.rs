//! Rows of any table as bytes: which ones a transaction has changed, and how changes of others are applied.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::elsewhere::{Elsewhere, Keys};
use super::replica::RowChange;

/// The most columns of a key.
const KEY_COLUMNS: usize = 4;
/// The engine's own table of the numbers that were given last.
const SEQUENCES: &str = "sqlite_sequence";

/// The tables whose rows are shared.
pub(super) struct Tables(Vec<Table>);

struct Table {
    name: String,
    columns: Vec<String>,
    /// The columns that name a row; `rowid` where the order of insertion counts as well.
    key: Vec<String>,
    /// The key is beside the columns, not among them.
    is_rowid: bool,
    /// Its numbers are never used twice, which the engine notes in [`SEQUENCES`].
    is_numbered: bool,
}

impl Tables {
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Tables> {
        let select = "SELECT l.name, l.wr, m.sql LIKE '%AUTOINCREMENT%' FROM pragma_table_list AS l
            JOIN main.sqlite_master AS m ON m.type = 'table' AND m.name = l.name
            WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite!_%' ESCAPE '!' AND l.name <> 'schema_version' ORDER BY l.name";
        let mut select = db.prepare(select)?;
        let named = select
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?)))?;
        let mut tables = Vec::new();
        for named in named {
            let (name, without_rowid, is_numbered) = named?;
            tables.push(Table::of(db, name, without_rowid, is_numbered)?);
        }
        // The last one: rows that are inserted move the numbers on, too.
        tables.push(Table {
            name: SEQUENCES.to_owned(),
            columns: vec!["name".to_owned(), "seq".to_owned()],
            key: vec!["name".to_owned()],
            is_rowid: false,
            is_numbered: false,
        });
        Ok(Tables(tables))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|table| table.name.clone()).collect()
    }

    /// Notes from now on which rows this connection changes.
    pub(super) fn watch(&self, db: &Connection) -> rusqlite::Result<()> {
        // A row that makes room for another one in `INSERT OR REPLACE` counts as deleted with this alone.
        db.pragma_update(None, "recursive_triggers", true)?;
        db.pragma_update(None, "temp_store", "MEMORY")?;
        db.execute_batch("CREATE TEMP TABLE changed_row (part INTEGER NOT NULL, k1, k2, k3, k4)")?;
        for (number, table) in self.0.iter().enumerate().filter(|(_, table)| table.name != SEQUENCES) {
            for (event, rows) in [("INSERT", &["NEW"][..]), ("UPDATE", &["OLD", "NEW"]), ("DELETE", &["OLD"])] {
                let notes: String = rows.iter().map(|row| table.note(number, row)).collect();
                let name = &table.name;
                db.execute_batch(&format!(
                    "CREATE TEMP TRIGGER {name}_{event} AFTER {event} ON main.{name} BEGIN {notes} END"
                ))?;
            }
        }
        Ok(())
    }

    /// The rows that were changed, as they are now.
    pub(super) fn changed(&self, db: &Connection) -> rusqlite::Result<Vec<RowChange>> {
        let mut keys = db.prepare_cached("SELECT DISTINCT part, k1, k2, k3, k4 FROM changed_row ORDER BY part")?;
        let mut keys = keys.query([])?;
        let mut changes = Vec::new();
        let mut numbered = None;
        while let Some(found) = keys.next()? {
            let number: usize = found.get(0)?;
            let Some(table) = self.0.get(number) else { continue };
            let key = (1..=table.key.len()).map(|at| found.get(at)).collect::<rusqlite::Result<Vec<Value>>>()?;
            changes.push(table.now(db, number, &key)?);
            if table.is_numbered {
                numbered = Some(&table.name);
            }
        }
        if let (Some(name), Some(sequences)) = (numbered, self.0.last()) {
            changes.push(sequences.now(db, self.0.len() - 1, &[Value::Text(name.clone())])?);
        }
        Ok(changes)
    }

    /// Makes changes of others here.
    pub(super) fn apply(&self, db: &Connection, changes: &[RowChange]) -> rusqlite::Result<()> {
        // Rows that are gone first: another one may have what is unique of them.
        for change in changes.iter().filter(|change| change.row.is_none()) {
            self.table(change.table)?.delete(db, &decode(&change.key)?)?;
        }
        let mut written: Vec<_> = changes.iter().filter_map(|change| Some((change, change.row.as_ref()?))).collect();
        written.sort_by_key(|(change, _)| change.table);
        for (change, row) in written {
            self.table(change.table)?.write(db, decode(&change.key)?, decode(row)?)?;
        }
        Ok(())
    }

    /// What rows of others say of what is announced; `None` where they say nothing of it. To be asked before they are applied: of a row that
    /// is gone, the replica still has the name. Rows of bans and of the allowlist that are gone say nothing: what was lifted has a row that
    /// says so.
    pub(super) fn elsewhere(&self, db: &Connection, changes: &[RowChange]) -> rusqlite::Result<Option<Elsewhere>> {
        let mut keys = Keys::default();
        for change in changes {
            let table = self.table(change.table)?;
            let (column, names_gone) = match table.name.as_str() {
                "ban" | "allowed" | "lifted" => ("ref_key", false),
                "incident" => ("ref_key", true),
                "incident_state" => {
                    keys.workflows = true;
                    continue;
                }
                "inventory" => {
                    keys.inventory = true;
                    continue;
                }
                "document" => ("name", true),
                "feed" => ("id", true),
                _ => continue,
            };
            let row = match &change.row {
                Some(row) => decode(row)?,
                None if names_gone => match table.before(db, &decode(&change.key)?)? {
                    Some(row) => row,
                    None => continue,
                },
                None => continue,
            };
            let value = |name: &str| row.get(table.columns.iter().position(|column| column == name)?);
            let Some(Value::Text(key)) = value(column) else { continue };
            let of_ban = value("of_ban") == Some(&Value::Integer(1));
            let named = match table.name.as_str() {
                "ban" => &mut keys.bans,
                "lifted" if of_ban => &mut keys.bans,
                "allowed" | "lifted" => &mut keys.allowed,
                "incident" => &mut keys.incidents,
                "document" => &mut keys.documents,
                _ => &mut keys.feeds,
            };
            named.insert(key.clone());
        }
        Ok((keys != Keys::default()).then_some(Elsewhere::Keys(keys)))
    }

    /// Every row.
    pub(super) fn all(&self, db: &Connection) -> rusqlite::Result<Vec<RowChange>> {
        let mut all = Vec::new();
        for (number, table) in self.0.iter().enumerate() {
            let mut select = db.prepare(&format!("SELECT {}, * FROM {}", table.key.join(", "), table.name))?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let keys = table.key.len();
                let key = encode((0..keys).map(|at| row.get_ref(at)))?;
                let columns = encode((keys..keys + table.columns.len()).map(|at| row.get_ref(at)))?;
                all.push(RowChange { table: number, key, row: Some(columns) });
            }
        }
        Ok(all)
    }

    pub(super) fn empty(&self, db: &Connection) -> rusqlite::Result<()> {
        for table in &self.0 {
            db.execute(&format!("DELETE FROM {}", table.name), [])?;
        }
        Ok(())
    }

    fn table(&self, number: usize) -> rusqlite::Result<&Table> {
        self.0.get(number).ok_or_else(|| malformed(&format!("there is no table {number}")))
    }
}

impl Table {
    fn of(db: &Connection, name: String, without_rowid: bool, is_numbered: bool) -> rusqlite::Result<Table> {
        let mut select = db.prepare("SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let columns = select.query_map([&name], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, usize>(2)?))
        })?;
        let columns = columns.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut key: Vec<_> = columns.iter().filter(|(_, _, place)| *place > 0).collect();
        key.sort_by_key(|(_, _, place)| *place);
        let is_number = matches!(key.as_slice(), [(_, kind, _)] if kind.eq_ignore_ascii_case("INTEGER"));
        let is_rowid = !without_rowid && !is_number;
        let key = if is_rowid {
            vec!["rowid".to_owned()]
        } else {
            key.into_iter().map(|(column, _, _)| column.clone()).collect()
        };
        if key.is_empty() || key.len() > KEY_COLUMNS {
            return Err(malformed(&format!("the key of {name} has {} columns", key.len())));
        }
        let columns = columns.into_iter().map(|(column, _, _)| column).collect();
        Ok(Table { name, columns, key, is_rowid, is_numbered })
    }

    /// The statement of a trigger that notes a row.
    fn note(&self, number: usize, row: &str) -> String {
        let names: Vec<_> = (1..=self.key.len()).map(|at| format!("k{at}")).collect();
        let values: Vec<_> = self.key.iter().map(|column| format!("{row}.{column}")).collect();
        format!("INSERT INTO changed_row (part, {}) VALUES ({number}, {});", names.join(", "), values.join(", "))
    }

    fn is_key(&self) -> String {
        let terms: Vec<_> = self.key.iter().enumerate().map(|(at, column)| format!("{column} = ?{}", at + 1)).collect();
        terms.join(" AND ")
    }

    fn now(&self, db: &Connection, number: usize, key: &[Value]) -> rusqlite::Result<RowChange> {
        let mut select = db.prepare_cached(&format!("SELECT * FROM {} WHERE {}", self.name, self.is_key()))?;
        let mut found = select.query(params_from_iter(key))?;
        let row = match found.next()? {
            Some(row) => Some(encode((0..self.columns.len()).map(|at| row.get_ref(at)))?),
            None => None,
        };
        let key = encode(key.iter().map(|value| Ok(ValueRef::from(value))))?;
        Ok(RowChange { table: number, key, row })
    }

    /// A row as it is here.
    fn before(&self, db: &Connection, key: &[Value]) -> rusqlite::Result<Option<Vec<Value>>> {
        let mut select = db.prepare_cached(&format!("SELECT * FROM {} WHERE {}", self.name, self.is_key()))?;
        let mut found = select.query(params_from_iter(key))?;
        let Some(row) = found.next()? else { return Ok(None) };
        (0..self.columns.len()).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Value>>>().map(Some)
    }

    fn delete(&self, db: &Connection, key: &[Value]) -> rusqlite::Result<()> {
        let delete = format!("DELETE FROM {} WHERE {}", self.name, self.is_key());
        db.prepare_cached(&delete)?.execute(params_from_iter(key)).map(|_| ())
    }

    fn write(&self, db: &Connection, key: Vec<Value>, row: Vec<Value>) -> rusqlite::Result<()> {
        if row.len() != self.columns.len() {
            return Err(malformed(&format!("a row of {} has {} columns", self.name, row.len())));
        }
        if self.name == SEQUENCES {
            self.delete(db, &key)?;
        }
        let (beside, values) = if self.is_rowid { ("rowid, ", [key, row].concat()) } else { ("", row) };
        let places = vec!["?"; values.len()].join(", ");
        let write =
            format!("INSERT OR REPLACE INTO {} ({beside}{}) VALUES ({places})", self.name, self.columns.join(", "));
        db.prepare_cached(&write)?.execute(params_from_iter(values)).map(|_| ())
    }
}

/// Forgets which rows were changed.
pub(super) fn forget_changed(db: &Connection) -> rusqlite::Result<()> {
    db.execute("DELETE FROM changed_row", []).map(|_| ())
}

/// Values one after the other: a kind, and 8 bytes of a number or the length and the bytes of a text.
fn encode<'a>(values: impl Iterator<Item = rusqlite::Result<ValueRef<'a>>>) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let put = |bytes: &mut Vec<u8>, kind: u8, content: &[u8]| {
        bytes.push(kind);
        bytes.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(content);
    };
    for value in values {
        match value? {
            ValueRef::Null => bytes.push(0),
            ValueRef::Integer(number) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            ValueRef::Real(number) => {
                bytes.push(2);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            ValueRef::Text(text) => put(&mut bytes, 3, text),
            ValueRef::Blob(blob) => put(&mut bytes, 4, blob),
        }
    }
    Ok(bytes)
}

/// Reads [`encode`].
fn decode(mut bytes: &[u8]) -> rusqlite::Result<Vec<Value>> {
    let mut values = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let (value, rest) = match kind {
            0 => (Some(Value::Null), rest),
            1 | 2 => {
                let (number, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
                let value = if *kind == 1 {
                    Value::Integer(i64::from_le_bytes(*number))
                } else {
                    Value::Real(f64::from_le_bytes(*number))
                };
                (Some(value), rest)
            }
            3 | 4 => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
                let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
                let (content, rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
                let value = if *kind == 3 {
                    String::from_utf8(content.to_vec()).ok().map(Value::Text)
                } else {
                    Some(Value::Blob(content.to_vec()))
                };
                (value, rest)
            }
            _ => (None, rest),
        };
        values.push(value.ok_or_else(|| malformed("a row has a value that is none"))?);
        bytes = rest;
    }
    Ok(values)
}

fn cut_off() -> rusqlite::Error {
    malformed("a row is cut off")
}

fn malformed(what: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidParameterName(format!("{what}: the store was written by something else"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> (Connection, Tables) {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&mut db).unwrap();
        let tables = Tables::of(&db).unwrap();
        tables.watch(&db).unwrap();
        (db, tables)
    }

    fn dump(db: &Connection, tables: &Tables) -> Vec<RowChange> {
        tables.all(db).unwrap()
    }

    #[test]
    fn what_is_changed_here_is_the_same_there() {
        let ((here, tables), (there, _)) = (database(), database());
        let steps = [
            "INSERT INTO entity VALUES ('c', 'a', 1, 'x'), ('c', 'b', 1, 'y')",
            "UPDATE entity SET body = 'z', id = 'c' WHERE id = 'a'",
            "INSERT OR REPLACE INTO document VALUES ('n', x'00ff'), ('n', x''), ('o', x'01')",
            "INSERT OR REPLACE INTO document VALUES ('n', x'02')",
            "INSERT INTO outbox (event) VALUES ('1'), ('2')",
            "DELETE FROM outbox",
            "INSERT INTO budget VALUES ('s', -5, 7, 1, 9, '')",
            "INSERT INTO budget VALUES ('s', -5, 7, 1, 9, '') ON CONFLICT DO UPDATE SET used = used + 1",
            "INSERT INTO puzzle VALUES ('p', 1) ON CONFLICT DO NOTHING",
            "INSERT INTO ledger VALUES ('k', 1, 2, 1.5)",
            "DELETE FROM entity WHERE id = 'b'",
            "UPDATE revision SET value = 4",
            "INSERT INTO ban (ref_key, json, until_millis, place) VALUES ('ip:1', '{}', 5, NULL)",
            "DELETE FROM document",
        ];
        for step in steps {
            here.execute_batch(step).unwrap();
            let changes = tables.changed(&here).unwrap();
            assert!(!changes.is_empty(), "{step}");
            forget_changed(&here).unwrap();
            tables.apply(&there, &changes).unwrap();
            assert_eq!(dump(&here, &tables), dump(&there, &tables), "{step}");
        }
        forget_changed(&there).unwrap();
        // A number that was given away is not given again, though its row is gone.
        there.execute_batch("INSERT INTO outbox (event) VALUES ('3')").unwrap();
        let number: u64 = there.query_row("SELECT number FROM outbox", [], |row| row.get(0)).unwrap();
        assert_eq!(number, 3);
    }

    #[test]
    fn bans_and_the_allowlist_of_others_are_named_and_what_gives_way_is_not() {
        let (db, tables) = database();
        let said = |statement: &str| {
            db.execute_batch(statement).unwrap();
            let found = tables.elsewhere(&db, &tables.changed(&db).unwrap()).unwrap();
            forget_changed(&db).unwrap();
            found
        };
        let keys = |bans: &[&str], allowed: &[&str]| {
            let set = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
            Some(Elsewhere::Keys(Keys { bans: set(bans), allowed: set(allowed), ..Keys::default() }))
        };
        let ban = "INSERT INTO ban (ref_key, json, until_millis, place) VALUES ('ip:1', '{}', 5, NULL)";
        assert_eq!(said(ban), keys(&["ip:1"], &[]));
        assert_eq!(said("UPDATE ban SET until_millis = 6"), keys(&["ip:1"], &[]));
        assert_eq!(said("DELETE FROM ban; INSERT INTO lifted VALUES (1, 'ip:1', 1, 9)"), keys(&["ip:1"], &[]));
        assert_eq!(said(&format!("{ban}; INSERT INTO lifted VALUES (0, 'ip:2', 1, 9)")), keys(&["ip:1"], &["ip:2"]));
        assert_eq!(said("DELETE FROM ban"), None);
        assert_eq!(said("INSERT INTO entity VALUES ('ban', 'ip:1', 1, '')"), None);
    }

    #[test]
    fn what_is_no_row_is_an_error() {
        for bytes in [&[9][..], &[1, 0, 0], &[3, 5, 0, 0, 0, b'a'], &[3, 1, 0, 0, 0, 0xff], &[4, 1]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
        let (db, tables) = database();
        let strange = RowChange { table: 99, key: Vec::new(), row: Some(Vec::new()) };
        assert!(tables.apply(&db, std::slice::from_ref(&strange)).is_err());
        assert!(tables.apply(&db, &[RowChange { table: 0, ..strange }]).is_err());
    }
}
