//! How fast a worker is sent to, and what becomes of one that does not read.

use std::time::Duration;

use snapshot::Down;
use tokio::sync::mpsc;
use tonic::Status;

/// Messages that wait for a worker that does not read; one more ends its stream. The reason of that end has a place beside them.
pub(crate) const QUEUE: usize = 64;
/// How long a worker may take to read a message of a long list: the bans that are live, the end of all of them.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(30);
/// How long a worker may take to read all that is live as its link begins, where other links wait for the room of its list: few lists
/// are in memory at once.
pub(crate) const LIST_TIME: Duration = Duration::from_secs(120);
/// How long a link waits for the list that it begins with, and for room for it. Then the worker is told to come back, instead of hanging.
pub(crate) const BEGIN_TIME: Duration = Duration::from_secs(10);
/// Between two messages of a long list. A worker serves requests on the thread that takes them, and would take all that have
/// come at once.
pub(crate) const BREATH: Duration = Duration::from_millis(2);

pub(crate) fn too_slow() -> Status {
    Status::resource_exhausted("this worker does not read fast enough; open a new stream, it begins with all live bans")
}

/// Sends a message once so many have room in the queue, this one among them.
///
/// This looks at the room again and again and reserves none: a reservation that waits takes all room that there is, and single bans cut a
/// worker off that has no room for them.
///
/// # Errors
///
/// `resource_exhausted` where there is no such room for as long as [`CATCH_UP`], or the worker has left.
pub(crate) async fn send_with_room(
    message: Down,
    room: usize,
    down: &mpsc::Sender<Result<Down, Status>>,
) -> Result<(), Status> {
    let sent = async {
        while down.capacity() < room && !down.is_closed() {
            tokio::time::sleep(BREATH).await;
        }
        down.send(Ok(message)).await.map_err(|_| too_slow())
    };
    tokio::time::timeout(CATCH_UP, sent).await.map_err(|_| too_slow())?
}
