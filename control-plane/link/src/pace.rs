//! How fast a worker is sent to, and what becomes of one that does not read.

use std::time::Duration;

use tonic::Status;

/// Messages that wait for a worker that does not read; one more ends its stream.
pub(crate) const QUEUE: usize = 64;
/// How long a worker may take to read a message of a long list: the bans that are live, the end of all of them.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(30);
/// Between two messages of a long list. A worker serves requests on the thread that takes them, and would take all that have
/// come at once.
pub(crate) const BREATH: Duration = Duration::from_millis(2);

pub(crate) fn too_slow() -> Status {
    Status::resource_exhausted("this worker does not read fast enough; open a new stream, it begins with all live bans")
}
