//! What is live, for links that begin: links that begin at one time share one list, and few lists are in memory at once.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use snapshot::Down;
use store::StoreError;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};

/// Every live ban and entry of the allowlist at one moment. It takes some megabytes: drop it once it is sent.
#[derive(Debug)]
pub struct LiveList {
    down: Down,
    _room: OwnedSemaphorePermit,
    wanted: watch::Receiver<bool>,
}

impl LiveList {
    /// The lists that are in memory at once, at most. A link that begins while all are being sent waits until one has been.
    pub const MAX: usize = 8;

    /// Until a link waits for the room of a list; at once where one does.
    pub async fn wanted(&self) {
        let mut wanted = self.wanted.clone();
        let gone = wanted.wait_for(|wanted| *wanted).await.is_err();
        if gone {
            // No link can begin any more.
            std::future::pending::<()>().await;
        }
    }
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
    /// Whether a link waits for the room of a list.
    wanted: watch::Sender<bool>,
    /// How often reading a list has begun.
    begun: AtomicU64,
    /// The list that was read last, or why it was not, and how often reading had begun by then. Held while one is read.
    last: Mutex<(u64, Result<Weak<LiveList>, StoreError>)>,
}

impl Default for LiveLists {
    fn default() -> Self {
        let (room, wanted) = (Arc::new(Semaphore::new(LiveList::MAX)), watch::Sender::new(false));
        Self { room, wanted, begun: AtomicU64::new(0), last: Mutex::new((0, Ok(Weak::new()))) }
    }
}

/// While a link waits for the room of a list: it may leave at any time.
struct Waits<'a>(&'a watch::Sender<bool>);

impl<'a> Waits<'a> {
    fn begin(wanted: &'a watch::Sender<bool>) -> Self {
        wanted.send_replace(true);
        Self(wanted)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
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
        let room = self.room().await?;
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let list = read.await.map(|down| Arc::new(LiveList { down, _room: room, wanted: self.wanted.subscribe() }));
        *last = (number, list.as_ref().map(Arc::downgrade).map_err(Clone::clone));
        Ok((subscribed, list?))
    }

    /// The room of a list. One link at a time asks for it.
    async fn room(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
            return Ok(room);
        }
        let _waits = Waits::begin(&self.wanted);
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_owned().await.map_err(|_| StoreError::Closed)
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

    /// As many lists as are in memory at once.
    async fn all_lists(lists: &LiveLists, reads: &AtomicUsize) -> Vec<Arc<LiveList>> {
        let mut held = Vec::new();
        for _ in 0..LiveList::MAX {
            held.push(lists.begin(|| (), read(reads)).await.unwrap().1);
        }
        held
    }

    #[tokio::test(start_paused = true)]
    async fn few_lists_are_in_memory_at_once() {
        let (lists, reads) = (LiveLists::default(), AtomicUsize::new(0));
        let mut held = all_lists(&lists, &reads).await;
        let mut waits = std::pin::pin!(lists.begin(|| (), read(&reads)));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut waits).await.is_err());
        assert_eq!(reads.load(Ordering::Relaxed), LiveList::MAX);
        held.pop();
        waits.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_wanted_while_a_link_waits_for_the_room_of_one() {
        let (lists, reads) = (LiveLists::default(), AtomicUsize::new(0));
        let held = all_lists(&lists, &reads).await;
        let list = Arc::clone(&held[0]);
        let is_wanted = async || tokio::time::timeout(Duration::from_secs(1), list.wanted()).await.is_ok();
        assert!(!is_wanted().await, "all are in use, and no link waits");
        {
            let mut waits = std::pin::pin!(lists.begin(|| (), read(&reads)));
            assert!(tokio::time::timeout(Duration::from_secs(1), &mut waits).await.is_err());
            assert!(is_wanted().await);
        }
        assert!(!is_wanted().await, "the link has left");
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
        for _ in 0..=LiveList::MAX {
            assert!(lists.begin(|| (), async { Err(StoreError::Closed) }).await.is_err());
        }
        lists.begin(|| (), async { Ok(Down::default()) }).await.unwrap();
    }
}
