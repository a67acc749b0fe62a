//! [`CountStore`] on the embedded file.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::counts::{
    AddOutcome, BudgetTake, BudgetTaken, CountStore, Counted, MAX_COUNT_ROWS, MAX_COUNT_ROWS_OF_NODE, SetAdd, SetAdded,
    TakeOutcome,
};
use super::{Pending, SqliteStore};

impl CountStore for SqliteStore {
    fn budget_take(&self, take: BudgetTake) -> Pending<'_, BudgetTaken> {
        Box::pin(self.write(move |db| budget_take(db, &take)))
    }

    fn set_add(&self, add: SetAdd) -> Pending<'_, SetAdded> {
        Box::pin(self.write(move |db| set_add(db, &add)))
    }

    fn counts_sweep(&self, until_millis: u64) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| Ok(sweep(db, until_millis, BUDGETS)? + sweep(db, until_millis, MEMBERS)?)))
    }
}

/// The tables, as rows are counted under.
const BUDGETS: &str = "budget";
const MEMBERS: &str = "set_member";
/// The count of all rows is under this in place of a node, whose id is never empty.
const ALL: &str = "";

fn budget_take(db: &Connection, BudgetTake { of, amount, limit }: &BudgetTake) -> rusqlite::Result<BudgetTaken> {
    let select = "SELECT slice, used FROM budget WHERE scope = ?1 AND ref_key = ?2 AND slice >= ?3 ORDER BY slice DESC";
    let mut rows = db.prepare_cached(select)?;
    let rows = rows.query_map(params![of.scope, signed(of.key), of.first], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sums = rows.collect::<rusqlite::Result<Vec<(u64, u32)>>>()?;
    let used: u64 = sums.iter().map(|(_, used)| u64::from(*used)).sum();
    if used.saturating_add(u64::from(*amount)) > (*limit).min(u64::from(u32::MAX)) {
        return Ok(BudgetTaken { outcome: TakeOutcome::Over, sums });
    }
    match sums.iter_mut().find(|(slice, _)| *slice == of.slice) {
        Some((_, used)) => {
            *used = used.saturating_add(*amount);
            let update = "UPDATE budget SET used = ?4 WHERE scope = ?1 AND ref_key = ?2 AND slice = ?3";
            db.prepare_cached(update)?.execute(params![of.scope, signed(of.key), of.slice, *used])?;
        }
        None if !has_room(db, BUDGETS, &of.node)? => return Ok(BudgetTaken { outcome: TakeOutcome::Full, sums }),
        None => {
            let insert =
                "INSERT INTO budget (scope, ref_key, slice, used, until_millis, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            db.prepare_cached(insert)?.execute(params![
                of.scope,
                signed(of.key),
                of.slice,
                amount,
                of.until_millis,
                of.node
            ])?;
            added(db, BUDGETS, &of.node, 1)?;
            let place = sums.iter().take_while(|(slice, _)| *slice > of.slice).count();
            sums.insert(place, (of.slice, *amount));
        }
    }
    Ok(BudgetTaken { outcome: TakeOutcome::Taken, sums })
}

fn set_add(db: &Connection, SetAdd { of, member, cap, known }: &SetAdd) -> rusqlite::Result<SetAdded> {
    let select =
        "SELECT member, slice FROM set_member WHERE scope = ?1 AND ref_key = ?2 AND slice >= ?3 ORDER BY member";
    let mut rows = db.prepare_cached(select)?;
    let rows = rows.query_map(params![of.scope, signed(of.key), of.first], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
    })?;
    let mut members = rows.collect::<rusqlite::Result<Vec<(u64, u64)>>>()?;
    let all: BTreeSet<u64> = members.iter().map(|(member, _)| *member).chain(known.iter().copied()).collect();
    let size = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let answer = |outcome, size, members| Ok(SetAdded { outcome, size, members });
    let is_known = all.contains(member);
    if !is_known && size >= *cap {
        return answer(AddOutcome::Over, size, members);
    }
    match members.iter_mut().find(|(known, _)| known == member) {
        Some((_, slice)) if *slice < of.slice => {
            *slice = of.slice;
            write_member(db, of, *member)?;
        }
        Some(_) => {}
        // A row of it may be there that has left the window.
        None if !exists(db, of, *member)? && !has_room(db, MEMBERS, &of.node)? => {
            return answer(AddOutcome::Full, size, members);
        }
        None => {
            write_member(db, of, *member)?;
            members.push((*member, of.slice));
        }
    }
    let outcome = if is_known { AddOutcome::Known } else { AddOutcome::Added };
    answer(outcome, size + u32::from(!is_known), members)
}

fn exists(db: &Connection, of: &Counted, member: u64) -> rusqlite::Result<bool> {
    let select = "SELECT 1 FROM set_member WHERE scope = ?1 AND ref_key = ?2 AND member = ?3";
    let found = db.prepare_cached(select)?.query_row(params![of.scope, signed(of.key), signed(member)], |_| Ok(()));
    Ok(found.optional()?.is_some())
}

fn write_member(db: &Connection, of: &Counted, member: u64) -> rusqlite::Result<()> {
    let update =
        "UPDATE set_member SET slice = ?4, until_millis = ?5 WHERE scope = ?1 AND ref_key = ?2 AND member = ?3";
    let (key, member) = (signed(of.key), signed(member));
    let updated = db.prepare_cached(update)?.execute(params![of.scope, key, member, of.slice, of.until_millis])?;
    if updated == 0 {
        let insert = "INSERT INTO set_member (scope, ref_key, member, slice, until_millis, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        db.prepare_cached(insert)?.execute(params![of.scope, key, member, of.slice, of.until_millis, of.node])?;
        added(db, MEMBERS, &of.node, 1)?;
    }
    Ok(())
}

/// Whether one more row of this node fits.
fn has_room(db: &Connection, table: &str, node: &str) -> rusqlite::Result<bool> {
    let select = "SELECT rows FROM count_rows WHERE kind = ?1 AND node = ?2";
    let mut select = db.prepare_cached(select)?;
    let mut rows = |node: &str| -> rusqlite::Result<u32> {
        Ok(select.query_row(params![table, node], |row| row.get(0)).optional()?.unwrap_or(0))
    };
    Ok(rows(ALL)? < MAX_COUNT_ROWS && rows(node)? < MAX_COUNT_ROWS_OF_NODE)
}

/// Rows of a node were added or, with a negative number, removed.
fn added(db: &Connection, table: &str, node: &str, rows: i64) -> rusqlite::Result<()> {
    let upsert = "INSERT INTO count_rows (kind, node, rows) VALUES (?1, ?2, ?3)
                  ON CONFLICT (kind, node) DO UPDATE SET rows = rows + excluded.rows";
    let mut upsert = db.prepare_cached(upsert)?;
    for node in [ALL, node] {
        upsert.execute(params![table, node, rows])?;
    }
    Ok(())
}

fn sweep(db: &Connection, until_millis: u64, table: &'static str) -> rusqlite::Result<u64> {
    let select = format!("SELECT node, count(*) FROM {table} WHERE until_millis <= ?1 GROUP BY node");
    let mut gone = db.prepare_cached(&select)?;
    let gone = gone.query_map([until_millis], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let gone = gone.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
    if gone.is_empty() {
        return Ok(0);
    }
    let removed = db.execute(&format!("DELETE FROM {table} WHERE until_millis <= ?1"), [until_millis])?;
    for (node, rows) in gone {
        added(db, table, &node, -rows)?;
    }
    db.execute("DELETE FROM count_rows WHERE rows <= 0", [])?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}

/// SQLite has no unsigned numbers of 64 bits.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}
