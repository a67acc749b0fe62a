//! Bans and the allowlist in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::ban_pages;
use super::ban_rows::{BANS, ban, count, is_listed};
use super::fabric::{
    Allowance, Ban, Issued, LAST_MOMENT, LIFT_KEPT_MILLIS, MAX_ALLOWED, MAX_ALLOWED_RANGES, MAX_LIFTS, MAX_STEPS,
    Standing, Step,
};
use super::places::{self, Run};
use super::room::Room;
use super::setback::Held;
use base::identity::Identity;

/// As the store's interface says, each ban in its turn.
pub(super) fn issue_all(db: &Connection, bans: Vec<Ban>, now: u64) -> rusqlite::Result<Vec<Issued>> {
    let mut room = Room::default();
    bans.into_iter().map(|ban| issue_in(db, ban, now, &mut room)).collect()
}

pub(super) fn issue_in(db: &Connection, mut ban: Ban, now: u64, room: &mut Room) -> rusqlite::Result<Issued> {
    if let Some(entry) = allowance_over(db, &ban.key, now)? {
        return Ok(Issued::Allowlisted(entry));
    }
    // The address itself may be on the list, where the ban is on its network or on whom it belongs to.
    if !ban.address.is_empty()
        && let Some(entry) = allowance_over(db, &format!("ip:{}", ban.address), now)?
    {
        return Ok(Issued::Allowlisted(entry));
    }
    if let Some(at) = lifted_at(db, &ban.key)?.filter(|at| !ban.by_hand && ban.issued_at <= *at) {
        return Ok(Issued::Lifted(at));
    }
    ban.until = ban.until.min(LAST_MOMENT);
    ban.hand_until = if ban.by_hand { ban.until } else { 0 };
    let ban = match one(db, &ban.key, now)? {
        Some(held) if held.until > ban.until && !ban.by_hand => return Ok(Issued::Live(held)),
        Some(held) => {
            let history = held.timeline.into_iter().chain(ban.timeline).collect();
            Ban {
                until: ban.until.max(held.until),
                hand_until: ban.hand_until.max(held.hand_until),
                by_hand: ban.by_hand || held.by_hand,
                issued_at: held.issued_at,
                timeline: history,
                // The room that it takes is where it was: a repeated request does not move another node's ban.
                address: if ban.by_hand || held.address.is_empty() { ban.address } else { held.address },
                node: held.node,
                ..ban
            }
        }
        None => {
            if !room.make(db, &ban, now)? {
                return Ok(Issued::Full);
            }
            ban
        }
    };
    write(db, ban).map(Issued::Live)
}

/// Those of these networks that a run of neighbours is to be banned as now.
pub(super) fn runs(db: &Connection, networks: Vec<Run>, now: u64) -> rusqlite::Result<Vec<Run>> {
    let mut found = Vec::new();
    for run in networks {
        if wider(db, &run, now)?.is_some() {
            found.push(run);
        }
    }
    Ok(found)
}

/// Bans those of these networks that a run of neighbours is to be banned as.
pub(super) fn widen(db: &Connection, networks: &[Run], now: u64) -> rusqlite::Result<Vec<Ban>> {
    let (mut made, mut room) = (Vec::new(), Room::default());
    for run in networks {
        if let Some(ban) = wider(db, run, now)?
            && let Issued::Live(ban) = issue_in(db, ban, now, &mut room)?
        {
            made.push(ban);
        }
    }
    Ok(made)
}

