use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::{SqliteStore, Store as _};

type Notice = Box<dyn Fn() + Send + Sync>;

/// A server that is asked for what a replica lacks and fails the first time, while the next notice comes.
#[derive(Default)]
struct Failing {
    notice: Mutex<Option<Arc<Notice>>>,
    asked: Mutex<Option<mpsc::Sender<()>>>,
    failed: AtomicBool,
    released: AtomicUsize,
    /// What a replica lacks when it takes the lease; nothing, where there is none.
    behind: Mutex<Option<Behind>>,
    /// Whether the question fails.
    unreachable: AtomicBool,
    /// Why changes fail, and how many did; they do not, where there is nothing.
    refused: Mutex<Option<(StoreError, usize)>>,
}

impl Failing {
    fn notice(&self) -> Arc<Notice> {
        Arc::clone(self.notice.lock().unwrap().as_ref().unwrap())
    }
}

impl Upstream for Failing {
    fn position(&self) -> Pending<'_, Position> {
        Box::pin(async { Ok(Position::default()) })
    }

    fn follow(&self, _at: &Position) -> Result<Behind, StoreError> {
        if self.failed.swap(true, Ordering::SeqCst) {
            self.asked.lock().unwrap().as_ref().unwrap().send(()).unwrap();
            return Ok(Behind::Current);
        }
        self.notice()();
        self.asked.lock().unwrap().as_ref().unwrap().send(()).unwrap();
        Err(StoreError::ServerBusy { server: "s".to_owned() })
    }

    fn begin(&self, _at: &Position) -> Result<Behind, StoreError> {
        if self.unreachable.load(Ordering::SeqCst) {
            return Err(StoreError::Server { server: "s".to_owned(), detail: "no answer".to_owned() });
        }
        Ok(self.behind.lock().unwrap().clone().unwrap_or(Behind::Current))
    }

    fn publish(&self, at: &Position, _changes: &[RowChange]) -> Result<Position, StoreError> {
        if let Some((error, count)) = self.refused.lock().unwrap().as_mut() {
            *count += 1;
            return Err(error.clone());
        }
        Ok(Position { version: at.version + 1, token: "made".to_owned() })
    }

    fn release(&self) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }

    fn load(&self, _take: TakeRows<'_>) -> Result<Option<Position>, StoreError> {
        Ok(Some(Position::default()))
    }

    fn watch(&self, moved: Notice) {
        *self.notice.lock().unwrap() = Some(Arc::new(moved));
    }

    fn exchange(&self, _exchange: Exchange) {}

    fn lead(&self, _leads: watch::Sender<bool>) {}

    fn contents(&self) -> Arc<dyn Contents> {
        Arc::new(crate::contents::FolderContents::within(std::path::Path::new("/nowhere")))
    }

    fn close(&self) {}
}

#[tokio::test]
async fn a_notice_that_comes_while_the_server_fails_does_not_silence_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, told) = mpsc::channel();
    let server = Arc::new(Failing::default());
    *server.asked.lock().unwrap() = Some(tell);
    let store = SqliteStore::follow(Arc::clone(&server) as Arc<dyn Upstream>, folder.path(), true).unwrap();
    server.notice()();
    told.recv_timeout(Duration::from_secs(60)).unwrap();
    // The writer may not have taken note of the failure yet; notices go on, as those of a server do.
    let mut notices = 0;
    while told.recv_timeout(Duration::from_millis(20)).is_err() {
        server.notice()();
        notices += 1;
        assert!(notices < 500, "no notice is heard any more");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_lease_is_kept_after_a_change_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Failing::default());
    let store = SqliteStore::follow(Arc::clone(&server) as Arc<dyn Upstream>, folder.path(), true).unwrap();
    let released = || server.released.load(Ordering::SeqCst);
    assert_eq!((store.document_put("d", vec![1]).await, released()), (Ok(()), 0));
    // Others would wait for its end.
    assert_eq!((store.document_remove("nothing").await, released()), (Ok(false), 1));
    store.close().await.unwrap();
}

#[tokio::test]
async fn no_versions_at_a_server_give_way_for_the_disk_of_a_replica() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Failing::default());
    let store = SqliteStore::follow(Arc::clone(&server) as Arc<dyn Upstream>, folder.path(), true).unwrap();
    let disk = StoreError::DiskFull { path: "replica".into() };
    let memory = StoreError::ServerFull { server: "s".to_owned() };
    for (error, only_once) in [(disk, true), (memory, false)] {
        *server.refused.lock().unwrap() = Some((error.clone(), 0));
        assert_eq!(store.entity_put("c", "a", "{}".to_owned(), 0).await, Err(error.clone()));
        let tried = server.refused.lock().unwrap().take().unwrap().1;
        assert_eq!(tried == 1, only_once, "{error}: {tried}");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_lease_is_given_back_by_a_replica_that_cannot_take_over_what_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Failing::default());
    let store = SqliteStore::follow(Arc::clone(&server) as Arc<dyn Upstream>, folder.path(), true).unwrap();
    let table = tables().unwrap().iter().position(|name| name == "document").unwrap();
    let cut_off = RowChange { table, key: vec![3, 1, 0, 0, 0, b'd'], row: Some(vec![3, 9, 0, 0, 0, b'd']) };
    let position = Position { version: 1, token: "t".to_owned() };
    *server.behind.lock().unwrap() = Some(Behind::Changes(position, vec![cut_off]));
    let failed = store.document_put("d", vec![1]).await.unwrap_err();
    assert!(failed.to_string().contains("cut off"), "{failed}");
    assert_eq!(server.released.load(Ordering::SeqCst), 1);
    // The lease was not taken with a question that failed: to give it back would hold up reads at a server that takes no writes.
    server.unreachable.store(true, Ordering::SeqCst);
    assert!(store.document_put("d", vec![1]).await.is_err());
    assert_eq!(server.released.load(Ordering::SeqCst), 1);
    server.unreachable.store(false, Ordering::SeqCst);
    *server.behind.lock().unwrap() = None;
    assert_eq!(store.document_put("d", vec![1]).await, Ok(()));
    store.close().await.unwrap();
}
