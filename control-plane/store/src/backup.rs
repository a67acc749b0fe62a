//! Copies of the embedded store: made while it is in use, and put in its place while it is not.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base::atomic_file;
use rusqlite::Connection;

use super::contents::FOLDER;
use super::file::{self, FILE, connect, explain, lock, sync_folder, verify, wal};
use super::{StoreError, entities, schema};

/// What a restored store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The global revision, beyond that of the backup and of the store it replaces: an ETag is never used twice.
    pub revision: u64,
    /// Where the old store is now, when there was one. What it had not yet folded in lies beside it (`-wal`).
    pub kept: Option<PathBuf>,
    /// Where the contents of the old store's recordings and replays are now, when there were any: a backup has none.
    pub contents: Option<PathBuf>,
}

/// Writes a copy of the store in `directory` to `file`: everything that was committed when it began, in one file. The
/// store may be in use meanwhile. Blocks. A copy that is begun and not finished never bears the name `file`.
///
/// # Errors
/// What is wrong with the store; [`StoreError::Failed`] or [`StoreError::DiskFull`] about `file`, also when it exists.
pub fn backup(directory: &Path, file: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed { path: file.to_owned(), detail: error.to_string() };
    let path = directory.join(FILE);
    let db = connect(&path)?;
    verify(&db, &path)?;
    let fresh = beside(file, "new");
    remove(&fresh).map_err(failed)?;
    let copied = copy(&db, file, &fresh);
    let placed = copied.and_then(|()| {
        // A link and not a rename: it never replaces another backup.
        std::fs::hard_link(&fresh, file).map_err(failed)?;
        sync_folder(folder_of(file)).map_err(failed)
    });
    remove(&fresh).map_err(failed)?;
    placed
}

fn copy(db: &Connection, file: &Path, fresh: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed { path: file.to_owned(), detail: error.to_string() };
    // Made here first, so that nobody else can read what is written to it.
    let made = File::options().create_new(true).write(true).open(fresh).map_err(failed)?;
    made.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    let name = fresh.to_str().ok_or_else(|| failed(std::io::Error::other("the name is not UTF-8")))?;
    db.execute("VACUUM INTO ?1", [name]).map_err(|error| explain(file, error))?;
    made.sync_all().map_err(failed)?;
    examine(fresh, file).map(|_| ())
}

/// Puts a backup in the place of the store in `directory`, which no process may serve from, and keeps the old store
/// beside it. Blocks. The backup itself stays as it is. The new store has the owner and the group of the old one; if there is
/// none and root restores, those of `directory`.
///
/// # Errors
/// [`StoreError::NoBackup`], [`StoreError::TooNew`], [`StoreError::InUse`], [`StoreError::Failed`]; the old store is in
/// its place then.
pub fn restore(directory: &Path, backup: &Path, now_millis: u64) -> Result<Restored, StoreError> {
    let path = directory.join(FILE);
    let failed = |error: std::io::Error| StoreError::Failed { path: path.clone(), detail: error.to_string() };
    file::directory(directory).map_err(failed)?;
    let _lock = lock(directory)?;
    let fresh = directory.join(format!(".{FILE}.restored"));
    for leftover in [fresh.clone(), wal(&fresh)] {
        remove(&leftover).map_err(failed)?;
    }
    let restored = bring(&path, backup, &fresh, now_millis);
    remove(&fresh).map_err(failed)?;
    restored
}

