//! A search in a file of events: through the index of the most telling filter, newest first, with a bound on its work.

use std::collections::HashMap;

use rusqlite::{Connection, Row};

use super::terms::{is_common, term};
use super::{EventField, EventPage, EventQuery, FoundEvent, MAX_EXAMINED, block, place, segments, tables};

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
    let mut building =
        PageBuilder { db, query, wanted, page: EventPage::default(), texts: Texts::default(), bytes: 0, last: None };
    match driver(db, query, (from, until))? {
        Some(term) => {
            let mut places = segments::Places::of(db, term, (from, until))?;
            let mut one = db.prepare_cached("SELECT place, block, line, terms FROM event WHERE place = ?1")?;
            while let Some(place) = places.next()? {
                let mut rows = one.query([place])?;
                if let Some(row) = rows.next()?
                    && !building.look(row)?
                {
                    return Ok(building.page);
                }
            }
        }
        None => {
            let select =
                "SELECT place, block, line, terms FROM event WHERE place >= ?1 AND place < ?2 ORDER BY place DESC";
            let mut all = db.prepare_cached(select)?;
            let mut rows = all.query([from, until])?;
            while let Some(row) = rows.next()? {
                if !building.look(row)? {
                    return Ok(building.page);
                }
            }
        }
    }
    building.page.complete = true;
    Ok(building.page)
}

/// A page while it is made.
struct PageBuilder<'a> {
    db: &'a Connection,
    query: &'a EventQuery,
    wanted: Vec<i64>,
    page: EventPage,
    texts: Texts,
    bytes: usize,
    /// The place of the event that was examined last.
    last: Option<u64>,
}

impl PageBuilder<'_> {
    /// Examines the next event. False where the page ends before it, and goes on with the next one.
    fn look(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let limit = usize::try_from(self.query.limit).unwrap_or(usize::MAX);
        let is_full = self.page.events.len() >= limit || self.bytes >= MAX_PAGE_BYTES;
        if is_full || self.page.examined >= MAX_EXAMINED {
            (self.page.next, self.page.complete) = (self.last, is_full);
            return Ok(false);
        }
        self.page.examined += 1;
        let at = row.get::<_, i64>(0)?.cast_unsigned();
        self.last = Some(at);
        let has: Vec<i64> = tables::terms(row.get_ref(3)?.as_blob()?).collect();
        if self.wanted.iter().all(|term| has.contains(term))
            && let Some(line) = self.texts.line(self.db, row.get(1)?, row.get(2)?)?
        {
            self.bytes += line.len();
            self.page.events.push(FoundEvent { at_millis: place::millis(at), line });
        }
        Ok(true)
    }
}

/// The hash whose index the search goes through: that of the value which the fewest events have, as far as they are counted. `None` if
/// the search goes through all events.
fn driver(db: &Connection, query: &EventQuery, (from, until): (i64, i64)) -> rusqlite::Result<Option<i64>> {
    let mut best: Option<(u32, EventField, i64)> = None;
    for (field, value) in query.filters.iter().filter(|(field, value)| !is_common(*field, value)) {
        let hash = term(*field, value);
        let count = segments::count(db, hash, (from, until), COUNTED)?;
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
