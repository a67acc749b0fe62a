//! [`ReplayStore`] on the embedded file, and on a replica.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::contents::{is_allowed, is_owner};
use super::replays::{
    KeptReplays, NewReplay, RecordingBegun, RecordingRemoved, RecordingRoom, RecordingRow, ReplayAdded, ReplayEnd,
    ReplayRow, ReplayStore,
};
use super::{Pending, SqliteStore, StoreError};

impl ReplayStore for SqliteStore {
    fn recording_begin(&self, recording: RecordingRow, room: RecordingRoom) -> Pending<'_, RecordingBegun> {
        Box::pin(self.write(move |db| begin(db, &recording, room)))
    }

    fn recording_publish(&self, id: &str) -> Pending<'_, bool> {
        let id = id.to_owned();
        Box::pin(self.write(move |db| {
            let publish = "UPDATE recording SET is_listed = 1 WHERE id = ?1 AND is_listed = 0";
            Ok(db.prepare_cached(publish)?.execute([id])? > 0)
        }))
    }

    fn recording_abandon(&self, id: &str) -> Pending<'_, bool> {
        let id = id.to_owned();
        Box::pin(async move {
            let owner = id.clone();
            let abandoned = self.write(move |db| {
                let delete = "DELETE FROM recording WHERE id = ?1 AND is_listed = 0";
                if db.prepare_cached(delete)?.execute([&owner])? == 0 {
                    return Ok(false);
                }
                note_gone(db, &owner).map(|()| true)
            });
            if abandoned.await? {
                self.remove_contents(vec![id]).await?;
                return Ok(true);
            }
            Ok(false)
        })
    }

    fn recordings_begun(&self) -> Pending<'_, Vec<RecordingRow>> {
        Box::pin(self.read(|db| recordings(db, false)))
    }

    fn recordings(&self) -> Pending<'_, Vec<RecordingRow>> {
        Box::pin(self.read(|db| recordings(db, true)))
    }

    fn recording_remove(&self, id: &str) -> Pending<'_, RecordingRemoved> {
        let id = id.to_owned();
        Box::pin(async move {
            let owner = id.clone();
            let removed = self.write(move |db| remove(db, &owner)).await?;
            if removed == RecordingRemoved::Removed {
                self.remove_contents(vec![id]).await?;
            }
            Ok(removed)
        })
    }

    fn replay_add(&self, replay: NewReplay, most: u32) -> Pending<'_, ReplayAdded> {
        Box::pin(self.write(move |db| add(db, &replay, most)))
    }

    fn replays(&self) -> Pending<'_, Vec<ReplayRow>> {
        Box::pin(self.read(|db| replays(db)))
    }

    fn replay(&self, id: &str) -> Pending<'_, Option<ReplayRow>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| {
            db.prepare_cached(&format!("{SELECT_REPLAY} WHERE id = ?1"))?.query_row([id], replay).optional()
        }))
    }

    fn replays_beat(&self, runner: &str, notes: Vec<(String, String)>) -> Pending<'_, Vec<String>> {
        let runner = runner.to_owned();
        Box::pin(self.write(move |db| {
            let beat = "UPDATE replay_job SET beat = beat + 1, json = ?3
                WHERE id = ?1 AND runner = ?2 AND has_ended = 0";
            let mut beat = db.prepare_cached(beat)?;
            let mut alive = Vec::new();
            for (id, json) in notes {
                if beat.execute([&id, &runner, &json])? > 0 {
                    alive.push(id);
                }
            }
            Ok(alive)
        }))
    }

    fn replay_end(&self, ended: ReplayEnd, keep: KeptReplays) -> Pending<'_, bool> {
        Box::pin(async move {
            let (is_ended, gone) = self.write(move |db| end(db, &ended, keep)).await?;
            // What cannot be removed now is removed by a sweep: the replay has ended.
            if let Err(error) = self.remove_contents(gone).await {
                tracing::warn!(%error, "results of replays could not be removed yet");
            }
            Ok(is_ended)
        })
    }

    fn content_put(&self, owner: &str, number: u32, bytes: Vec<u8>) -> Pending<'_, bool> {
        if !is_allowed(owner, number, bytes.len()) {
            return Box::pin(async { Ok(false) });
        }
        let putting = self.contents().put(owner, number, bytes);
        Box::pin(async { putting.await.map(|()| true) })
    }

    fn content(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>> {
        if !is_owner(owner) {
            return Box::pin(async { Ok(None) });
        }
        self.contents().get(owner, number)
    }

    fn contents_sweep(&self) -> Pending<'_, ()> {
        Box::pin(async {
            // First: the row of contents is older than they are, so what is there now and has no row afterwards is left over.
            let there = self.contents().owners().await?;
            let known = self.read(|db| known(db)).await?;
            let mut gone = self
                .read(|db| {
                    let mut select = db.prepare_cached("SELECT owner FROM replay_leftover ORDER BY owner")?;
                    select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
                })
                .await?;
            gone.extend(there.into_iter().filter(|owner| !known.contains(owner)));
            self.remove_contents(gone).await
        })
    }
}

