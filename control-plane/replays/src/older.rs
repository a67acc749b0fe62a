//! Recordings that an older release has kept on the disk: a compressed file of JSON lines each, and what is known of it beside it. They are
//! moved to the store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::io as failed;
use crate::recording::Recording;
use crate::{ReplayError, Replays};

/// What the file of a recording ends with.
pub(crate) const DATA: &str = ".jsonl.gz";
/// What the file about it ends with.
const ABOUT: &str = ".json";
/// How long nothing is moved after the store has failed: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

impl Replays {
    /// Moves what an older release has kept on the disk to the store, however long the store fails.
    pub(crate) async fn move_older(self) {
        let (mut pause, mut before) = (AGAIN.0, String::new());
        while let Err(error) = self.take_over().await {
            let why = error.to_string();
            if why != before {
                tracing::warn!(why, "recordings of an older release cannot be moved to the store yet");
            }
            before = why;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Moves what can be moved; the rest stays where it is until the next start. An error: it is to be tried again.
    async fn take_over(&self) -> Result<(), ReplayError> {
        let Ok(folder) = self.folder() else { return Ok(()) };
        let older = OlderRecordings::within(folder.join("recordings"));
        let found = match older.load() {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "recordings of an older release cannot be read and stay on the disk until the next start");
                return Ok(());
            }
        };
        for recording in found {
            let (id, name) = (recording.id.clone(), recording.name.clone());
            let file = older.data(&id);
            match self.take_one(recording, &file).await {
                Ok(()) => {
                    tracing::info!(recording = %id, name, "moved a recording to the store");
                    older.remove(&id);
                }
                // The next ones would fail as well.
                Err(error @ (ReplayError::Store(_) | ReplayError::Busy(_))) => return Err(error),
                Err(error) => tracing::warn!(
                    file = %file.display(), name,
                    "a recording of an older release stays on the disk until the next start: {error}"
                ),
            }
        }
        older.close();
        Ok(())
    }

    async fn take_one(&self, mut recording: Recording, file: &Path) -> Result<(), ReplayError> {
        recording.bytes = std::fs::metadata(file).map_err(failed("read a recording"))?.len();
        self.keep(&recording, file).await
    }
}

/// The folder of such recordings.
#[derive(Debug)]
pub(crate) struct OlderRecordings {
    folder: PathBuf,
}

impl OlderRecordings {
    /// Those in this folder, which need not be there.
    pub(crate) fn within(folder: PathBuf) -> OlderRecordings {
        OlderRecordings { folder }
    }

    /// All of them, oldest first. What is half there is removed: a deletion or an addition was cut off.
    pub(crate) fn load(&self) -> io::Result<Vec<Recording>> {
        let mut found = Vec::new();
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(ABOUT) else {
                let known = name.strip_suffix(DATA).is_some_and(|id| self.about(id).is_file());
                if !known {
                    remove(&path);
                }
                continue;
            };
            match read(&path).filter(|recording| recording.id == id && self.data(id).is_file()) {
                Some(recording) => found.push(recording),
                None => {
                    tracing::warn!(file = %path.display(), "a recording cannot be read and is removed");
                    remove(&path);
                    remove(&self.data(id));
                }
            }
        }
        found.sort_by(|one, other| (one.added_millis, &one.id).cmp(&(other.added_millis, &other.id)));
        Ok(found)
    }

    /// Removes one that the store has.
    pub(crate) fn remove(&self, id: &str) {
        // What is known of it first: a file without that is removed at the next start.
        remove(&self.about(id));
        remove(&self.data(id));
    }

    /// Removes the folder, if nothing is in it.
    pub(crate) fn close(&self) {
        let _not_empty = std::fs::remove_dir(&self.folder);
    }

    /// The file of a recording. `id` is one of [`OlderRecordings::load`].
    pub(crate) fn data(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{DATA}"))
    }

    fn about(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{ABOUT}"))
    }
}

fn read(path: &Path) -> Option<Recording> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a leftover of a recording could not be removed");
    }
}
