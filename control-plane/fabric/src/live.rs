//! What is live, for links that begin: links that begin at one time share one list, and few lists are in memory at once.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use snapshot::Down;
use store::StoreError;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// The lists that are in memory at once, at most. A link that begins while all are being sent waits until one has been.
const LISTS: usize = 8;

/// Every live ban and entry of the allowlist at one moment. It takes some megabytes: drop it once it is sent.
#[derive(Debug)]
pub struct LiveList {
    down: Down,
    _room: OwnedSemaphorePermit,
}

impl Deref for LiveList {
    type Target = Down;

    fn deref(&self) -> &Down {
        &self.down
    }
}

/// Where links get the list that they begin with.
#[derive(Debug)]
pub(crate) struct LiveLists {
    room: Arc<Semaphore>,
    /// How often reading a list has begun.
    begun: AtomicU64,
    /// The list that was read last, or why it was not, and how often reading had begun by then. Held while one is read.
    last: Mutex<(u64, Result<Weak<LiveList>, StoreError>)>,
}

impl Default for LiveLists {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(LISTS)), begun: AtomicU64::new(0), last: Mutex::new((0, Ok(Weak::new()))) }
    }
}

impl LiveLists {
    /// What `subscribe` gives, and a list whose reading by `read` has begun after that. Those who come while one is read wait for the
    /// next, which they share.
    pub(crate) async fn begin<S>(
        &self,
        subscribe: impl FnOnce() -> S,
        read: impl Future<Output = Result<Down, StoreError>>,
    ) -> Result<(S, Arc<LiveList>), StoreError> {
        let subscribed = subscribe();
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if last.0 > before {
            match &last.1 {
                Ok(list) => {
                    if let Some(shared) = list.upgrade() {
                        return Ok((subscribed, shared));
                    }
                }
                // A store that fails slowly fails all of them at once, not one after the other.
                Err(error) => return Err(error.clone()),
            }
        }
        // The semaphore is never closed.
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let list = read.await.map(|down| Arc::new(LiveList { down, _room: room }));
        *last = (number, list.as_ref().map(Arc::downgrade).map_err(Clone::clone));
        Ok((subscribed, list?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    /// Reads a list after some time, and counts it.
    async fn read(reads: &AtomicUsize) -> Result<Down, StoreError> {
        reads.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Down::default())
    }

    #[tokio::test(start_paused = true)]
    async fn links_that_begin_at_one_time_share_a_list() {
        let (lists, reads) = (Arc::new(LiveLists::default()), Arc::new(AtomicUsize::new(0)));
        let begin = || {
            let (lists, reads) = (Arc::clone(&lists), Arc::clone(&reads));
            tokio::spawn(async move { lists.begin(|| (), read(&reads)).await.unwrap().1 })
        };
        let first = begin();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let others: Vec<_> = (0..50).map(|_| begin()).collect();
        let first = first.await.unwrap();
        let mut shared = Vec::new();
        for other in others {
            shared.push(other.await.unwrap());
        }
        assert_eq!(
            reads.load(Ordering::Relaxed),
            2,
            "the first one's may lack what changed before the others subscribed"
        );
        assert!(shared.iter().all(|list| Arc::ptr_eq(list, &shared[0]) && !Arc::ptr_eq(list, &first)));
        // A list that was read before a link has begun is none for it.
        assert!(!Arc::ptr_eq(&begin().await.unwrap(), &shared[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn few_lists_are_in_memory_at_once() {
        let (lists, reads) = (LiveLists::default(), AtomicUsize::new(0));
        let mut held = Vec::new();
        for _ in 0..LISTS {
            held.push(lists.begin(|| (), read(&reads)).await.unwrap().1);
        }
        let mut waits = std::pin::pin!(lists.begin(|| (), read(&reads)));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut waits).await.is_err());
        assert_eq!(reads.load(Ordering::Relaxed), LISTS);
        held.pop();
        waits.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_slowly_fails_all_who_wait_at_once() {
        let lists = Arc::new(LiveLists::default());
        let begin = || {
            let lists = Arc::clone(&lists);
            tokio::spawn(async move {
                let read = async {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    Err(StoreError::Closed)
                };
                assert!(lists.begin(|| (), read).await.is_err());
            })
        };
        let started = tokio::time::Instant::now();
        for one in (0..50).map(|_| begin()).collect::<Vec<_>>() {
            one.await.unwrap();
        }
        assert!(started.elapsed() <= Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_list_that_could_not_be_read_takes_no_room() {
        let lists = LiveLists::default();
        for _ in 0..=LISTS {
            assert!(lists.begin(|| (), async { Err(StoreError::Closed) }).await.is_err());
        }
        lists.begin(|| (), async { Ok(Down::default()) }).await.unwrap();
    }
}