impl SqliteStore {
    /// Removes contents whose rows are gone, and then what notes that they are to be removed.
    async fn remove_contents(&self, owners: Vec<String>) -> Result<(), StoreError> {
        if owners.is_empty() {
            return Ok(());
        }
        // A row that another program has written may have any name: there are no contents of one that is none.
        for owner in owners.iter().filter(|owner| is_owner(owner)) {
            self.contents().remove(owner).await?;
        }
        self.write(move |db| {
            let mut delete = db.prepare_cached("DELETE FROM replay_leftover WHERE owner = ?1")?;
            owners.iter().try_for_each(|owner| delete.execute([owner]).map(drop))
        })
        .await
    }

    /// Whose contents the rows name, and how many bytes each has.
    pub(super) async fn content_owners(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.read(|db| {
            let select = "SELECT id, bytes FROM recording WHERE is_listed = 1
                UNION ALL SELECT id, result_bytes FROM replay_job WHERE result_bytes > 0 ORDER BY id";
            let mut select = db.prepare_cached(select)?;
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .await
    }
}

const SELECT_REPLAY: &str = "SELECT id, recording, runner, beat, has_ended, result_bytes, json FROM replay_job";

fn begin(db: &Connection, new: &RecordingRow, room: RecordingRoom) -> rusqlite::Result<RecordingBegun> {
    let is_listed = db
        .prepare_cached("SELECT is_listed FROM recording WHERE id = ?1")?
        .query_row([&new.id], |row| row.get::<_, bool>(0))
        .optional()?;
    if is_listed == Some(true) {
        return Ok(RecordingBegun::Listed);
    }
    let (recordings, bytes): (u64, u64) = db
        .prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM recording WHERE id <> ?1")?
        .query_row([&new.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if recordings >= room.recordings || bytes.saturating_add(new.bytes) > room.bytes {
        return Ok(RecordingBegun::Full { recordings, bytes });
    }
    let leftover = "SELECT EXISTS (SELECT 1 FROM replay_leftover WHERE owner = ?1)";
    if db.prepare_cached(leftover)?.query_row([&new.id], |row| row.get(0))? {
        return Ok(RecordingBegun::Removing);
    }
    let put = "INSERT OR REPLACE INTO recording (id, added_at, bytes, is_listed, json) VALUES (?1, ?2, ?3, 0, ?4)";
    db.prepare_cached(put)?.execute(params![new.id, new.added_millis, new.bytes, new.json])?;
    Ok(RecordingBegun::Begun)
}

fn recordings(db: &Connection, listed: bool) -> rusqlite::Result<Vec<RecordingRow>> {
    let select = "SELECT id, added_at, bytes, json FROM recording WHERE is_listed = ?1 ORDER BY added_at, id";
    let mut select = db.prepare_cached(select)?;
    let rows = select.query_map([listed], |row| {
        Ok(RecordingRow { id: row.get(0)?, added_millis: row.get(1)?, bytes: row.get(2)?, json: row.get(3)? })
    })?;
    rows.collect()
}

fn remove(db: &Connection, id: &str) -> rusqlite::Result<RecordingRemoved> {
    if !is_listed(db, id)? {
        return Ok(RecordingRemoved::Unknown);
    }
    let needed = "SELECT EXISTS (SELECT 1 FROM replay_job WHERE recording = ?1 AND has_ended = 0)";
    if db.prepare_cached(needed)?.query_row([id], |row| row.get(0))? {
        return Ok(RecordingRemoved::InUse);
    }
    db.prepare_cached("DELETE FROM recording WHERE id = ?1")?.execute([id])?;
    note_gone(db, id)?;
    Ok(RecordingRemoved::Removed)
}

fn is_listed(db: &Connection, id: &str) -> rusqlite::Result<bool> {
    let select = "SELECT EXISTS (SELECT 1 FROM recording WHERE id = ?1 AND is_listed = 1)";
    db.prepare_cached(select)?.query_row([id], |row| row.get(0))
}

/// Notes that contents are to be removed. At a server that is full, a change whose first row is one that goes is taken: tables are changed in
/// the order of their names, and this one comes after those that rows go from.
fn note_gone(db: &Connection, owner: &str) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO replay_leftover VALUES (?1)")?.execute([owner]).map(drop)
}

/// Whose contents may be there. A replay that has ended without a result has none.
fn known(db: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let select = "SELECT id FROM recording
        UNION ALL SELECT id FROM replay_job WHERE has_ended = 0 OR result_bytes > 0";
    let mut select = db.prepare_cached(select)?;
    select.query_map([], |row| row.get(0))?.collect()
}

fn add(db: &Connection, new: &NewReplay, most: u32) -> rusqlite::Result<ReplayAdded> {
    if !is_listed(db, &new.recording)? {
        return Ok(ReplayAdded::UnknownRecording);
    }
    let count = "SELECT count(*) FROM replay_job WHERE runner = ?1 AND has_ended = 0";
    let unfinished: u32 = db.prepare_cached(count)?.query_row([&new.runner], |row| row.get(0))?;
    if unfinished >= most {
        return Ok(ReplayAdded::Busy(unfinished));
    }
    let insert = "INSERT INTO replay_job (id, recording, runner, beat, has_ended, result_bytes, json)
        VALUES (?1, ?2, ?3, 0, 0, 0, ?4)";
    db.prepare_cached(insert)?.execute([&new.id, &new.recording, &new.runner, &new.json])?;
    Ok(ReplayAdded::Added)
}

fn replay(row: &Row<'_>) -> rusqlite::Result<ReplayRow> {
    Ok(ReplayRow {
        id: row.get(0)?,
        recording: row.get(1)?,
        runner: row.get(2)?,
        beat: row.get(3)?,
        has_ended: row.get(4)?,
        result_bytes: row.get(5)?,
        json: row.get(6)?,
    })
}

fn replays(db: &Connection) -> rusqlite::Result<Vec<ReplayRow>> {
    let mut select = db.prepare_cached(&format!("{SELECT_REPLAY} ORDER BY rowid"))?;
    select.query_map([], replay)?.collect()
}

/// Whether it has ended by this, and whose contents are to be removed: those of replays that are forgotten or have no result.
fn end(db: &Connection, ended: &ReplayEnd, keep: KeptReplays) -> rusqlite::Result<(bool, Vec<String>)> {
    let end = "UPDATE replay_job SET has_ended = 1, json = ?2, result_bytes = ?3
        WHERE id = ?1 AND has_ended = 0 AND beat = coalesce(?4, beat)";
    let ReplayEnd { id, beat, json, result_bytes } = ended;
    if db.prepare_cached(end)?.execute(params![id, json, result_bytes, beat])? == 0 {
        // It may have been ended by another while its result was written.
        let needed = "SELECT EXISTS (SELECT 1 FROM replay_job WHERE id = ?1 AND (has_ended = 0 OR result_bytes > 0))";
        if *result_bytes == 0 || db.prepare_cached(needed)?.query_row([id], |row| row.get(0))? {
            return Ok((false, Vec::new()));
        }
        note_gone(db, id)?;
        return Ok((false, vec![id.clone()]));
    }
    // Newest first: those that have room.
    let mut select = db.prepare_cached(
        "SELECT id, result_bytes FROM replay_job WHERE has_ended = 1 ORDER BY id = ?1 DESC, rowid DESC",
    )?;
    let rows = select.query_map([id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)))?;
    let (mut count, mut bytes, mut forgotten) = (0_u64, 0_u64, Vec::new());
    for row in rows {
        let (of, size) = row?;
        (count, bytes) = (count + 1, bytes.saturating_add(size));
        if (count > keep.replays || bytes > keep.bytes) && of != *id {
            forgotten.push(of);
        }
    }
    for of in &forgotten {
        db.prepare_cached("DELETE FROM replay_job WHERE id = ?1")?.execute([of])?;
        note_gone(db, of)?;
    }
    let mut gone = forgotten;
    if *result_bytes == 0 {
        // Some of its chunks may be there: it has failed, or was ended, while they were written.
        note_gone(db, id)?;
        gone.push(id.clone());
    }
    Ok((true, gone))
}
