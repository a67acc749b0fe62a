//! Files that a reader sees whole or not at all, and that are on the disk once written.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::owner::{Owner, folder_of, is_root};

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone (mode 0600): for secrets. One in place of a file that its group may read has mode 0640.
    Owner,
    /// As the umask of the process allows: for results that other users' programs read.
    Umask,
}

/// Writes a file, in place of the one of that name if there is one. It has the owner and the group of that one; a new file that
/// root writes has those of its folder.
///
/// # Errors
///
/// The error of the system, also where a file for its owner alone cannot be given to the owner of the earlier one; the
/// earlier file, if any, is as it was.
pub fn replace(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let fresh = write_beside(file, bytes, readers)?;
    let replaced = std::fs::rename(&fresh, file);
    remove_after_failure(&fresh, replaced)?;
    sync_folder(file)
}

/// Writes a file for its owner alone; false if the name exists already, whose file is as it was. What root writes is the
/// folder's owner's.
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
    let mut out = make(&fresh, file, readers)?;
    let kept = match readers {
        Readers::Owner => keep_group_reading(file, &out),
        Readers::Umask => Ok(()),
    };
    let written = kept.and_then(|()| out.write_all(bytes)).and_then(|()| out.sync_all());
    remove_after_failure(&fresh, written)?;
    Ok(fresh)
}

/// Lets the group read a file that takes the place of one which the group may read, if it is that group's.
fn keep_group_reading(earlier: &Path, fresh: &File) -> io::Result<()> {
    let Ok(earlier) = std::fs::symlink_metadata(earlier) else { return Ok(()) };
    let its_group = fresh.metadata()?.gid() == earlier.gid();
    match its_group && earlier.is_file() && earlier.mode() & 0o040 != 0 {
        true => fresh.set_permissions(Permissions::from_mode(0o640)),
        false => Ok(()),
    }
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
    File::open(folder_of(file))?.sync_all()
}

/// Makes a file for its owner alone (mode 0600), under a name that does not exist. The owner is the one of the file whose place it
/// takes, or of the folder where there is none and this process is root's: the service's user reads what a command of root has made.
///
/// # Errors
///
/// The error of the system, also where the file cannot be given to its owner; no file of that name was made.
pub fn make_private(fresh: &Path, in_place_of: &Path) -> io::Result<File> {
    make(fresh, in_place_of, Readers::Owner)
}

/// Makes a file as [`make_private`] does, for these readers.
fn make(fresh: &Path, in_place_of: &Path, readers: Readers) -> io::Result<File> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Umask => 0o666,
    };
    let owner = Owner::of(in_place_of)?;
    let made = File::options().create_new(true).write(true).mode(mode).open(fresh)?;
    let given = match owner.map_or(Ok(()), |owner| owner.take(&made)) {
        // Others may read it all the same; that it changes hands is what a folder of several users allows.
        Err(_) if readers == Readers::Umask && !is_root() => Ok(made),
        Err(error) => {
            let detail = format!("{} cannot be given to the owner of the file or folder: {error}", fresh.display());
            Err(io::Error::new(error.kind(), detail))
        }
        Ok(()) => Ok(made),
    };
    remove_after_failure(fresh, given)
}

/// Opens the file that processes lock, and makes it where it does not exist. What another user puts there as a link is refused.
///
/// # Errors
///
/// The error of the system.
pub fn open_lock(name: &Path) -> io::Result<File> {
    match make_private(name, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
            File::options().write(true).custom_flags(flags).open(name)
        }
        made => made,
    }
}

/// Keeps others out who lock the same file, until the result is dropped: for who reads a file and then replaces it. The lock is
/// a file of its own, `FILE.lock`, which stays. Blocks.
///
/// # Errors
///
/// The error of the system.
pub fn lock(file: &Path) -> io::Result<File> {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    let lock = open_lock(Path::new(&name))?;
    lock.lock()?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    fn mode(file: &Path) -> u32 {
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_whole_and_with_the_mode_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        std::fs::write(&file, "an older and longer text").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        // A leftover of an earlier process that ended at once.
        let leftover = folder.path().join(format!("key.json.{}.tmp", std::process::id()));
        std::fs::write(&leftover, "half").unwrap();
        std::fs::set_permissions(&leftover, Permissions::from_mode(0o644)).unwrap();
        replace(&file, b"new", Readers::Owner).unwrap();
        // Its group may go on reading it, others may not.
        assert_eq!((std::fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o640));
        std::fs::set_permissions(&file, Permissions::from_mode(0o604)).unwrap();
        replace(&file, b"new", Readers::Owner).unwrap();
        assert_eq!(mode(&file), 0o600);
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

    /// Owner and group of a file.
    fn owner(file: &Path) -> (u32, u32) {
        let there = std::fs::metadata(file).unwrap();
        (there.uid(), there.gid())
    }

    #[test]
    fn what_root_writes_is_the_services() {
        if !is_root() {
            return;
        }
        let (service, group) = (65_532, 65_533);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, "old").unwrap();
        chown(&file, Some(service), Some(group)).unwrap();
        replace(&file, b"new", Readers::Owner).unwrap();
        assert_eq!((owner(&file), mode(&file)), ((service, group), 0o640));
        let others = folder.path().join("others");
        replace(&others, b"new", Readers::Umask).unwrap();
        assert_eq!(owner(&others), owner(folder.path()), "the folder is root's");
        // In a folder of the service's user, a new file is the user's.
        chown(folder.path(), Some(service), Some(group)).unwrap();
        for (name, readers) in [("key", Readers::Owner), ("result", Readers::Umask)] {
            replace(&folder.path().join(name), b"new", readers).unwrap();
        }
        assert!(create(&folder.path().join("first"), b"new").unwrap());
        drop(lock(&folder.path().join("first")).unwrap());
        for name in ["key", "result", "first", "first.lock"] {
            assert_eq!(owner(&folder.path().join(name)), (service, group), "{name}");
        }
        // A link to a file of another user counts as itself, and that file is left alone.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&others, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(service), Some(group)).unwrap();
        replace(&link, b"mine", Readers::Owner).unwrap();
        assert_eq!((owner(&link), owner(&others)), ((service, group), (0, owner(&others).1)));
        assert_eq!(std::fs::read(&others).unwrap(), b"new");
        let trap = folder.path().join("trap.lock");
        std::os::unix::fs::symlink(&others, &trap).unwrap();
        assert!(lock(&folder.path().join("trap")).is_err());
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
