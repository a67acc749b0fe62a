//! Files that a reader sees whole or not at all, and that are on the disk once written.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone (mode 0600): for secrets.
    Owner,
    /// As the umask of the process allows: for results that other users' programs read.
    Umask,
}

/// Writes a file, in place of the one of that name if there is one.
///
/// # Errors
///
/// The error of the system; the earlier file, if any, is as it was.
pub fn replace(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let fresh = write_beside(file, bytes, readers)?;
    let replaced = std::fs::rename(&fresh, file);
    remove_after_failure(&fresh, replaced)?;
    sync_folder(file)
}

/// Writes a file for its owner alone; false if the name exists already, whose file is as it was.
///
/// # Errors
///
/// The error of the system; no file of that name was made.
pub fn create(file: &Path, bytes: &[u8]) -> io::Result<bool> {
    if file.try_exists()? {
        return Ok(false);
    }
    let fresh = write_beside(file, bytes, Readers::Owner)?;
    let moved = move_new(&fresh, file);
    let made = remove_after_failure(&fresh, moved)?;
    if made {
        sync_folder(file)?;
    }
    Ok(made)
}

/// Writes to a temporary name in the folder of `file`.
fn write_beside(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<PathBuf> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let fresh = PathBuf::from(name);
    // A leftover of an earlier process of this number may have other permissions, which `mode` would not change.
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Umask => 0o666,
    };
    let mut out = File::options().write(true).create_new(true).mode(mode).open(&fresh)?;
    let written = out.write_all(bytes).and_then(|()| out.sync_all());
    remove_after_failure(&fresh, written)?;
    Ok(fresh)
}

/// Gives a file its name; false if the name exists already.
fn move_new(fresh: &Path, file: &Path) -> io::Result<bool> {
    match std::fs::hard_link(fresh, file) {
        Ok(()) => std::fs::remove_file(fresh).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => std::fs::remove_file(fresh).map(|()| false),
        // A file system without links.
        Err(_) => std::fs::rename(fresh, file).map(|()| true),
    }
}

fn remove_after_failure<T>(fresh: &Path, result: io::Result<T>) -> io::Result<T> {
    if result.is_err() {
        let _gone = std::fs::remove_file(fresh);
    }
    result
}

/// Makes the entry of a file in its folder last beyond a loss of power.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(file: &Path) -> u32 {
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_whole_and_with_the_mode_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        std::fs::write(&file, "an older and longer text").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        // A leftover of an earlier process that ended at once.
        let leftover = folder.path().join(format!("key.json.{}.tmp", std::process::id()));
        std::fs::write(&leftover, "half").unwrap();
        std::fs::set_permissions(&leftover, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace(&file, b"new", Readers::Owner).unwrap();
        assert_eq!((std::fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o600));
        replace(&file, b"newer", Readers::Umask).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"newer");
        assert_ne!(mode(&file) & 0o400, 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_exists_is_not_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        assert!(create(&file, b"one").unwrap());
        assert_eq!(mode(&file), 0o600);
        assert!(!create(&file, b"two").unwrap());
        // Another process makes it after the first look.
        let fresh = write_beside(&file, b"three", Readers::Owner).unwrap();
        assert!(!move_new(&fresh, &file).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a-folder");
        std::fs::create_dir(&file).unwrap();
        assert!(replace(&file, b"text", Readers::Owner).is_err());
        assert!(replace(&folder.path().join("missing/file"), b"text", Readers::Owner).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
