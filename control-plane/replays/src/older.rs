//! Recordings that an older release has kept on the disk: a compressed file of JSON lines each, and what is known of it beside it. They are
//! moved to the store.

use std::io;
use std::path::{Path, PathBuf};

use crate::recording::Recording;

/// What the file of a recording ends with.
pub(crate) const DATA: &str = ".jsonl.gz";
/// What the file about it ends with.
const ABOUT: &str = ".json";

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
