//! The recordings on the disk: a compressed file of JSON lines each, and what is known of it beside it.

use std::io;
use std::path::{Path, PathBuf};

use base::atomic_file::{self, Readers};

use crate::folder;
use crate::recording::Recording;

/// What the file of a recording ends with.
pub(crate) const DATA: &str = ".jsonl.gz";
/// What the file about it ends with.
const ABOUT: &str = ".json";

/// The folder of recordings.
#[derive(Debug)]
pub(crate) struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    /// Makes the folder if there is none.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Shelf> {
        folder::make(&folder)?;
        Ok(Shelf { folder })
    }

    /// All of them, oldest first. What is half there is removed: a deletion or an addition was cut off.
    pub(crate) fn load(&self) -> io::Result<Vec<Recording>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
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

    /// Keeps a recording, whose file is moved here.
    pub(crate) fn put(&self, recording: &Recording, file: &Path) -> io::Result<()> {
        std::fs::rename(file, self.data(&recording.id))?;
        let about = serde_json::to_vec_pretty(recording).map_err(io::Error::other)?;
        atomic_file::replace(&self.about(&recording.id), &about, Readers::Owner)
    }

    pub(crate) fn remove(&self, id: &str) -> io::Result<()> {
        // What is known of it first: a file without that is removed at the next start.
        std::fs::remove_file(self.about(id))?;
        std::fs::remove_file(self.data(id))
    }

    /// The file of a recording. `id` is one of [`Shelf::load`] or of a new recording.
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
