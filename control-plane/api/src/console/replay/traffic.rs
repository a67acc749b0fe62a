//! The recording that plugins replay on their own.

use std::sync::{Arc, Mutex, PoisonError};

use kit::{RecordedExchange, RecordedTraffic, TrafficSource};
use recording::Entry;
use replays::{ReplayError, Replays, Source};
use tokio::runtime::Handle;

/// The recording that was uploaded last. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LatestTraffic {
    replays: Replays,
    /// What was read last.
    kept: Arc<Mutex<Option<Arc<RecordedTraffic>>>>,
}

impl LatestTraffic {
    pub(crate) fn new(replays: Replays) -> LatestTraffic {
        LatestTraffic { replays, kept: Arc::default() }
    }

    /// For threads that may block.
    pub(crate) fn blocking(&self, waiting: Handle) -> BlockingTraffic {
        BlockingTraffic { latest: self.clone(), waiting }
    }

    /// Recordings of stored events are left out: there are no queries and no bodies in them.
    async fn read(&self) -> Result<Option<Arc<RecordedTraffic>>, ReplayError> {
        let uploads = self.replays.recordings().await?.into_iter().filter(|one| one.source == Source::Upload);
        let Some(newest) = uploads.max_by_key(|one| one.added_millis) else { return Ok(None) };
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().as_ref().filter(|known| known.id == newest.id) {
            return Ok(Some(Arc::clone(known)));
        }
        let exchanges = self.replays.beginning(&newest).await?.into_iter().map(recorded_exchange).collect();
        let read = RecordedTraffic { id: newest.id, name: newest.name, exchanges, total: newest.requests };
        let read = Arc::new(read);
        *kept() = Some(Arc::clone(&read));
        Ok(Some(read))
    }
}

/// The same for a thread that may block.
pub(crate) struct BlockingTraffic {
    latest: LatestTraffic,
    waiting: Handle,
}

impl TrafficSource for BlockingTraffic {
    fn latest(&self) -> Result<Option<Arc<RecordedTraffic>>, String> {
        self.waiting.block_on(self.latest.read()).map_err(|error| error.to_string())
    }
}

/// An entry of a recording as plugins take it.
#[must_use]
pub fn recorded_exchange(entry: Entry) -> RecordedExchange {
    let (request, response) = (entry.exchange.request, entry.exchange.response);
    RecordedExchange {
        at_millis: entry.at_millis,
        peer: request.peer,
        local: request.local,
        protocol: request.protocol,
        headers: request.headers,
        body: request.body,
        status: response.status,
        response_headers: response.headers,
        response_body: response.body,
    }
}
