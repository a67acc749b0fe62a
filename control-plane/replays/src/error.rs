//! Why something about recordings or replays was refused or has failed.

use std::fmt;

use store::StoreError;

/// Why something was refused or has failed; texts are for operators, and say what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The program or the folder is missing; the configuration has to be mended.
    Unavailable(String),
    /// Others are at work or wait; try again later.
    Busy(String),
    /// As many recordings, or bytes of them, as are kept.
    Full(String),
    /// An upload is longer than allowed, in bytes.
    TooLarge(u64),
    /// The name of a recording is wrong.
    Name(String),
    /// There is no such recording.
    UnknownRecording,
    /// There is no such job, or not any more.
    UnknownJob,
    /// A job that waits or runs needs the recording.
    InUse,
    /// A job that has ended cannot be cancelled.
    Ended,
    /// Nothing in a recording can be read, or reading it takes too much.
    Unreadable(String),
    /// The disk or the operating system has failed.
    Io(String, std::io::Error),
    /// The store has failed.
    Store(StoreError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(text)
            | Self::Busy(text)
            | Self::Full(text)
            | Self::Name(text)
            | Self::Unreadable(text) => f.write_str(text),
            Self::TooLarge(limit) => write!(
                f,
                "the recording is longer than {} MiB; compress it with gzip, record less, or start the control plane with \
                 --replay-max-upload-mib",
                limit >> 20
            ),
            Self::UnknownRecording => {
                f.write_str("there is no recording with this id; the list shows those that are kept")
            }
            Self::UnknownJob => {
                f.write_str("there is no replay with this id, or its result is no longer kept; start it again")
            }
            Self::InUse => f.write_str("a replay that waits or runs needs this recording; cancel it first"),
            Self::Ended => f.write_str("this replay has ended"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for ReplayError {
    fn from(error: StoreError) -> ReplayError {
        ReplayError::Store(error)
    }
}

impl std::error::Error for ReplayError {}

/// For `map_err`: what failed.
pub(crate) fn io(what: &'static str) -> impl Fn(std::io::Error) -> ReplayError {
    move |error| ReplayError::Io(what.to_owned(), error)
}
