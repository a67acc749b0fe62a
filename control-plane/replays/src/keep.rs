//! How a recording gets into the store: its contents first, then what shows it.

use std::path::Path;
use std::time::Duration;

use store::StoreError;
use store::replays::{RecordingBegun, RecordingRoom, RecordingRow};

use crate::recording::Recording;
use crate::replays::json;
use crate::{ReplayError, Replays, contents};

impl Replays {
    /// The bytes that a further recording may have.
    pub(crate) async fn room(&self) -> Result<u64, ReplayError> {
        let (rows, limits) = (self.store().recordings().await?, self.limits());
        let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
        if rows.len() >= limits.recordings || bytes >= limits.total_bytes {
            return Err(self.full(rows.len() as u64, bytes));
        }
        Ok(limits.recording_bytes.min(limits.total_bytes - bytes))
    }

    fn full(&self, recordings: u64, bytes: u64) -> ReplayError {
        let limits = self.limits();
        ReplayError::Full(format!(
            "{recordings} recordings with {} MiB are kept, as many as may ({} recordings, {} MiB); delete one",
            bytes.div_ceil(1 << 20),
            limits.recordings,
            limits.total_bytes >> 20
        ))
    }

    /// Keeps a recording, whose contents are those of a file.
    pub(crate) async fn keep(&self, recording: &Recording, file: &Path) -> Result<(), ReplayError> {
        let (store, limits) = (self.store(), self.limits());
        let row = RecordingRow {
            id: recording.id.clone(),
            added_millis: recording.added_millis,
            bytes: recording.bytes,
            json: json(recording)?,
        };
        let room = RecordingRoom { recordings: limits.recordings as u64, bytes: limits.total_bytes };
        let kept = match store.recording_begin(row, room).await {
            Ok(RecordingBegun::Begun) => self.fill(recording, file).await,
            Ok(RecordingBegun::Listed) => return Ok(()),
            Ok(RecordingBegun::Removing) => {
                store.contents_sweep().await?;
                return Err(ReplayError::Busy(
                    "an earlier copy of the recording is being removed; try again".to_owned(),
                ));
            }
            Ok(RecordingBegun::Full { recordings, bytes }) => return Err(self.full(recordings, bytes)),
            // It may have begun all the same, and would take its room.
            Err(error) => Err(error.into()),
        };
        // What cannot be removed now is removed later (`watch`).
        if kept.is_err()
            && let Err(error) = store.recording_abandon(&recording.id).await
        {
            tracing::warn!(%error, recording = %recording.id, "a recording that was not kept could not be removed yet");
        }
        kept
    }

    /// Writes the contents of a recording that is begun, and lists it.
    async fn fill(&self, recording: &Recording, file: &Path) -> Result<(), ReplayError> {
        let (store, id) = (self.store(), recording.id.as_str());
        let time = contents::time_of(recording.bytes);
        let Ok(written) = tokio::time::timeout(time, contents::write_file(store, id, file)).await else {
            return Err(too_slow(time));
        };
        written?;
        let published = match store.recording_publish(id).await {
            // It may be listed already.
            Err(StoreError::Unanswered { .. }) => {
                store.recording_publish(id).await? || store.recordings().await?.iter().any(|row| row.id == id)
            }
            published => published?,
        };
        // Where it is not begun any more, another has taken it for abandoned.
        if published { Ok(()) } else { Err(too_slow(time)) }
    }
}

fn too_slow(time: Duration) -> ReplayError {
    let error = format!("it took longer than {} s", time.as_secs());
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, error);
    ReplayError::Io("write the recording to the store".to_owned(), error)
}
