//! Segments of a file of events: those that came one after the other, with an index of their own.

use std::collections::{BinaryHeap, VecDeque};

use rusqlite::{Connection, OptionalExtension as _, params};

/// The places that are read at a time of one segment.
const READ: usize = 128;

/// The segment that further events go to: the last one, or a new one where that has `most` events.
pub(super) fn current(db: &Connection, most: u64) -> rusqlite::Result<i64> {
    let select = "SELECT id, events FROM segment ORDER BY id DESC LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?));
    if let Some((id, events)) = db.prepare_cached(select)?.query_row([], row).optional()? {
        return Ok(if events < most { id } else { id + 1 });
    }
    // A block all of whose events were there already has a segment without a row.
    let of_block = "SELECT segment FROM block ORDER BY id DESC LIMIT 1";
    Ok(db.prepare_cached(of_block)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(1))
}

/// What is added to a segment.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) events: u64,
    /// Between which places; `None` while there is none.
    between: Option<(i64, i64)>,
}

impl Added {
    pub(super) fn count(&mut self, place: i64) {
        self.events += 1;
        let (first, last) = self.between.unwrap_or((place, place));
        self.between = Some((first.min(place), last.max(place)));
    }
}

/// Notes what was added to a segment, which is made if it is new.
pub(super) fn grow(db: &Connection, segment: i64, added: &Added) -> rusqlite::Result<()> {
    let Some((first, last)) = added.between else { return Ok(()) };
    let note = "INSERT INTO segment (id, first, last, events) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET
        first = min(first, excluded.first), last = max(last, excluded.last), events = events + excluded.events";
    db.prepare_cached(note)?.execute(params![segment, first, last, added.events]).map(drop)
}

/// Forgets the segments whose blocks are all removed: blocks are removed in the order in which they came.
pub(super) fn drop_before_oldest(db: &Connection) -> rusqlite::Result<()> {
    let oldest = "SELECT segment FROM block ORDER BY id LIMIT 1";
    let oldest: Option<i64> = db.prepare_cached(oldest)?.query_row([], |row| row.get(0)).optional()?;
    db.prepare_cached("DELETE FROM segment WHERE id < ?1")?.execute([oldest.unwrap_or(i64::MAX)]).map(drop)
}

/// How many events have a term between two places, as far as `most`.
pub(super) fn count(db: &Connection, term: i64, (from, until): (i64, i64), most: u32) -> rusqlite::Result<u32> {
    let select = "SELECT count(*) FROM (
        SELECT 1 FROM term WHERE segment = ?1 AND term = ?2 AND place >= ?3 AND place < ?4 LIMIT ?5)";
    let mut select = db.prepare_cached(select)?;
    let mut counted = 0;
    for (segment, _) in between(db, (from, until))?.into_iter().rev() {
        let row = params![segment, term, from, until, most - counted];
        counted += select.query_row(row, |row| row.get::<_, u32>(0))?;
        if counted >= most {
            return Ok(most);
        }
    }
    Ok(counted)
}

/// The segments with events between two places, each with its last place; in the order of that.
fn between(db: &Connection, (from, until): (i64, i64)) -> rusqlite::Result<Vec<(i64, i64)>> {
    let select = "SELECT id, last FROM segment WHERE last >= ?1 AND first < ?2 ORDER BY last, id";
    db.prepare_cached(select)?.query_map([from, until], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The places of the events that have a term, the last first, over all segments. Those of late events are in later segments, so that several
/// are read side by side.
pub(super) struct Places<'a> {
    db: &'a Connection,
    term: i64,
    from: i64,
    until: i64,
    /// Segments that are not read yet, each with its last place, in the order of that.
    waiting: Vec<(i64, i64)>,
    open: Vec<Run>,
    /// The next place of each segment that is read, with its number in `open`.
    heads: BinaryHeap<(i64, usize)>,
}

/// A segment that is read.
struct Run {
    segment: i64,
    places: VecDeque<i64>,
    has_more: bool,
}

impl<'a> Places<'a> {
    pub(super) fn of(db: &'a Connection, term: i64, (from, until): (i64, i64)) -> rusqlite::Result<Places<'a>> {
        let waiting = between(db, (from, until))?;
        Ok(Places { db, term, from, until, waiting, open: Vec::new(), heads: BinaryHeap::new() })
    }

    /// The next place; `None` at the end.
    pub(super) fn next(&mut self) -> rusqlite::Result<Option<i64>> {
        let is_due = |last: i64, heads: &BinaryHeap<(i64, usize)>| heads.peek().is_none_or(|(head, _)| last >= *head);
        while let Some((segment, _)) = self.waiting.pop_if(|(_, last)| is_due(*last, &self.heads)) {
            self.open.push(Run { segment, places: VecDeque::new(), has_more: true });
            self.advance(self.open.len() - 1, self.until)?;
        }
        let Some((place, run)) = self.heads.pop() else { return Ok(None) };
        self.advance(run, place)?;
        Ok(Some(place))
    }

    /// Makes the next place of a segment, before `until`, one of the heads.
    fn advance(&mut self, number: usize, until: i64) -> rusqlite::Result<()> {
        let Some(run) = self.open.get_mut(number) else { return Ok(()) };
        if run.places.is_empty() && run.has_more {
            let select = "SELECT place FROM term WHERE segment = ?1 AND term = ?2 AND place >= ?3 AND place < ?4
                ORDER BY place DESC LIMIT ?5";
            let mut select = self.db.prepare_cached(select)?;
            let rows = select.query_map(params![run.segment, self.term, self.from, until, READ], |row| row.get(0))?;
            run.places = rows.collect::<rusqlite::Result<_>>()?;
            run.has_more = run.places.len() >= READ;
        }
        if let Some(place) = run.places.pop_front() {
            self.heads.push((place, number));
        }
        Ok(())
    }
}
