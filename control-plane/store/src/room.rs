//! Room for a further ban: how many there may be in all and on ranges, and which one gives way.

use std::collections::HashMap;

use rusqlite::Connection;

use super::ban_rows::{count, is_listed};
use super::fabric::{Ban, MAX_BANS, MAX_RANGES};
use super::places;

/// How many bans there are, counted when it matters first and kept up to date within one transaction: that takes longer the more
/// there are.
#[derive(Default)]
pub(super) struct Room {
    all: Option<u32>,
    ranges: Option<u32>,
    /// How many bans each node has that were not made by hand.
    by_node: Option<HashMap<String, u32>>,
}

const ALL: &str = "SELECT count(*) FROM ban";
const RANGES: &str = "SELECT count(*) FROM ban WHERE is_range = 1";

impl Room {
    /// Makes room for a further ban; false where there is none. What an operator has made never gives way.
    pub(super) fn make(&mut self, db: &Connection, ban: &Ban, now: u64) -> rusqlite::Result<bool> {
        if is_listed(&ban.key) && !self.make_range(db, ban, now)? {
            return Ok(false);
        }
        if ban.hand_until == 0 {
            for node in places::make_room(db, ban)? {
                self.released(&node);
            }
        }
        let all = counted(db, &mut self.all, ALL)?;
        if all >= MAX_BANS {
            let Some(node) = self.largest(db, &ban.node)? else { return Ok(false) };
            let soonest = "DELETE FROM ban WHERE rowid IN (
                SELECT rowid FROM ban WHERE hand_until = 0 AND node = ?1 ORDER BY until_millis LIMIT 1)";
            if db.prepare_cached(soonest)?.execute([&node])? == 0 {
                return Ok(false);
            }
            self.ranges = None;
            self.released(&node);
        }
        self.all = self.all.map(|all| all + 1);
        if ban.hand_until == 0
            && let Some(by_node) = &mut self.by_node
        {
            *by_node.entry(ban.node.clone()).or_default() += 1;
        }
        Ok(true)
    }

    /// The same in the list of ranges.
    fn make_range(&mut self, db: &Connection, ban: &Ban, now: u64) -> rusqlite::Result<bool> {
        let mut ranges = counted(db, &mut self.ranges, RANGES)?;
        if ranges >= MAX_RANGES {
            db.execute("DELETE FROM ban WHERE is_range = 1 AND until_millis <= ?1", [now])?;
            *self = Room::default();
            ranges = counted(db, &mut self.ranges, RANGES)?;
        }
        if ranges >= MAX_RANGES && ban.hand_until > 0 {
            let soonest = "DELETE FROM ban WHERE rowid IN (
                SELECT rowid FROM ban WHERE is_range = 1 AND hand_until = 0 ORDER BY until_millis LIMIT 1)";
            let gone = db.prepare_cached(soonest)?.execute([])?;
            *self = Room::default();
            ranges = ranges.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        if ranges >= MAX_RANGES {
            return Ok(false);
        }
        self.ranges = Some(ranges + 1);
        Ok(true)
    }

    /// The node that has most bans; among equals the one that asks.
    fn largest(&mut self, db: &Connection, asks: &str) -> rusqlite::Result<Option<String>> {
        if self.by_node.is_none() {
            let select = "SELECT node, count(*) FROM ban WHERE hand_until = 0 GROUP BY node";
            let mut counts = db.prepare_cached(select)?;
            let counts = counts.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            self.by_node = Some(counts.collect::<rusqlite::Result<_>>()?);
        }
        let counts = self.by_node.iter().flatten().filter(|(_, count)| **count > 0);
        Ok(counts.max_by_key(|(node, count)| (**count, node.as_str() == asks)).map(|(node, _)| node.clone()))
    }

    /// A ban of this node is gone.
    fn released(&mut self, node: &str) {
        self.all = self.all.map(|all| all.saturating_sub(1));
        if let Some(count) = self.by_node.as_mut().and_then(|by_node| by_node.get_mut(node)) {
            *count = count.saturating_sub(1);
        }
    }
}

fn counted(db: &Connection, known: &mut Option<u32>, select: &str) -> rusqlite::Result<u32> {
    match *known {
        Some(known) => Ok(known),
        None => Ok(*known.insert(count(db, select)?)),
    }
}
