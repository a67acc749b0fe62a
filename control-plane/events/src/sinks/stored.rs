//! The event store, as one more place that events go to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::EventStore;
use store::events::NewEvent;

use super::{Failure, Sink, Then};
use crate::queue::{Bounds, Line};

/// A batch with fewer events is followed by a pause: those that come meanwhile are one batch, which takes less room.
const FEW: usize = 64;
/// The pause.
const PAUSE: Duration = Duration::from_millis(200);

/// The event store, and the clock by which events arrive.
#[derive(Clone)]
pub struct Stored {
    store: Arc<dyn EventStore>,
    clock: fn() -> u64,
}

impl Stored {
    /// Events go to `store`; `clock` tells the time in milliseconds since 1970.
    pub fn new(store: Arc<dyn EventStore>, clock: fn() -> u64) -> Stored {
        Stored { store, clock }
    }
}

impl Sink for Stored {
    const BATCH: Bounds = Bounds { lines: 1000, bytes: 4 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let (lines, now) = (batch.to_vec(), (self.clock)());
        let read = move || lines.iter().filter_map(|line| NewEvent::read(line, now)).collect::<Vec<_>>();
        let failed = |reason: String| Failure { written: 0, refused: 0, reason, then: Then::Retry(None) };
        let events = tokio::task::spawn_blocking(read).await.map_err(|error| failed(error.to_string()))?;
        self.store.append(events).await.map_err(|error| failed(error.to_string()))?;
        if batch.len() < FEW {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use store::events::{EventPage, EventQuery, EventStoreStatus};
    use store::{Pending, StoreError};
    use tokio::sync::broadcast;

    use super::*;
    use crate::{EventHub, Exporter};

    /// Takes events as it is told to: `None` hangs.
    struct Fake {
        answers: Mutex<Vec<Option<Result<(), StoreError>>>>,
        taken: Mutex<Vec<NewEvent>>,
    }

    impl EventStore for Fake {
        fn append(&self, events: Vec<NewEvent>) -> Pending<'_, ()> {
            let answer = self.answers.lock().unwrap().pop().unwrap_or(Some(Ok(())));
            Box::pin(async move {
                let Some(answer) = answer else { return std::future::pending().await };
                if answer.is_ok() {
                    self.taken.lock().unwrap().extend(events);
                }
                answer
            })
        }

        fn search(&self, _query: EventQuery) -> Pending<'_, EventPage> {
            panic!("nothing asks for it")
        }

        fn status(&self) -> Pending<'_, EventStoreStatus> {
            panic!("nothing asks for it")
        }

        fn sweep(&self, _now_millis: u64) -> Pending<'_, ()> {
            panic!("nothing asks for it")
        }

        fn give_way(&self) -> Pending<'_, bool> {
            panic!("nothing asks for it")
        }

        fn others(&self) -> broadcast::Receiver<Arc<[u8]>> {
            panic!("nothing asks for it")
        }

        fn close(&self) -> Pending<'_, ()> {
            panic!("nothing asks for it")
        }
    }

    fn hub(answers: Vec<Option<Result<(), StoreError>>>) -> (Arc<Fake>, EventHub) {
        let fake = Arc::new(Fake { answers: Mutex::new(answers), taken: Mutex::default() });
        let store = Stored::new(Arc::clone(&fake) as Arc<dyn EventStore>, || 1_800_000_000_000);
        (fake, EventHub::new(vec![Exporter::Store(store)], || 1_800_000_000_000))
    }

    fn publish(hub: &EventHub, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let event = json!({ "@type": "SvcSecurityEvent", "@id": format!("e{number}") });
            hub.publish(event.to_string().as_bytes()).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_again_and_nothing_is_lost() {
        let full = Some(Err(StoreError::DiskFull { path: "events.db".into() }));
        let (fake, hub) = hub(vec![full.clone(), full]);
        publish(&hub, 0..100);
        hub.flush().await;
        assert_eq!(fake.taken.lock().unwrap().len(), 100);
        let status = &hub.exporters()[0];
        assert_eq!((status.name.as_str(), status.written, status.dropped, status.retries), ("store", 100, 0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_holds_up_nothing_and_the_oldest_are_counted_as_lost() {
        let (_fake, hub) = hub(vec![None]);
        publish(&hub, 0..10);
        tokio::time::sleep(Duration::from_secs(1)).await;
        publish(&hub, 10..25_010);
        let status = &hub.exporters()[0];
        assert_eq!((status.waiting, status.dropped), (10_010, 15_000), "those that are being written included");
    }
}
