//! A search in a file of events: through the index of the most telling filter, newest first, with a bound on its work.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::terms::{is_common, term};
use super::{EventField, EventPage, EventQuery, FoundEvent, MAX_EXAMINED, block, place, tables};

/// The bytes of the events of one page; a page with fewer events goes on after it.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// How many events of a value are counted to compare it with others.
const COUNTED: u32 = 2000;

/// Carries out a query.
pub(super) fn run(db: &Connection, query: &EventQuery) -> rusqlite::Result<EventPage> {
    let until = query.until_millis.map_or(u64::MAX, place::first).min(query.before.unwrap_or(u64::MAX));
    let (from, until) = (place::first(query.from_millis), until.min(i64::MAX.cast_unsigned()));
    let wanted: Vec<i64> = query.filters.iter().map(|(field, value)| term(*field, value)).collect();
    let (from, until) = (from.cast_signed(), until.cast_signed());
    let driver = driver(db, query, (from, until))?;
    let sql = match driver {
        Some(_) => {
            "SELECT e.place, e.block, e.line, e.terms FROM term AS t JOIN event AS e ON e.place = t.place
             WHERE t.term = ?4 AND t.place >= ?1 AND t.place < ?2 ORDER BY t.place DESC LIMIT ?3"
        }
        None => {
            "SELECT place, block, line, terms FROM event WHERE place >= ?1 AND place < ?2 AND ?4 = 0
             ORDER BY place DESC LIMIT ?3"
        }
    };
    let mut select = db.prepare_cached(sql)?;
    // One more, to see whether there is more.
    let mut rows = select.query(params![from, until, MAX_EXAMINED + 1, driver.unwrap_or(0)])?;
    let (mut page, mut texts, mut bytes) = (EventPage { complete: true, ..EventPage::default() }, Texts::default(), 0);
    let mut last = None;
    while let Some(row) = rows.next()? {
        if page.events.len() >= usize::try_from(query.limit).unwrap_or(usize::MAX) || bytes >= MAX_PAGE_BYTES {
            page.next = last;
            return Ok(page);
        }
        if page.examined >= MAX_EXAMINED {
            (page.next, page.complete) = (last, false);
            return Ok(page);
        }
        page.examined += 1;
        let at = row.get::<_, i64>(0)?.cast_unsigned();
        last = Some(at);
        let has: Vec<i64> = tables::terms(row.get_ref(3)?.as_blob()?).collect();
        if wanted.iter().all(|term| has.contains(term))
            && let Some(line) = texts.line(db, row.get(1)?, row.get(2)?)?
        {
            bytes += line.len();
            page.events.push(FoundEvent { at_millis: place::millis(at), line });
        }
    }
    Ok(page)
}

/// The hash whose index the search goes through: that of the value which the fewest events have, as far as they are counted. `None` if
/// the search goes through all events.
fn driver(db: &Connection, query: &EventQuery, (from, until): (i64, i64)) -> rusqlite::Result<Option<i64>> {
    let mut best: Option<(u32, EventField, i64)> = None;
    for (field, value) in query.filters.iter().filter(|(field, value)| !is_common(*field, value)) {
        let count = "SELECT count(*) FROM (SELECT 1 FROM term WHERE term = ?1 AND place >= ?2 AND place < ?3 LIMIT ?4)";
        let hash = term(*field, value);
        let count = db.prepare_cached(count)?.query_row(params![hash, from, until, COUNTED], |row| row.get(0))?;
        if best.is_none_or(|(fewest, of, _)| (count, *field) < (fewest, of)) {
            best = Some((count, *field, hash));
        }
    }
    Ok(best.map(|(_, _, hash)| hash))
}

/// The blocks that a page has read. Events of one time are mostly in the same one.
#[derive(Default)]
struct Texts(HashMap<i64, Vec<u8>>);

/// The blocks that are kept while a page is made.
const MAX_TEXTS: usize = 32;

impl Texts {
    fn line(&mut self, db: &Connection, id: i64, number: usize) -> rusqlite::Result<Option<Vec<u8>>> {
        if !self.0.contains_key(&id) {
            let select = "SELECT body FROM block WHERE id = ?1";
            let body: Vec<u8> = db.prepare_cached(select)?.query_row([id], |row| row.get(0))?;
            if self.0.len() >= MAX_TEXTS {
                self.0.clear();
            }
            self.0.insert(id, block::read(&body).unwrap_or_default());
        }
        let text = self.0.get(&id).map(Vec::as_slice).unwrap_or_default();
        Ok(block::lines(text).nth(number).map(|(_, line)| line.to_vec()))
    }
}