fn bring(path: &Path, backup: &Path, fresh: &Path, now_millis: u64) -> Result<Restored, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed { path: path.to_owned(), detail: error.to_string() };
    let unread = |error: std::io::Error| StoreError::NoBackup { path: backup.to_owned(), detail: error.to_string() };
    let mut source = File::open(backup).map_err(unread)?;
    let mut made = atomic_file::make_private(fresh, path).map_err(failed)?;
    std::io::copy(&mut source, &mut made).map_err(failed)?;
    let mut db = examine(fresh, backup)?;
    let engine = |error| explain(path, error);
    schema::migrate(&mut db).map_err(engine)?;
    // Opened and closed in order, the old store folds its log in; a damaged one is kept as it is.
    let old =
        if path.exists() { connect(path).and_then(|old| entities::revision(&old).map_err(engine)).ok() } else { None };
    let revision = entities::revision(&db).map_err(engine)?.max(old.unwrap_or(0)) + 1;
    db.execute("UPDATE revision SET value = ?1", [revision]).map_err(engine)?;
    db.close().map_err(|(_, error)| engine(error))?;
    made.sync_all().map_err(failed)?;

    let mut kept = None;
    if path.exists() || wal(path).exists() {
        let aside = beside(path, &format!("before-restore-{now_millis}"));
        // A link first: at no moment is there no store, which the next start would take for the first one.
        if path.exists() {
            std::fs::hard_link(path, &aside).map_err(failed)?;
        }
        if wal(path).exists() {
            std::fs::rename(wal(path), wal(&aside)).map_err(failed)?;
        }
        kept = Some(aside);
    }
    // Before the store is replaced: a start would remove what the restored rows do not name, and the old ones may.
    let folder = folder_of(path).join(FOLDER);
    let contents = folder.exists().then(|| beside(&folder, &format!("before-restore-{now_millis}")));
    if let Some(aside) = &contents {
        std::fs::rename(&folder, aside).map_err(failed)?;
    }
    if let Err(error) = std::fs::rename(fresh, path) {
        if let Some(aside) = &contents {
            std::fs::rename(aside, &folder).map_err(failed)?;
        }
        return Err(failed(error));
    }
    sync_folder(folder_of(path)).map_err(failed)?;
    Ok(Restored { revision, kept, contents })
}

/// Opens a copy and looks through all of it; what is wrong is said of `named`.
fn examine(copy: &Path, named: &Path) -> Result<Connection, StoreError> {
    let opened = connect(copy).and_then(|db| verify(&db, copy).map(|()| db));
    opened.map_err(|error| match error {
        StoreError::Damaged { detail, .. } => StoreError::NoBackup { path: named.to_owned(), detail },
        StoreError::TooNew { found, known, .. } => StoreError::TooNew { path: named.to_owned(), found, known },
        other => other,
    })
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}"));
    PathBuf::from(name)
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, chown};

    use super::*;
    use crate::{SqliteOptions, SqliteStore, Store as _};

    #[tokio::test]
    async fn what_root_restores_is_the_services() {
        let folder = tempfile::tempdir().unwrap();
        if std::fs::metadata(folder.path()).unwrap().uid() != 0 {
            return;
        }
        let (data, saved) = (folder.path().join("data"), folder.path().join("saved.db"));
        SqliteStore::open(&data, SqliteOptions::default()).unwrap().close().await.unwrap();
        backup(&data, &saved).unwrap();
        let owner = |path: &Path| std::fs::metadata(path).map(|there| (there.uid(), there.gid())).unwrap();
        let give = |path: &Path, owner: (u32, u32)| chown(path, Some(owner.0), Some(owner.1)).unwrap();
        let (service, other, path) = ((65_532, 65_533), (65_530, 65_531), data.join(FILE));
        give(&data, service);
        give(&path, other);
        restore(&data, &saved, 6).unwrap();
        assert_eq!(owner(&path), other, "of the store that was there");
        std::fs::remove_file(&path).unwrap();
        restore(&data, &saved, 7).unwrap();
        assert_eq!(owner(&path), service, "of the folder");
        assert_eq!(owner(&saved), (0, owner(folder.path()).1));
    }

    #[tokio::test]
    async fn contents_of_the_replaced_store_are_kept_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (data, saved) = (folder.path().join("data"), folder.path().join("saved.db"));
        SqliteStore::open(&data, SqliteOptions::default()).unwrap().close().await.unwrap();
        backup(&data, &saved).unwrap();
        assert_eq!(restore(&data, &saved, 6).unwrap().contents, None);
        let own = data.join("contents/recording_1");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("0"), "bytes").unwrap();
        let restored = restore(&data, &saved, 7).unwrap();
        let kept = data.join("contents.before-restore-7");
        assert_eq!((restored.contents.as_ref(), data.join("contents").exists()), (Some(&kept), false));
        assert_eq!(std::fs::read(kept.join("recording_1/0")).unwrap(), b"bytes");
        assert!(data.join("palisade.db.before-restore-7").is_file());
    }
}