/// The ban on a network of which enough neighbours are banned; `None` if they are too few, or if it is banned already.
fn wider(db: &Connection, run: &Run, now: u64) -> rusqlite::Result<Option<Ban>> {
    let key = run.network.key();
    if one(db, &key, now)?.is_some() {
        return Ok(None);
    }
    let lifted = lifted_at(db, &key)?.unwrap_or(0);
    let neighbours = places::neighbours(db, run, now)?;
    let counted: Vec<&Ban> = neighbours.iter().filter(|ban| ban.issued_at > lifted).collect();
    if counted.len() < run.count || counted.is_empty() {
        return Ok(None);
    }
    let reason = format!("{} networks of {} bits in it are banned", counted.len(), run.bits);
    let step = Step { at: now, action: "ban".to_owned(), by: "control plane".to_owned(), detail: reason.clone() };
    Ok(Some(Ban {
        key,
        reason,
        tags: vec!["neighbours".to_owned()],
        score: counted.iter().map(|ban| ban.score).fold(0.0, f64::max),
        issued_at: now,
        until: counted.iter().map(|ban| ban.until).max().unwrap_or(now),
        issued_by: "control plane".to_owned(),
        timeline: vec![step],
        ..Ban::default()
    }))
}

pub(super) fn extend(db: &Connection, key: &str, by_millis: u64, step: Step) -> rusqlite::Result<Option<Ban>> {
    let Some(mut ban) = one(db, key, step.at)? else {
        return Ok(None);
    };
    ban.until = ban.until.saturating_add(by_millis).min(LAST_MOMENT);
    // The operator who extends it has decided that it holds, under a policy in dry run as well.
    (ban.hand_until, ban.by_hand) = (ban.until, true);
    ban.timeline.push(step);
    write(db, ban).map(Some)
}

pub(super) fn lift(db: &Connection, key: &str, now: u64) -> rusqlite::Result<bool> {
    // The lift is noted even where nothing stood: a gateway may be about to ask for a ban that it has in force.
    let until = "SELECT until_millis FROM ban WHERE ref_key = ?1 AND until_millis > ?2";
    let until: Option<u64> = db.prepare_cached(until)?.query_row(params![key, now], |row| row.get(0)).optional()?;
    db.prepare_cached("DELETE FROM ban WHERE ref_key = ?1")?.execute([key])?;
    note_lift(db, true, key, now, until.unwrap_or(now))?;
    Ok(until.is_some())
}

pub(super) fn lift_all(db: &Connection, now: u64) -> rusqlite::Result<Vec<String>> {
    let keys = ban_pages::keys(db, now)?;
    lift_each(db, &keys, now)?;
    db.execute("DELETE FROM ban", [])?;
    Ok(keys)
}

/// Lifts bans that hold. In statements over all of them: 100,000 that are read, deleted and noted one by one take seconds.
fn lift_each(db: &Connection, keys: &[String], now: u64) -> rusqlite::Result<()> {
    let keys = serde_json::to_string(keys).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let note = "INSERT OR REPLACE INTO lifted (of_ban, ref_key, at, until_millis)
        SELECT 1, ref_key, ?1, min(max(until_millis, ?2), ?3) FROM json_each(?4) CROSS JOIN ban ON ref_key = value
        WHERE until_millis > ?1";
    db.prepare_cached(note)?.execute(params![now, now.saturating_add(LIFT_KEPT_MILLIS), LAST_MOMENT, keys])?;
    db.prepare_cached("DELETE FROM ban WHERE ref_key IN (SELECT value FROM json_each(?1))")?.execute([keys])?;
    Ok(())
}

pub(super) fn note_lost(db: &Connection, mut lost: Held, now: u64) -> rusqlite::Result<Held> {
    let holds = "SELECT EXISTS (SELECT 1 FROM ban WHERE ref_key = ?1 AND until_millis > ?2)";
    let allowed =
        "SELECT EXISTS (SELECT 1 FROM allowed WHERE ref_key = ?1 AND (until_millis IS NULL OR until_millis > ?2))";
    for (of_ban, keys, holds) in [(true, &mut lost.bans, holds), (false, &mut lost.allowed, allowed)] {
        let mut holds = db.prepare(holds)?;
        let mut noted = db.prepare("SELECT EXISTS (SELECT 1 FROM lifted WHERE of_ban = ?1 AND ref_key = ?2)")?;
        for (key, until) in std::mem::take(keys) {
            if holds.query_row(params![key, now], |row| row.get(0))? {
                continue;
            }
            // A lift that is known holds against what was asked for before it.
            if !noted.query_row(params![of_ban, key], |row| row.get(0))? {
                note_lift(db, of_ban, &key, now, until)?;
            }
            keys.insert(key, until);
        }
    }
    Ok(lost)
}

