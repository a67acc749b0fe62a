//! Two services on one store, as two control planes have it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use store::{SqliteOptions, SqliteStore, Store};

use super::*;
use crate::change::{BatchEntry, BatchOptions, BatchWrite, Replacement};
use crate::{Admission, AlertRule, Entity, EntityRef, EntityService, FieldProblem, Kind, Route, exactly, registry};

/// Only keeps a failure from hanging the test.
const LONG: Duration = Duration::from_secs(60);

/// Keeps the first write waiting while it is judged.
struct Gate {
    entered: mpsc::Sender<()>,
    open: Mutex<mpsc::Receiver<()>>,
    judged: AtomicUsize,
}

impl Admission for Gate {
    fn admit(&self, _candidate: &EntitySet, _changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        if self.judged.fetch_add(1, Ordering::SeqCst) == 0 {
            self.entered.send(()).unwrap();
            self.open.lock().unwrap().recv_timeout(LONG).unwrap();
        }
        Ok(Vec::new())
    }
}

/// Another control plane that changes something whenever this one judges.
struct Busy {
    store: Arc<dyn Store>,
    judged: AtomicUsize,
}

impl Admission for Busy {
    fn admit(&self, _candidate: &EntitySet, _changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        let id = self.judged.fetch_add(1, Ordering::SeqCst).to_string();
        let put = self.store.entity_put("of-another-release", &id, "{}".to_owned(), 0);
        tokio::runtime::Handle::current().block_on(put).unwrap();
        Ok(Vec::new())
    }
}

fn kind(collection: &str) -> &'static Kind {
    registry::by_collection(collection).unwrap()
}

fn routes() -> &'static Kind {
    kind(Route::COLLECTION)
}

fn alert(id: &str) -> Value {
    let channel = json!({ "kind": "webhook", "url": "https://alerts.example/" });
    json!({ "id": id, "routes": ["shop"], "channel": channel })
}

async fn store(folder: &tempfile::TempDir) -> (Arc<dyn Store>, EntityService) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
    let one = EntityService::open(Arc::clone(&store)).await.unwrap();
    one.create(routes(), json!({ "id": "shop" })).await.map(|_| ()).unwrap();
    (store, one)
}

/// Has `write` judged at another control plane, and `meanwhile` made here before it is committed.
async fn between<T: Send + 'static>(
    store: &Arc<dyn Store>,
    write: impl AsyncFnOnce(EntityService) -> T,
    meanwhile: impl AsyncFnOnce(),
) -> T {
    let other = EntityService::open(Arc::clone(store)).await.unwrap();
    let ((entered, entering), (open, opening)) = (mpsc::channel(), mpsc::channel());
    other.add_admission(Arc::new(Gate { entered, open: Mutex::new(opening), judged: AtomicUsize::new(0) }));
    let judged = async {
        tokio::task::spawn_blocking(move || entering.recv_timeout(LONG).unwrap()).await.unwrap();
        meanwhile().await;
        open.send(()).unwrap();
    };
    tokio::join!(write(other), judged).0
}

#[tokio::test]
async fn what_was_judged_beside_an_entity_that_is_gone_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, one) = store(&folder).await;
    let write = async |other: EntityService| other.create(kind(AlertRule::COLLECTION), alert("a")).await.map(|_| ());
    let refused = between(&store, write, async || {
        one.delete(routes(), "shop", None).await.map(|_| ()).unwrap();
    });
    let Err(WriteError::Invalid(problems)) = refused.await else { panic!("it names what is gone") };
    assert_eq!(problems[0].pointer, "/routes/0", "{problems:?}");
    let left = store.entities().await.unwrap();
    assert_eq!((left.revision, left.rows.len()), (2, 0));
}

#[tokio::test]
async fn a_deletion_that_was_judged_before_another_one_names_the_entity_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, one) = store(&folder).await;
    let write = async |other: EntityService| {
        let delete = BatchEntry { kind: routes(), write: BatchWrite::Delete("shop".to_owned()), precondition: None };
        other.write_all(vec![delete], BatchOptions { atomic: true, dry_run: false }).await.results.remove(0)
    };
    let refused = between(&store, write, async || {
        one.create(kind(AlertRule::COLLECTION), alert("a")).await.map(|_| ()).unwrap();
    });
    assert!(matches!(refused.await, Err(WriteError::InUse(_))));
    assert_eq!(store.entities().await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn a_precondition_holds_for_what_the_store_has_then() {
    let folder = tempfile::tempdir().unwrap();
    let (store, one) = store(&folder).await;
    let merge = Replacement::Merge;
    let hosts = async || {
        let patch = merge(json!({ "hosts": ["shop.example"] }));
        one.update(routes(), "shop", patch, None).await.map(|_| ()).unwrap();
    };
    let seen = async |other: EntityService| {
        let patch = merge(json!({ "envoy_route": "x" }));
        other.update(routes(), "shop", patch, Some(exactly(1))).await.map(|written| written.slot.revision)
    };
    assert_eq!(between(&store, seen, hosts).await, Err(WriteError::Stale { current: 2 }));
    // Without one it is made of what there is, as one after the other at one control plane.
    let unseen = async |other: EntityService| {
        let patch = merge(json!({ "paths": ["/x"] }));
        other.update(routes(), "shop", patch, None).await.map(|written| written.slot.revision)
    };
    let disable = async || {
        let patch = merge(json!({ "enabled": false }));
        one.update(routes(), "shop", patch, None).await.map(|_| ()).unwrap();
    };
    assert_eq!(between(&store, unseen, disable).await, Ok(4));
    let row = store.entities().await.unwrap().rows.remove(0);
    let body: Value = serde_json::from_str(&row.body).unwrap();
    assert_eq!((&body["hosts"], &body["paths"]), (&json!(["shop.example"]), &json!(["/x"])));
    assert_eq!((&body["enabled"], row.revision), (&json!(false), 4));
}

#[tokio::test]
async fn one_that_others_never_let_through_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (store, one) = store(&folder).await;
    let busy = Arc::new(Busy { store: Arc::clone(&store), judged: AtomicUsize::new(0) });
    one.add_admission(Arc::clone(&busy) as Arc<dyn Admission>);
    let refused = one.create(routes(), json!({ "id": "more" })).await.map(|_| ());
    assert_eq!(refused, Err(WriteError::Store(StoreError::Moved { revision: 6 })));
    assert_eq!(busy.judged.load(Ordering::SeqCst), ATTEMPTS);
    assert_eq!(store.entities().await.unwrap().rows.iter().filter(|row| row.collection == "routes").count(), 1);
}
