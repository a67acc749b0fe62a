//! How fast a worker is sent to, and what becomes of one that does not read.

use std::time::Duration;

use snapshot::Down;
use tokio::sync::mpsc;
use tonic::Status;

/// Messages that wait for a worker that does not read; one more ends its stream.
pub(crate) const QUEUE: usize = 64;
/// How long a worker may take to read a message of a long list: the bans that are live, the end of all of them.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(30);
/// How long a worker may take to read all that is live as its link begins. Few such lists are in memory at once: other links wait for
/// their room.
pub(crate) const LIST_TIME: Duration = Duration::from_secs(120);
/// Between two messages of a long list. A worker serves requests on the thread that takes them, and would take all that have
/// come at once.
pub(crate) const BREATH: Duration = Duration::from_millis(2);

pub(crate) fn too_slow() -> Status {
    Status::resource_exhausted("this worker does not read fast enough; open a new stream, it begins with all live bans")
}

/// Sends a message once so many further ones have room in the queue.
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