pub(super) fn live(db: &Connection, now: u64) -> rusqlite::Result<Vec<Ban>> {
    let select = format!("{BANS} WHERE until_millis > ?1 ORDER BY ref_key");
    db.prepare_cached(&select)?.query_map([now], ban)?.collect()
}

pub(super) fn standing(db: &Connection, now: u64) -> rusqlite::Result<Vec<Standing>> {
    /// The one part of the evidence that gateways are told.
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Why {
        reason: String,
    }
    let select = format!("{BANS} WHERE until_millis > ?1");
    let read = |row: &Row<'_>| {
        let why: Why = serde_json::from_str(row.get_ref(1)?.as_str()?).unwrap_or_default();
        Ok(Standing { key: row.get(0)?, until: row.get(2)?, hand_until: row.get(3)?, reason: why.reason })
    };
    db.prepare_cached(&select)?.query_map([now], read)?.collect()
}

pub(super) fn lifted(db: &Connection, bans: bool) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT ref_key FROM lifted WHERE of_ban = ?1 ORDER BY at";
    db.prepare_cached(select)?.query_map([bans], |row| row.get(0))?.collect()
}

pub(super) fn allow(
    db: &Connection,
    entry: &Allowance,
    charged: &str,
    lifts: bool,
) -> rusqlite::Result<Option<Vec<String>>> {
    let (range, now) = (is_range(&entry.key), entry.added_at);
    let known: bool =
        db.query_row("SELECT EXISTS (SELECT 1 FROM allowed WHERE ref_key = ?1)", [&entry.key], |row| row.get(0))?;
    if !known {
        db.execute("DELETE FROM allowed WHERE until_millis <= ?1", [now])?;
        let ranges = "SELECT count(*) FROM allowed WHERE is_range = 1";
        if count(db, "SELECT count(*) FROM allowed")? >= MAX_ALLOWED
            || (range && count(db, ranges)? >= MAX_ALLOWED_RANGES)
        {
            return Ok(None);
        }
    }
    let insert = "INSERT OR REPLACE INTO allowed (ref_key, is_range, reason, added_by, added_at, until_millis)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let until = entry.until.map(|until| until.min(LAST_MOMENT));
    db.execute(insert, params![entry.key, range, entry.reason, entry.added_by, entry.added_at, until])?;
    db.execute("DELETE FROM lifted WHERE of_ban = 0 AND ref_key = ?1", [&entry.key])?;
    db.execute("DELETE FROM ledger WHERE ref_key IN (?1, ?2)", [&entry.key, charged])?;
    let released = match Identity::parse(&entry.key) {
        _ if !lifts => Vec::new(),
        Ok(whole) if whole.is_range() => {
            let mut covered = ban_pages::keys(db, now)?;
            covered.retain(|key| Identity::parse(key).is_ok_and(|one| whole.covers(&one)));
            lift_each(db, &covered, now)?;
            covered
        }
        _ => Vec::from_iter(lift(db, &entry.key, now)?.then(|| entry.key.clone())),
    };
    Ok(Some(released))
}

pub(super) fn disallow(db: &Connection, key: &str, now: u64) -> rusqlite::Result<bool> {
    let removed = db.execute("DELETE FROM allowed WHERE ref_key = ?1", [key])? > 0;
    if removed {
        // A gateway that was away may hold the entry for good, so this is kept for as long as there is room.
        note_lift(db, false, key, now, LAST_MOMENT)?;
    }
    Ok(removed)
}

pub(super) fn allowlist(db: &Connection, now: u64) -> rusqlite::Result<Vec<Allowance>> {
    let select = format!("{ALLOWED} WHERE until_millis IS NULL OR until_millis > ?1 ORDER BY ref_key");
    db.prepare_cached(&select)?.query_map([now], allowance)?.collect()
}

