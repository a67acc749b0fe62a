//! The ledger in the embedded store: charges of each identity in a sliding window.
//!
//! Charges of one identity within a sixtieth of the window share a row that counts until the last of them has left the
//! window, so that an identity never has more than 61 rows.

use base::crowd::{Crowd, Place};
use rusqlite::{Connection, params};

use super::bans;
use super::fabric::{Ban, Charge, LAST_MOMENT, LedgerRules, MAX_LEDGER, Promotion, Step};
use super::room::Room;

pub(super) fn charge(
    db: &Connection,
    charges: Vec<Charge>,
    rules: LedgerRules,
    now: u64,
) -> rusqlite::Result<Vec<Promotion>> {
    charge_within(db, charges, rules, now, MAX_LEDGER)
}

/// The same, with room for so many identities.
fn charge_within(
    db: &Connection,
    charges: Vec<Charge>,
    rules: LedgerRules,
    now: u64,
    most: u32,
) -> rusqlite::Result<Vec<Promotion>> {
    let slot_millis = (rules.window_millis / 60).max(1);
    let since = now.saturating_sub(rules.window_millis);
    let mut promoted = Vec::new();
    let mut room = Room::default();
    // Only an identity that has no row yet takes room.
    let mut is_new = false;
    for charge in charges {
        let at = charge.at.min(now);
        is_new = is_new || !is_known(db, &charge.key)?;
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
    if is_new {
        make_room(db, most)?;
    }
    Ok(promoted)
}

fn is_known(db: &Connection, key: &str) -> rusqlite::Result<bool> {
    let select = "SELECT EXISTS (SELECT 1 FROM ledger WHERE ref_key = ?1)";
    db.prepare_cached(select)?.query_row([key], |row| row.get(0))
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

/// Forgets identities where there are more than `most`, a fiftieth more than that, so that they are not read again for each that comes
/// after. Of a network that has more than its share those longest without a charge go first, else those of all: see [`Crowd`]. Counted in
/// rows first, which is quick: fewer rows are fewer identities.
fn make_room(db: &Connection, most: u32) -> rusqlite::Result<()> {
    let count = |select: &str| db.prepare_cached(select)?.query_row([], |row| row.get::<_, u32>(0));
    if count("SELECT count(*) FROM ledger")? <= most {
        return Ok(());
    }
    let held = count("SELECT count(*) FROM (SELECT 1 FROM ledger GROUP BY ref_key)")?;
    if held <= most {
        return Ok(());
    }
    let mut crowd = Crowd::default();
    let mut select = db.prepare_cached("SELECT ref_key, max(at) FROM ledger GROUP BY ref_key")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (key, at): (String, u64) = (row.get(0)?, row.get(1)?);
        crowd.add(Place::of(&key), at, key);
    }
    let room = usize::try_from(most).unwrap_or(usize::MAX);
    let mut delete = db.prepare_cached("DELETE FROM ledger WHERE ref_key = ?1")?;
    for _ in 0..held - most + most / 50 {
        let Some((_, key)) = crowd.pop(room) else { break };
        delete.execute([key])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: LedgerRules = LedgerRules { window_millis: 600_000, threshold: 100.0, ban_millis: 60_000 };
    const NOW: u64 = 1_900_000_000_000;

    fn store() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut db).unwrap();
        db
    }

    fn charge_at(db: &Connection, key: String, points: f64, at: u64) {
        let charge = Charge { key, points, at, address: String::new(), node: "n1".into() };
        charge_within(db, vec![charge], RULES, at, 1000).unwrap();
    }

    fn held(db: &Connection) -> Vec<String> {
        top(db, 0, u32::MAX).unwrap().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn one_network_pushes_out_none_but_its_own_identities() {
        let floods: [fn(u32) -> String; 2] =
            [|at| format!("ip:2001:db8:7:{at:x}::/64"), |at| format!("ip:2001:db8:{at:x}::/64")];
        for flood in floods {
            let db = store();
            let others = ["user:ada", "ip:192.0.2.1", "ip:2001:db9::/64"];
            for key in others {
                charge_at(&db, key.into(), 45.0, NOW);
                charge_at(&db, key.into(), 45.0, NOW + 30_000);
            }
            for at in 0..3000 {
                charge_at(&db, flood(at), 1.0, NOW + 40_000 + u64::from(at));
            }
            for key in others {
                assert_eq!(score(&db, key, NOW - 1).unwrap(), 90.0, "{key}");
            }
            let held = held(&db);
            assert!((980..=1000).contains(&held.len()), "{}", held.len());
            assert!(held.contains(&flood(2999)) && !held.contains(&flood(0)), "the oldest of it are gone");
            // And who it was against is banned at the next denial.
            let charge = Charge { key: "user:ada".into(), points: 10.0, at: NOW + 50_000, ..Charge::default() };
            assert_eq!(charge_within(&db, vec![charge], RULES, NOW + 50_000, 1000).unwrap().len(), 1);
        }
    }

    #[test]
    fn of_identities_from_everywhere_those_longest_without_a_charge_are_forgotten() {
        let db = store();
        let address = |at: u64| format!("ip:{}.{}.0.1", 1 + at / 200, at % 200);
        for at in 0..=1000 {
            charge_at(&db, address(at), 1.0, NOW + at);
        }
        let held = held(&db);
        let kept: Vec<bool> = (0..=1000).map(|at| held.contains(&address(at))).collect();
        assert_eq!(kept.iter().position(|kept| *kept), Some(21), "a fiftieth more than what is too much");
        assert!(kept[21..].iter().all(|kept| *kept));
        // One that is known takes no room: nothing is read for it.
        charge_at(&db, address(1000), 1.0, NOW + 2000);
        assert_eq!(self::held(&db).len(), 980);
    }
}
