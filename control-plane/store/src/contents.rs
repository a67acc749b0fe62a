//! Where the contents of recordings and replays are: chunks by owner and number, see [`replays`](super::replays).

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::replays::{MAX_CHUNK, MAX_CHUNKS, MAX_OWNER};
use super::{Pending, StoreError};

/// The folder of contents in the data directory.
const FOLDER: &str = "contents";

/// Chunks of contents. A chunk that was acknowledged is durable. Names and lengths were checked (`is_allowed`).
pub trait Contents: Send + Sync + 'static {
    /// Writes a chunk, in the place of the one that there is.
    fn put(&self, owner: &str, number: u32, bytes: Vec<u8>) -> Pending<'_, ()>;

    /// A chunk; `None` where there is none.
    fn get(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>>;

    /// Removes all chunks of an owner.
    fn remove(&self, owner: &str) -> Pending<'_, ()>;

    /// Whose chunks there are, where that can be said; otherwise none.
    fn owners(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Whether a chunk may be kept.
pub(super) fn is_allowed(owner: &str, number: u32, bytes: usize) -> bool {
    is_owner(owner) && number < MAX_CHUNKS && bytes <= MAX_CHUNK
}

/// A name is a part of paths and keys.
pub(super) fn is_owner(name: &str) -> bool {
    (1..=MAX_OWNER).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Chunks as files: a folder for each owner, whose names are numbers.
pub(super) struct FolderContents {
    folder: PathBuf,
}

impl FolderContents {
    /// Those in a data directory. Nothing is made before it is needed.
    pub(super) fn within(directory: &Path) -> FolderContents {
        FolderContents { folder: directory.join(FOLDER) }
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let folder = self.folder.clone();
        let working = tokio::task::spawn_blocking(move || {
            work(&folder).map_err(|error| match error.kind() {
                io::ErrorKind::StorageFull => StoreError::DiskFull { path: folder },
                _ => StoreError::Failed { path: folder, detail: error.to_string() },
            })
        });
        working.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Contents for FolderContents {
    fn put(&self, owner: &str, number: u32, bytes: Vec<u8>) -> Pending<'_, ()> {
        let owner = owner.to_owned();
        Box::pin(self.work(move |folder| {
            let own = folder.join(owner);
            if !own.is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
                sync(folder)?;
                folder.parent().map_or(Ok(()), sync)?;
            }
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(own.join(number.to_string()))?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            sync(&own)
        }))
    }

    fn get(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>> {
        let owner = owner.to_owned();
        Box::pin(self.work(move |folder| match std::fs::read(folder.join(owner).join(number.to_string())) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }))
    }

    fn remove(&self, owner: &str) -> Pending<'_, ()> {
        let owner = owner.to_owned();
        Box::pin(self.work(move |folder| match std::fs::remove_dir_all(folder.join(owner)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }))
    }

    fn owners(&self) -> Pending<'_, Vec<String>> {
        Box::pin(self.work(|folder| {
            let entries = match std::fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let entries = entries.collect::<io::Result<Vec<_>>>()?;
            let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
            Ok(names.filter(|name| is_owner(name)).collect())
        }))
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn chunks_are_their_owners_alone_and_names_are_no_paths() {
        let folder = tempfile::tempdir().unwrap();
        let contents = FolderContents::within(folder.path());
        assert_eq!(contents.owners().await, Ok(Vec::new()));
        contents.put("recording_1", 0, b"bytes".to_vec()).await.unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let own = folder.path().join("contents/recording_1");
        assert_eq!((mode(&own), mode(&own.join("0"))), (0o700, 0o600));
        assert_eq!(contents.owners().await, Ok(vec!["recording_1".to_owned()]));
        for wrong in ["", ".", "..", "a/b", "a\0", "ä", &"a".repeat(MAX_OWNER + 1)] {
            assert!(!is_allowed(wrong, 0, 0), "{wrong:?}");
        }
        assert!(is_allowed(&"a".repeat(MAX_OWNER), MAX_CHUNKS - 1, MAX_CHUNK));
        assert!(!is_allowed("a", MAX_CHUNKS, 0) && !is_allowed("a", 0, MAX_CHUNK + 1));
    }
}
