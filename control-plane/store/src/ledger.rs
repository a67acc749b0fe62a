//! The ledger in the embedded store: charges of each identity in a sliding window.
//!
//! Charges of one identity within a sixtieth of the window share a row that counts until the last of them has left the
//! window, so that an identity never has more than 61 rows.

use rusqlite::{Connection, OptionalExtension, params};

use super::bans;
use super::fabric::{Ban, Charge, LAST_MOMENT, LedgerRules, MAX_LEDGER, Promotion, Step};
use super::room::Room;

pub(super) fn charge(
    db: &Connection,
    charges: Vec<Charge>,
    rules: LedgerRules,
    now: u64,
) -> rusqlite::Result<Vec<Promotion>> {
    let slot_millis = (rules.window_millis / 60).max(1);
    let since = now.saturating_sub(rules.window_millis);
    let mut promoted = Vec::new();
    let mut room = Room::default();
    for charge in charges {
        let at = charge.at.min(now);
        db.prepare_cached(
            "INSERT INTO ledger (ref_key, slot, at, points) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (ref_key, slot) DO UPDATE SET at = max(at, excluded.at), points = points + excluded.points",
        )?
        .execute(params![charge.key, at / slot_millis, at, charge.points])?;
        let total = score(db, &charge.key, since)?;
        if total >= rules.threshold {
            forget(db, &charge.key)?;
            promoted.push(promote(db, charge, total, rules, now, &mut room)?);
        }
    }
    make_room(db)?;
    Ok(promoted)
}

pub(super) fn score(db: &Connection, key: &str, since: u64) -> rusqlite::Result<f64> {
    let select = "SELECT total(points) FROM ledger WHERE ref_key = ?1 AND at > ?2";
    db.prepare_cached(select)?.query_row(params![key, since], |row| row.get(0))
}

pub(super) fn top(db: &Connection, since: u64, limit: u32) -> rusqlite::Result<Vec<(String, f64)>> {
    let select = "SELECT ref_key, total(points) AS score FROM ledger WHERE at > ?1
                  GROUP BY ref_key ORDER BY score DESC, ref_key LIMIT ?2";
    db.prepare_cached(select)?.query_map(params![since, limit], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

pub(super) fn forget(db: &Connection, key: &str) -> rusqlite::Result<bool> {
    Ok(db.prepare_cached("DELETE FROM ledger WHERE ref_key = ?1")?.execute([key])? > 0)
}

pub(super) fn sweep(db: &Connection, until: u64) -> rusqlite::Result<()> {
    db.execute("DELETE FROM ledger WHERE at <= ?1", [until]).map(|_| ())
}

fn promote(
    db: &Connection,
    charge: Charge,
    total: f64,
    rules: LedgerRules,
    now: u64,
    room: &mut Room,
) -> rusqlite::Result<Promotion> {
    let Charge { key, address, node, .. } = charge;
    let reason = format!("{total} points within {} s", rules.window_millis / 1000);
    let step = Step { at: now, action: "ban".to_owned(), by: "ledger".to_owned(), detail: reason.clone() };
    let ban = Ban {
        key: key.clone(),
        reason,
        tags: vec!["ledger".to_owned()],
        score: total.min(100.0),
        issued_at: now,
        until: now.saturating_add(rules.ban_millis).min(LAST_MOMENT),
        issued_by: "ledger".to_owned(),
        timeline: vec![step],
        address: address.clone(),
        node,
        ..Ban::default()
    };
    Ok(Promotion { key, address, total, issued: bans::issue_in(db, ban, now, room)? })
}

/// Forgets those longest without a charge. Counted in rows first, which is quick: fewer rows are fewer identities.
fn make_room(db: &Connection) -> rusqlite::Result<()> {
    let rows: u32 = db.prepare_cached("SELECT count(*) FROM ledger")?.query_row([], |row| row.get(0))?;
    if rows <= MAX_LEDGER {
        return Ok(());
    }
    let oldest_kept: Option<u64> = db
        .prepare_cached("SELECT max(at) AS last FROM ledger GROUP BY ref_key ORDER BY last DESC LIMIT 1 OFFSET ?1")?
        .query_row([MAX_LEDGER], |row| row.get(0))
        .optional()?;
    let Some(until) = oldest_kept else { return Ok(()) };
    let delete = "DELETE FROM ledger WHERE ref_key IN (
        SELECT ref_key FROM ledger GROUP BY ref_key HAVING max(at) <= ?1)";
    db.prepare_cached(delete)?.execute([until]).map(|_| ())
}
