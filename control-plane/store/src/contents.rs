//! Where the contents of recordings and replays are: chunks by owner and number, see [`replays`](super::replays).

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base::atomic_file::{self, Readers};

use super::file::sync_folder;
use super::replays::{MAX_CHUNK, MAX_CHUNKS, MAX_OWNER};
use super::{Pending, StoreError};

/// The folder of contents in the data directory.
pub(super) const FOLDER: &str = "contents";

/// Chunks of contents. A chunk that was acknowledged is durable. Lengths and numbers were checked. Names of owners may be those of rows that
/// another program has written (a backup, a server): an implementation that makes paths of them checks them.
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

    /// The folder of an owner. This is where a path is made of a name, so this is where the name is checked.
    fn own(folder: &Path, owner: &str) -> io::Result<PathBuf> {
        match is_owner(owner) {
            true => Ok(folder.join(owner)),
            false => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no name of contents", shown(owner))))
            }
        }
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
            let own = FolderContents::own(folder, &owner)?;
            if !own.is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
                sync_folder(folder)?;
                folder.parent().map_or(Ok(()), sync_folder)?;
            }
            atomic_file::replace(&own.join(number.to_string()), &bytes, Readers::Owner)
        }))
    }

    fn get(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>> {
        let owner = owner.to_owned();
        Box::pin(self.work(move |folder| {
            match std::fs::read(FolderContents::own(folder, &owner)?.join(number.to_string())) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }))
    }

    fn remove(&self, owner: &str) -> Pending<'_, ()> {
        let owner = owner.to_owned();
        Box::pin(self.work(move |folder| match std::fs::remove_dir_all(FolderContents::own(folder, &owner)?) {
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

/// A name that is none, for people: in quotes, and no longer than one that is.
pub(super) fn shown(owner: &str) -> String {
    format!("{:?}", owner.chars().take(MAX_OWNER).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::replays::RecordingRemoved;
    use crate::{ReplayStore as _, SqliteOptions, SqliteStore, Store as _, migrate};

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

    #[tokio::test]
    async fn a_row_of_another_program_makes_no_path_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("0"), "kept").unwrap();
        let store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
        let contents = FolderContents::within(folder.path());
        contents.put("mine", 0, b"bytes".to_vec()).await.unwrap();
        let owners = [outside.to_str().unwrap().to_owned(), "../outside".to_owned(), "..".to_owned(), String::new()];
        for owner in &owners {
            assert!(contents.put(owner, 0, vec![1]).await.is_err(), "{owner}");
            assert!(contents.get(owner, 0).await.is_err(), "{owner}");
            assert!(contents.remove(owner).await.is_err(), "{owner}");
        }
        // As a backup that was made by hand, or another server's rows, may have them.
        let rows = owners.clone();
        let write = store.write(move |db| {
            for owner in &rows {
                db.execute("INSERT INTO replay_leftover VALUES (?1)", [owner])?;
                let insert = "INSERT INTO recording (id, added_at, bytes, is_listed, json) VALUES (?1, 1, 4, 1, '')";
                db.execute(insert, [owner])?;
            }
            Ok(())
        });
        write.await.unwrap();
        let copied = migrate::to_file(&store, &folder.path().join("copy")).await.unwrap_err().to_string();
        assert!(copied.contains("is no name of contents"), "{copied}");
        store.contents_sweep().await.unwrap();
        for owner in &owners {
            assert_eq!(store.recording_remove(owner).await, Ok(RecordingRemoved::Removed), "{owner}");
        }
        let notes =
            store.read(|db| db.query_row("SELECT count(*) FROM replay_leftover", [], |row| row.get::<_, u64>(0)));
        assert_eq!(notes.await, Ok(0), "no row is tried for ever");
        assert_eq!(std::fs::read(outside.join("0")).unwrap(), b"kept");
        store.close().await.unwrap();
    }
}
