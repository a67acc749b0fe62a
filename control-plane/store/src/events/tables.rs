//! The tables of a file of events, and what is done to them. Every function runs in a transaction of its caller.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use super::terms::common;
use super::{Block, NewEvent, place, segments};

/// Marks a file as one of events in SQLite's header (`PSDV`).
const APPLICATION_ID: i32 = 0x5053_4456;
/// The version of the tables. A file of another one is put aside: events are no configuration, and go on in a new file.
const VERSION: i32 = 2;
/// The events of a segment: many make each of them slow to write, and few a search, which looks into each. Tests have small ones.
const SEGMENT_EVENTS: u64 = if cfg!(test) { 100 } else { 8192 };
/// How long a statement waits for a look from outside, such as by `sqlite3`.
const BUSY: Duration = Duration::from_secs(5);
/// The statements that are kept prepared: all that there are.
const STATEMENTS: usize = 64;
/// How many pages the log takes before it is folded in: less than by default, because it counts as room on the volume.
const LOG_PAGES: u32 = 512;

/// `term` has for each hash the places of the events that have it; `block.places` those of its events, for when it is removed.
///
/// Events that came one after the other are a segment, and the index is one for each: hashes are everywhere in an index, so that each event would
/// change pages all over one of all events. `segment.first` and `last` are the places between which its events are or were.
const TABLES: &str = "
    CREATE TABLE block (
        id INTEGER PRIMARY KEY NOT NULL, came INTEGER NOT NULL, position TEXT NOT NULL, places BLOB NOT NULL, body BLOB NOT NULL,
        segment INTEGER NOT NULL
    );
    CREATE TABLE event (place INTEGER PRIMARY KEY NOT NULL, block INTEGER NOT NULL, line INTEGER NOT NULL, terms BLOB NOT NULL);
    CREATE TABLE term (
        segment INTEGER NOT NULL, term INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (segment, term, place)
    ) WITHOUT ROWID;
    CREATE TABLE segment (id INTEGER PRIMARY KEY NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, events INTEGER NOT NULL);
    CREATE TABLE kept (only INTEGER PRIMARY KEY CHECK (only = 1), events INTEGER NOT NULL, bytes INTEGER NOT NULL);
    INSERT INTO kept VALUES (1, 0, 0);
";

/// How many events there are, and the bytes of their blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// Opens a file of events, and makes it where it does not exist. `durable`: what is committed is written to the disk in order, so that
/// a loss of power damages nothing.
pub(super) fn open(path: &Path, durable: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    // Before the first table: pages that are free can be given back then.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    db.pragma_update(None, "journal_size_limit", i64::from(LOG_PAGES) * 4096)?;
    // NORMAL syncs the log only when it is folded in: no batch of events makes a ban wait for the disk.
    db.pragma_update(None, "synchronous", if durable { "NORMAL" } else { "OFF" })?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    if header(&db)? != (APPLICATION_ID, VERSION) {
        let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // The other connection may have made them meanwhile.
        match header(&making)? {
            (APPLICATION_ID, VERSION) => {}
            (0, 0) => making.execute_batch(TABLES)?,
            (id, version) => {
                return Err(foreign(format!("it has the tables {id}/{version}, and not {APPLICATION_ID}/{VERSION}")));
            }
        }
        making.pragma_update(None, "application_id", APPLICATION_ID)?;
        making.pragma_update(None, "user_version", VERSION)?;
        making.commit()?;
    }
    Ok(db)
}

/// Whose file it is, and the version of its tables.
fn header(db: &Connection) -> rusqlite::Result<(i32, i32)> {
    let number = |pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    Ok((number("application_id")?, number("user_version")?))
}

/// The error for a file that is put aside.
fn foreign(detail: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB), Some(detail))
}

