//! The folder of a replica: one for each process and store, removed with it.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::StoreError;

/// How the names of such folders begin.
const NAME: &str = "replica-";

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ReplicaFolder {
    path: PathBuf,
    /// Locked while the folder is in use. The operating system releases it when the process ends, however it ends.
    _lock: File,
}

impl ReplicaFolder {
    /// Makes a folder within `parent`, and removes those of processes that were killed.
    pub(super) fn create(parent: &Path) -> Result<ReplicaFolder, StoreError> {
        ReplicaFolder::create_as(NAME, parent)
    }

    /// [`ReplicaFolder::create`] for a folder whose name begins with `name`.
    pub(super) fn create_as(name: &str, parent: &Path) -> Result<ReplicaFolder, StoreError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let failed = |error: std::io::Error| StoreError::Failed { path: parent.to_owned(), detail: error.to_string() };
        super::file::directory(parent).map_err(failed)?;
        remove_left(name, parent).map_err(failed)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{name}{}-{number}", std::process::id()));
        // The lock is made under another name: a folder that can be seen is locked.
        let locked = parent.join(format!(".{name}{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&locked);
        DirBuilder::new().mode(0o700).create(&locked).map_err(failed)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(locked.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        std::fs::rename(&locked, &path).map_err(failed)?;
        Ok(ReplicaFolder { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ReplicaFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a replica could not be removed");
        }
    }
}

/// Removes folders that no process has locked.
fn remove_left(name: &str, parent: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(name) {
            continue;
        }
        if let Ok(lock) = File::options().write(true).open(entry.path().join("lock"))
            && lock.try_lock().is_ok()
        {
            // Another process may be at it as well.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}