/// Forgets what has ended.
pub(super) fn sweep(db: &Connection, now: u64) -> rusqlite::Result<()> {
    db.execute("DELETE FROM ban WHERE until_millis <= ?1", [now])?;
    db.execute("DELETE FROM allowed WHERE until_millis <= ?1", [now])?;
    db.execute("DELETE FROM lifted WHERE until_millis <= ?1", [now])?;
    let superfluous = "DELETE FROM lifted WHERE rowid IN (
        SELECT rowid FROM lifted WHERE of_ban = ?1 ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?2)";
    for of_ban in [true, false] {
        db.execute(superfluous, params![of_ban, MAX_LIFTS])?;
    }
    Ok(())
}

const ALLOWED: &str = "SELECT ref_key, reason, added_by, added_at, until_millis FROM allowed";

fn write(db: &Connection, mut ban: Ban) -> rusqlite::Result<Ban> {
    let superfluous = ban.timeline.len().saturating_sub(MAX_STEPS);
    ban.timeline.drain(..superfluous);
    let json = serde_json::to_string(&ban).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let insert = "INSERT OR REPLACE INTO ban (ref_key, json, until_millis, is_range, hand_until, place, node)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    db.prepare_cached(insert)?.execute(params![
        ban.key,
        json,
        ban.until,
        is_listed(&ban.key),
        ban.hand_until,
        places::of(&ban),
        ban.node
    ])?;
    db.prepare_cached("DELETE FROM lifted WHERE of_ban = 1 AND ref_key = ?1")?.execute([&ban.key])?;
    Ok(ban)
}

pub(super) fn one(db: &Connection, key: &str, now: u64) -> rusqlite::Result<Option<Ban>> {
    let select = format!("{BANS} WHERE ref_key = ?1 AND until_millis > ?2");
    db.prepare_cached(&select)?.query_row(params![key, now], ban).optional()
}

fn allowance(row: &Row<'_>) -> rusqlite::Result<Allowance> {
    Ok(Allowance {
        key: row.get(0)?,
        reason: row.get(1)?,
        added_by: row.get(2)?,
        added_at: row.get(3)?,
        until: row.get(4)?,
    })
}

/// The entry of the allowlist that has this identity, itself or in a range.
fn allowance_over(db: &Connection, key: &str, now: u64) -> rusqlite::Result<Option<Allowance>> {
    let holds = "(until_millis IS NULL OR until_millis > ?1)";
    let itself = format!("{ALLOWED} WHERE {holds} AND ref_key = ?2");
    let found = db.prepare_cached(&itself)?.query_row(params![now, key], allowance).optional()?;
    let identity = Identity::parse(key).ok().filter(|identity| identity.kind() == "ip");
    let (None, Some(identity)) = (&found, identity) else {
        return Ok(found);
    };
    let ranges = format!("{ALLOWED} WHERE {holds} AND is_range = 1 ORDER BY ref_key");
    let ranges: Vec<Allowance> =
        db.prepare_cached(&ranges)?.query_map([now], allowance)?.collect::<rusqlite::Result<_>>()?;
    let over = |entry: &Allowance| Identity::parse(&entry.key).is_ok_and(|range| range.covers(&identity));
    Ok(ranges.into_iter().find(over))
}

fn lifted_at(db: &Connection, key: &str) -> rusqlite::Result<Option<u64>> {
    let select = "SELECT at FROM lifted WHERE of_ban = 1 AND ref_key = ?1";
    db.prepare_cached(select)?.query_row([key], |row| row.get(0)).optional()
}

fn note_lift(db: &Connection, of_ban: bool, key: &str, now: u64, until: u64) -> rusqlite::Result<()> {
    let until = until.max(now.saturating_add(LIFT_KEPT_MILLIS)).min(LAST_MOMENT);
    let insert = "INSERT OR REPLACE INTO lifted (of_ban, ref_key, at, until_millis) VALUES (?1, ?2, ?3, ?4)";
    db.prepare_cached(insert)?.execute(params![of_ban, key, now, until]).map(|_| ())
}

fn is_range(key: &str) -> bool {
    Identity::parse(key).is_ok_and(|identity| identity.is_range())
}