/// Whether a file is of no use, and a new one is to be made.
pub(super) fn is_useless(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

pub(super) fn kept(db: &Connection) -> rusqlite::Result<Kept> {
    let select = "SELECT events, bytes FROM kept";
    db.prepare_cached(select)?.query_row([], |row| Ok(Kept { events: row.get(0)?, bytes: row.get(1)? }))
}

/// Adds a block that came at a time; events that are there already are left out.
pub(super) fn add(db: &Connection, block: &Block, came_millis: u64, position: &str) -> rusqlite::Result<()> {
    let id: i64 = db.prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM block")?.query_row([], |row| row.get(0))?;
    let segment = segments::current(db, SEGMENT_EVENTS)?;
    let mut places: Vec<u8> = Vec::with_capacity(block.events.len() * 8);
    let mut added = segments::Added::default();
    for (line, event) in &block.events {
        if let Some(place) = add_event(db, event, (segment, id), *line)? {
            places.extend(place.to_le_bytes());
            added.count(place);
        }
    }
    segments::grow(db, segment, &added)?;
    let added = added.events;
    // A shared block without a new event still counts at the server.
    if added == 0 && position.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO block (id, came, position, places, body, segment) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    db.prepare_cached(insert)?.execute(params![id, came_millis, position, places, block.body, segment])?;
    let bytes = u64::try_from(block.body.len()).unwrap_or(u64::MAX);
    db.prepare_cached("UPDATE kept SET events = events + ?1, bytes = bytes + ?2")?.execute([added, bytes])?;
    Ok(())
}

/// The place that an event got; `None` if it is there already.
fn add_event(
    db: &Connection,
    event: &NewEvent,
    (segment, block): (i64, i64),
    line: usize,
) -> rusqlite::Result<Option<i64>> {
    let (id, mut place) = (event.terms.first().copied(), event.place.cast_signed());
    let there = |place: i64| {
        let select = "SELECT terms FROM event WHERE place = ?1";
        let first = |row: &rusqlite::Row<'_>| Ok(terms(row.get_ref(0)?.as_blob()?).next());
        db.prepare_cached(select)?.query_row([place], first).optional()
    };
    while let Some(other) = there(place)? {
        if other == id {
            return Ok(None);
        }
        place += 1;
    }
    let terms: Vec<u8> = event.terms.iter().flat_map(|term| term.to_le_bytes()).collect();
    let insert = "INSERT INTO event (place, block, line, terms) VALUES (?1, ?2, ?3, ?4)";
    db.prepare_cached(insert)?.execute(params![place, block, line, terms])?;
    let mut insert = db.prepare_cached("INSERT INTO term (segment, term, place) VALUES (?1, ?2, ?3)")?;
    for term in indexed(&event.terms) {
        insert.execute([segment, term, place])?;
    }
    Ok(Some(place))
}

/// The terms of an event that have an index.
fn indexed(terms: &[i64]) -> impl Iterator<Item = i64> {
    let common = common();
    terms.iter().copied().filter(move |term| !common.contains(term))
}

/// The terms as they are stored in `event`.
pub(super) fn terms(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes.as_chunks::<8>().0.iter().map(|term| i64::from_le_bytes(*term))
}

/// When the oldest block came, and its position.
pub(super) fn oldest(db: &Connection) -> rusqlite::Result<Option<(u64, String)>> {
    let select = "SELECT came, position FROM block ORDER BY id LIMIT 1";
    db.prepare_cached(select)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// The time of the event that is first in the order.
pub(super) fn oldest_millis(db: &Connection) -> rusqlite::Result<Option<u64>> {
    let select = "SELECT place FROM event ORDER BY place LIMIT 1";
    let place: Option<i64> = db.prepare_cached(select)?.query_row([], |row| row.get(0)).optional()?;
    Ok(place.map(|place| place::millis(place.cast_unsigned())))
}

/// Removes the block that came first; false where there is none.
pub(super) fn remove_oldest(db: &Connection) -> rusqlite::Result<bool> {
    let select = "SELECT id, segment, places, length(body) FROM block ORDER BY id LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| {
        let (id, segment) = (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?);
        Ok((id, segment, row.get::<_, Vec<u8>>(2)?, row.get::<_, u64>(3)?))
    };
    let Some((id, segment, places, bytes)) = db.prepare_cached(select)?.query_row([], row).optional()? else {
        return Ok(false);
    };
    let mut removed: u64 = 0;
    for place in terms(&places) {
        let delete = "DELETE FROM event WHERE place = ?1 RETURNING terms";
        let of: Option<Vec<u8>> = db.prepare_cached(delete)?.query_row([place], |row| row.get(0)).optional()?;
        let all: Vec<i64> = terms(&of.unwrap_or_default()).collect();
        let mut delete = db.prepare_cached("DELETE FROM term WHERE segment = ?1 AND term = ?2 AND place = ?3")?;
        for term in indexed(&all) {
            delete.execute([segment, term, place])?;
        }
        removed += 1;
    }
    db.prepare_cached("DELETE FROM block WHERE id = ?1")?.execute([id])?;
    segments::drop_before_oldest(db)?;
    db.prepare_cached("UPDATE kept SET events = max(events - ?1, 0), bytes = max(bytes - ?2, 0)")?
        .execute([removed, bytes])?;
    Ok(true)
}

/// Removes everything.
pub(super) fn clear(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(
        "DELETE FROM term; DELETE FROM segment; DELETE FROM event; DELETE FROM block;
         UPDATE kept SET events = 0, bytes = 0",
    )
}

/// The bytes of the pages that are in use.
pub(super) fn used_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
    Ok((number("page_count")?).saturating_sub(number("freelist_count")?).saturating_mul(number("page_size")?))
}

/// Gives some free pages back to the volume, if there are many of them.
pub(super) fn shrink(db: &Connection, all: bool) -> rusqlite::Result<()> {
    /// The free pages that stay for the next events, and those that are given back in one step.
    const PAGES: (u64, u64) = (1024, 512);
    let number = |pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
    let (free, pages) = (number("freelist_count")?, number("page_count")?);
    if all || (free > PAGES.0 && free > pages / 4) {
        let step = if all { free } else { PAGES.1 };
        let mut vacuum = db.prepare(&format!("PRAGMA incremental_vacuum({step})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}
