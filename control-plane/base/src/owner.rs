//! Whose a new file is. A command that root runs works on files of the service's user, who has to read them afterwards.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user's id.
    pub uid: u32,
    /// The group's id.
    pub gid: u32,
}

impl Owner {
    /// Whose a file is to be that takes this name: the owner of the one that has it; if there is none and this process is
    /// root's, the owner of the folder. `None`: the user and the group of this process. A symbolic link counts as itself.
    ///
    /// # Errors
    ///
    /// What the system says of the file or of its folder.
    pub fn of(file: &Path) -> io::Result<Option<Owner>> {
        match std::fs::symlink_metadata(file) {
            Ok(there) => Ok(Some(Owner::from(&there))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_root() => {
                std::fs::metadata(folder_of(file)).map(|folder| Some(Owner::from(&folder)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an open file theirs. Give only a file that this process has just made (`create_new`): a link to another file would
    /// give that one away. A group of which this process is no member stays as it is, unless the process is root's.
    ///
    /// # Errors
    ///
    /// The system does not let this process give the file away.
    pub fn take(self, file: &File) -> io::Result<()> {
        let now = Owner::from(&file.metadata()?);
        if now.uid != self.uid || (now.gid != self.gid && is_root()) {
            return fchown(file, Some(self.uid), Some(self.gid));
        }
        if now.gid != self.gid {
            let _others = fchown(file, None, Some(self.gid));
        }
        Ok(())
    }
}

impl From<&Metadata> for Owner {
    fn from(metadata: &Metadata) -> Owner {
        Owner { uid: metadata.uid(), gid: metadata.gid() }
    }
}

/// Whether this process may give files away.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
