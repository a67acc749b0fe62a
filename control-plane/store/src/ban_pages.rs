//! Parts of the bans: there may be a hundred thousand, of which a caller wants a few.

use std::borrow::Cow;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use serde::Deserialize;

use super::ban_rows::{BANS, ban};
use super::fabric::{Ban, BanPage, BanQuery};
use base::identity::{Identity, OWN_KEYS};
use base::search::Search;

pub(super) fn count(db: &Connection, now: u64) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT count(*) FROM ban WHERE until_millis > ?1")?.query_row([now], |row| row.get(0))
}

pub(super) fn page(db: &mut Connection, now: u64, query: BanQuery) -> rusqlite::Result<BanPage> {
    // A page takes two queries, which have to see the same bans.
    let db = db.transaction()?;
    let BanQuery { key, reason, issued_by, search, skip, take } = query;
    let mut conditions = "until_millis > ?".to_owned();
    let mut values = vec![Value::Integer(signed(now))];
    let wanted = [("ref_key", key), ("json ->> 'reason'", reason), ("json ->> 'issued_by'", issued_by)];
    for (column, value) in wanted {
        if let Some(value) = value {
            conditions.push_str(&format!(" AND {column} = ?"));
            values.push(Value::Text(value));
        }
    }
    if let Some(search) = search {
        let places = searched(&db, &conditions, &values, &search)?;
        let mut page = BanPage { total: u64::try_from(places.len()).unwrap_or(u64::MAX), bans: Vec::new() };
        let mut one = db.prepare_cached(&format!("{BANS} WHERE rowid = ?1"))?;
        for place in part(places, skip, take) {
            page.bans.push(one.query_row([place], ban)?);
        }
        return Ok(page);
    }
    let count = format!("SELECT count(*) FROM ban WHERE {conditions}");
    let total = db.prepare_cached(&count)?.query_row(params_from_iter(&values), |row| row.get(0))?;
    values.extend([Value::Integer(signed(take)), Value::Integer(signed(skip))]);
    let select = format!("{BANS} WHERE {conditions} ORDER BY ref_key LIMIT ? OFFSET ?");
    let bans =
        db.prepare_cached(&select)?.query_map(params_from_iter(values), ban)?.collect::<rusqlite::Result<_>>()?;
    Ok(BanPage { total, bans })
}

/// The keys and the places of those that are looked for, in no order: in the order of keys, each row would have to be found by itself.
fn searched(
    db: &Connection,
    conditions: &str,
    values: &[Value],
    search: &Search,
) -> rusqlite::Result<Vec<(String, i64)>> {
    let select = format!("SELECT ref_key, json, rowid FROM ban NOT INDEXED WHERE {conditions}");
    let mut found = db.prepare_cached(&select)?;
    let mut found = found.query(params_from_iter(values))?;
    let mut places = Vec::new();
    while let Some(row) = found.next()? {
        if is_found(row, search)? {
            places.push((row.get(0)?, row.get(2)?));
        }
    }
    Ok(places)
}

/// A part of the places in the order of their keys; only that part is sorted.
fn part(mut places: Vec<(String, i64)>, skip: u64, take: u64) -> Vec<i64> {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let take = usize::try_from(take).unwrap_or(usize::MAX);
    if skip >= places.len() {
        return Vec::new();
    }
    let end = skip.saturating_add(take).min(places.len());
    if end < places.len() {
        places.select_nth_unstable(end);
        places.truncate(end);
    }
    if skip > 0 {
        places.select_nth_unstable(skip);
    }
    let mut part = places.split_off(skip);
    part.sort_unstable();
    part.into_iter().map(|(_, place)| place).collect()
}

/// What a search looks at, beside the key.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Texts<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow)]
    issued_by: Cow<'a, str>,
    tags: Vec<String>,
}

/// Whether a ban is one that is looked for. Most are not: those are read no further than their text.
fn is_found(row: &Row<'_>, search: &Search) -> rusqlite::Result<bool> {
    if search.is_of(row.get_ref(0)?.as_str()?) {
        return Ok(true);
    }
    let json = row.get_ref(1)?.as_str()?;
    // JSON has these in another form.
    let is_plain = !search.text().contains(|letter: char| matches!(letter, '"' | '\\') || letter.is_control());
    if is_plain && !search.is_in(json) {
        return Ok(false);
    }
    let Ok(texts) = serde_json::from_str::<Texts<'_>>(json) else { return Ok(false) };
    let tags = texts.tags.iter().map(String::as_str);
    Ok(search.is_in_any([&*texts.reason, &*texts.issued_by].into_iter().chain(tags)))
}

/// All keys, in order.
pub(super) fn keys(db: &Connection, now: u64) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT ref_key FROM ban WHERE until_millis > ?1 ORDER BY ref_key";
    db.prepare_cached(select)?.query_map([now], |row| row.get(0))?.collect()
}

pub(super) fn on(db: &Connection, now: u64, keys: &[String]) -> rusqlite::Result<Vec<Ban>> {
    let select = format!("{BANS} WHERE until_millis > ?1 AND is_range = 1");
    let mut found: Vec<Ban> = db.prepare_cached(&select)?.query_map([now], ban)?.collect::<rusqlite::Result<_>>()?;
    // Networks of IPv6 that have keys of their own are in no list of ranges.
    let wider = |key: &String| {
        let network = Identity::parse(key).ok().and_then(|identity| identity.network_v6());
        let around = OWN_KEYS.into_iter().filter_map(move |width| Identity::of_network_v6(network?, width));
        around.map(|wide| wide.key()).collect::<Vec<_>>()
    };
    let keys: Vec<String> = keys.iter().flat_map(|key| wider(key).into_iter().chain([key.clone()])).collect();
    found.extend(named(db, now, &keys)?);
    found.sort_by(|one, other| one.key.cmp(&other.key));
    found.dedup_by(|one, other| one.key == other.key);
    Ok(found)
}

pub(super) fn named(db: &Connection, now: u64, keys: &[String]) -> rusqlite::Result<Vec<Ban>> {
    let mut one = db.prepare_cached(&format!("{BANS} WHERE until_millis > ?1 AND ref_key = ?2"))?;
    let mut found = Vec::new();
    for key in keys {
        for ban in one.query_map(rusqlite::params![now, key], ban)? {
            found.push(ban?);
        }
    }
    Ok(found)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
