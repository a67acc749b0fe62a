//! [`FeedStore`] on the embedded file.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::feeds::{FeedList, FeedStore, KeptFeed, MAX_FEED_LIST, MAX_FEEDS};
use super::{Pending, SqliteStore};

impl FeedStore for SqliteStore {
    fn feed_put(&self, feed: KeptFeed) -> Pending<'_, bool> {
        Box::pin(self.write(move |db| put(db, &feed)))
    }

    fn feed_remove(&self, id: &str) -> Pending<'_, bool> {
        let id = id.to_owned();
        Box::pin(self.write(move |db| {
            db.prepare_cached("DELETE FROM feed_list WHERE feed = ?1")?.execute([&id])?;
            Ok(db.prepare_cached("DELETE FROM feed WHERE id = ?1")?.execute([&id])? > 0)
        }))
    }

    fn feeds(&self) -> Pending<'_, Vec<KeptFeed>> {
        Box::pin(self.read(|db| {
            // Both tables as they are at one time.
            let view = db.transaction()?;
            read(&view, None)
        }))
    }

    fn feed(&self, id: &str) -> Pending<'_, Option<KeptFeed>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| {
            let view = db.transaction()?;
            Ok(read(&view, Some(&id))?.pop())
        }))
    }
}

fn put(db: &Connection, feed: &KeptFeed) -> rusqlite::Result<bool> {
    let lists = || feed.current.iter().chain(&feed.previous);
    if lists().any(|list| list.bytes.len() > MAX_FEED_LIST) {
        return Ok(false);
    }
    let known = "SELECT 1 FROM feed WHERE id = ?1";
    let is_known = db.prepare_cached(known)?.query_row([&feed.id], |_| Ok(())).optional()?.is_some();
    if !is_known {
        let kept: u32 = db.prepare_cached("SELECT count(*) FROM feed")?.query_row([], |row| row.get(0))?;
        if kept >= MAX_FEEDS {
            return Ok(false);
        }
    }
    let hash = |list: &Option<FeedList>| list.as_ref().map(|list| list.hash);
    let (current, previous) = (hash(&feed.current), hash(&feed.previous));
    db.prepare_cached("INSERT OR REPLACE INTO feed (id, state, current, previous) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![feed.id, feed.state, current, previous])?;
    for FeedList { hash, bytes } in lists() {
        db.prepare_cached("INSERT INTO feed_list (feed, hash, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(params![feed.id, hash, bytes])?;
    }
    let unused = "DELETE FROM feed_list WHERE feed = ?1 AND hash IS NOT ?2 AND hash IS NOT ?3";
    db.prepare_cached(unused)?.execute(params![feed.id, current, previous])?;
    Ok(true)
}

/// One feed, or all of them.
fn read(db: &Connection, id: Option<&str>) -> rusqlite::Result<Vec<KeptFeed>> {
    let mut lists = HashMap::new();
    let mut select = db.prepare_cached("SELECT feed, hash, bytes FROM feed_list WHERE ?1 IS NULL OR feed = ?1")?;
    let mut rows = select.query([id])?;
    while let Some(row) = rows.next()? {
        let (feed, hash): (String, [u8; 32]) = (row.get(0)?, row.get(1)?);
        let bytes = row.get_ref(2)?.as_blob()?.into();
        lists.insert((feed, hash), FeedList { hash, bytes });
    }
    let select = "SELECT id, state, current, previous FROM feed WHERE ?1 IS NULL OR id = ?1 ORDER BY id";
    let mut select = db.prepare_cached(select)?;
    let feeds = select.query_map([id], |row| {
        let id: String = row.get(0)?;
        let list = |hash: Option<[u8; 32]>| lists.get(&(id.clone(), hash?)).cloned();
        let (current, previous) = (list(row.get(2)?), list(row.get(3)?));
        Ok(KeptFeed { state: row.get(1)?, current, previous, id })
    })?;
    feeds.collect()
}
