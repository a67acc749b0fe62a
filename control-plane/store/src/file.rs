//! The file of the embedded store: made whole, opened only in order, and looked through first.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::atomic_file;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{StoreError, schema};

/// The name of the store's file in the data directory.
pub(super) const FILE: &str = "palisade.db";

/// How long a statement waits for another process (`palisade admin-key` beside `palisade serve`).
const BUSY: Duration = Duration::from_secs(5);

/// Makes the data directory where it does not exist, for its owner alone: entities may hold secrets of providers.
pub(super) fn directory(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Takes the lock that makes this process the only one to serve from `directory`. The operating system releases it
/// when the process ends, however it ends.
pub(super) fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("palisade.lock");
    let failed = |error: std::io::Error| StoreError::Failed { path: path.clone(), detail: error.to_string() };
    let file = atomic_file::open_lock(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Makes an empty store under another name and moves it into place whole: from then on an empty or cut-off file is
/// damage, and never the trace of a first start that was interrupted.
pub(super) fn create(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed { path: path.to_owned(), detail: error.to_string() };
    if wal(path).try_exists().map_err(failed)? {
        let detail = format!("the file is missing, yet its log {} is there", wal(path).display());
        return Err(StoreError::Damaged { path: path.to_owned(), detail });
    }
    let fresh = directory.join(format!(".{FILE}.{}.new", std::process::id()));
    for leftover in [fresh.clone(), wal(&fresh)] {
        if leftover.try_exists().map_err(failed)? {
            std::fs::remove_file(&leftover).map_err(failed)?;
        }
    }
    // Empty, it is a database without tables. The engine gives the log and its index the same owner and permissions.
    let made = atomic_file::make_private(&fresh, path).map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let engine = |error| explain(path, error);
    let mut db = Connection::open_with_flags(&fresh, flags).map_err(engine)?;
    configure(&db).map_err(engine)?;
    schema::migrate(&mut db).map_err(engine)?;
    db.close().map_err(|(_, error)| engine(error))?;
    made.sync_all().map_err(failed)?;
    // A link and not a rename: it fails where another process has been first, instead of replacing its file.
    let linked = std::fs::hard_link(&fresh, path);
    std::fs::remove_file(&fresh).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    sync_folder(directory).map_err(failed)?;
    tracing::info!(path = %path.display(), "created an empty store");
    Ok(())
}

/// Makes the entries of a folder last beyond a loss of power.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The log beside a store's file.
pub(super) fn wal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Opens an existing file.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let empty = std::fs::metadata(path).map(|data| data.len() == 0);
    if empty.map_err(|error| StoreError::Failed { path: path.to_owned(), detail: error.to_string() })? {
        return Err(StoreError::Damaged { path: path.to_owned(), detail: "the file is empty".to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(|error| explain(path, error))?;
    configure(&db).map_err(|error| explain(path, error))?;
    Ok(db)
}

fn configure(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // FULL syncs the log on each commit; NORMAL would lose acknowledged writes with the power.
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "cell_size_check", true)
}

/// Looks through the whole file before anything is served from it.
pub(super) fn verify(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let damaged = |detail: String| StoreError::Damaged { path: path.to_owned(), detail };
    let finding: String =
        db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(|error| explain(path, error))?;
    if finding != "ok" {
        return Err(damaged(finding));
    }
    let mark: i32 =
        db.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(|error| explain(path, error))?;
    if mark != schema::APPLICATION_ID {
        return Err(damaged("it is a database, but not one of Palisade".to_owned()));
    }
    let found = schema::version(db).map_err(|error| explain(path, error))?;
    let known = schema::known_version();
    if found > known {
        return Err(StoreError::TooNew { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// Says in the domain's words what the engine reports.
pub(super) fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { path, detail: error.to_string() }
        }
        _ => StoreError::Failed { path, detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn what_root_makes_is_the_folders_owners() {
        let folder = tempfile::tempdir().unwrap();
        if std::fs::metadata(folder.path()).unwrap().uid() != 0 {
            return;
        }
        let (service, group) = (65_532, 65_533);
        chown(folder.path(), Some(service), Some(group)).unwrap();
        let path = folder.path().join(FILE);
        let _lock = lock(folder.path()).unwrap();
        create(folder.path(), &path).unwrap();
        let db = connect(&path).unwrap();
        db.execute("CREATE TABLE t (a)", []).unwrap();
        for name in ["palisade.lock", FILE, "palisade.db-wal", "palisade.db-shm"] {
            let there = std::fs::metadata(folder.path().join(name)).unwrap();
            assert_eq!((there.uid(), there.gid()), (service, group), "{name}");
            assert_eq!(there.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn every_commit_is_synced() {
        // What `kill -9` cannot show: only the sync makes an acknowledged write survive a loss of power.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        create(folder.path(), &path).unwrap();
        let db = connect(&path).unwrap();
        let pragma =
            |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(pragma("synchronous").unwrap(), rusqlite::types::Value::Integer(2));
        assert_eq!(pragma("journal_mode").unwrap(), rusqlite::types::Value::Text("wal".to_owned()));
    }
}
