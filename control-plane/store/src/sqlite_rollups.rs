//! [`RollupStore`] on the embedded file.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::rollups::{Rollup, RollupCounts, RollupStep, RollupStore};
use super::{Pending, SqliteStore};

impl RollupStore for SqliteStore {
    fn rollups_add(&self, rollups: Vec<Rollup>, now_millis: u64) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| {
            rollups.iter().try_for_each(|rollup| add(db, rollup))?;
            RollupStep::ALL.into_iter().try_for_each(|step| {
                let before = now_millis.saturating_sub(step.kept_millis());
                let delete = "DELETE FROM rollup WHERE step = ?1 AND at < ?2";
                db.prepare_cached(delete)?.execute(params![number(step), before]).map(|_| ())
            })
        }))
    }

    fn rollups(&self, step: RollupStep, from_millis: u64, until_millis: u64) -> Pending<'_, Vec<Rollup>> {
        let until_millis = until_millis.min(i64::MAX.cast_unsigned());
        Box::pin(self.read(move |db| {
            let select = "SELECT at, body FROM rollup WHERE step = ?1 AND at >= ?2 AND at < ?3 ORDER BY at";
            let mut select = db.prepare_cached(select)?;
            let rows = select.query_map(params![number(step), from_millis, until_millis], |row| {
                Ok(Rollup { step, at_millis: row.get(0)?, counts: read(&row.get::<_, String>(1)?) })
            })?;
            rows.collect()
        }))
    }
}

fn add(db: &Connection, rollup: &Rollup) -> rusqlite::Result<()> {
    let of = params![number(rollup.step), rollup.at_millis];
    let select = "SELECT body FROM rollup WHERE step = ?1 AND at = ?2";
    let before: Option<String> = db.prepare_cached(select)?.query_row(of, |row| row.get(0)).optional()?;
    let mut counts = before.map(|body| read(&body)).unwrap_or_default();
    counts.add(&rollup.counts);
    let body = serde_json::to_string(&counts).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let put = "INSERT INTO rollup (step, at, body) VALUES (?1, ?2, ?3) ON CONFLICT (step, at) DO UPDATE SET body = ?3";
    db.prepare_cached(put)?.execute(params![number(rollup.step), rollup.at_millis, body])?;
    Ok(())
}

/// What cannot be read is that of another release, and counts as nothing.
fn read(body: &str) -> RollupCounts {
    serde_json::from_str(body).unwrap_or_default()
}

/// Part of what is stored.
fn number(step: RollupStep) -> u8 {
    match step {
        RollupStep::Minute => 1,
        RollupStep::Hour => 2,
        RollupStep::Day => 3,
    }
}
