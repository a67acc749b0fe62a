//! What can go wrong between the control plane and its store.

use std::fmt;
use std::path::PathBuf;

/// A failed store operation. Cheap to copy: one failed commit is reported to every write that shared it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The entity has moved on since the caller read it (or exists where it must not). Fault: caller.
    Conflict {
        /// The revision that the store holds now; 0 when the entity does not exist.
        current: u64,
    },
    /// One of several changes that were to be made as one met [`StoreError::Conflict`]; nothing was written. Fault: caller.
    BatchConflict {
        /// Which change, from 0.
        index: usize,
        /// The revision that the store holds now; 0 when the entity does not exist.
        current: u64,
    },
    /// Changes that were judged at one revision of all entities met another one: of several control planes another has changed entities
    /// meanwhile, or this one has not read them yet. Nothing was written: what was judged is to be read and judged again. Fault: dependency.
    Moved {
        /// The revision that the store holds now.
        revision: u64,
    },
    /// The medium, or the size that the store may take, is used up; nothing was written. Fault: dependency.
    DiskFull {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a readable store. It is left as it is. Fault: dependency.
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file was written by a newer release. Fault: configuration.
    TooNew {
        /// The store's file.
        path: PathBuf,
        /// The schema version in the file.
        found: u32,
        /// The newest schema version this release reads.
        known: u32,
    },
    /// Another process serves from the same data directory. Fault: configuration.
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// A file that was given as a backup is none. Nothing was changed. Fault: caller.
    NoBackup {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The server of a shared store cannot be used: it does not answer, or refuses. Nothing was written. Fault: dependency, or
    /// configuration where the detail says that it refuses.
    Server {
        /// The server, without a password.
        server: String,
        /// What is wrong, and what to do about it.
        detail: String,
    },
    /// The server of a shared store has no memory left; nothing was written. Fault: dependency.
    ServerFull {
        /// The server, without a password.
        server: String,
    },
    /// Another control plane has the lease of a shared store, or took it meanwhile; nothing was written, and the caller may try
    /// again. Fault: dependency.
    ServerBusy {
        /// The server, without a password.
        server: String,
    },
    /// The connection broke, or the time was up, while the server of a shared store made a change: it may have been made, or
    /// not. Fault: dependency.
    Unanswered {
        /// The server, without a password.
        server: String,
        /// What was seen.
        detail: String,
    },
    /// The store that another one was to be copied to is not empty; nothing was written. Fault: caller.
    NotEmpty {
        /// The store.
        store: String,
    },
    /// The store was closed (the process is going down).
    Closed,
    /// Any other failure of the medium or the engine. Fault: dependency.
    Failed {
        /// The store's file.
        path: PathBuf,
        /// What the operating system or the engine said.
        detail: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Conflict { current: 0 } => write!(f, "the entity does not exist (any more)"),
            StoreError::Conflict { current } => write!(f, "the entity exists at revision {current}"),
            StoreError::BatchConflict { index, current: 0 } => {
                write!(f, "nothing was written: the entity of change {index} does not exist (any more)")
            }
            StoreError::BatchConflict { index, current } => {
                write!(f, "nothing was written: the entity of change {index} is at revision {current}")
            }
            StoreError::Moved { revision } => write!(
                f,
                "nothing was written: another control plane changes entities at the same time, they are at revision {revision} by now; try again"
            ),
            StoreError::DiskFull { path } => write!(
                f,
                "no room left for {}: nothing was written; free space on the volume or raise the store's size limit",
                path.display()
            ),
            StoreError::Damaged { path, detail } => write!(
                f,
                "the store {} is damaged ({detail}). It was left untouched. Restore it from a backup with \
                 `palisade restore`, or move it, its -wal and -shm neighbours and the folder `contents` away to start with an empty store",
                path.display()
            ),
            StoreError::TooNew { path, found, known } => write!(
                f,
                "the store {} has schema version {found}, this release reads up to {known}: use the release that wrote it, or a newer one",
                path.display()
            ),
            StoreError::InUse { path } => write!(
                f,
                "another palisade process serves from this data directory ({} is locked): stop it, or choose another --data",
                path.display()
            ),
            StoreError::NoBackup { path, detail } => {
                write!(f, "{} is not a backup of a store ({detail}); nothing was changed", path.display())
            }
            StoreError::Server { server, detail } => write!(f, "the store {server} cannot be used: {detail}"),
            StoreError::ServerFull { server } => write!(
                f,
                "no memory left in {server}: nothing was written; raise its maxmemory, or give it less to hold"
            ),
            StoreError::ServerBusy { server } => {
                write!(f, "another control plane was writing to {server}: nothing was written, try again")
            }
            StoreError::Unanswered { server, detail } => write!(
                f,
                "{server} did not answer to a change ({detail}): it may have been made or not, look before trying again"
            ),
            StoreError::NotEmpty { store } => {
                write!(f, "{store} is not empty: nothing was written; choose an empty one, or another key prefix")
            }
            StoreError::Closed => write!(f, "the store is closed: the control plane is shutting down"),
            StoreError::Failed { path, detail } => write!(f, "the store {} failed: {detail}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {}
