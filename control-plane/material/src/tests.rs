use std::net::IpAddr;

use exchange::{Tables, Taken};
use tables::{KeyOps, Keys, KeysBuilder, RangeOps, Ranges, RangesBuilder, Table, TableIndex};

use super::*;

fn keys(count: u32, value: &[u8]) -> Vec<u8> {
    let mut builder = KeysBuilder::default();
    (0..count).for_each(|key| builder.put(&key.to_be_bytes(), value).unwrap());
    builder.build().unwrap()
}

fn put(key: u32, value: &[u8]) -> Vec<u8> {
    let mut ops = KeyOps::default();
    ops.put(&key.to_be_bytes(), value).unwrap();
    ops.finish()
}

/// A worker that keeps the table `t`, and what it was sent.
struct Worker {
    tables: Tables,
    table: exchange::KeysTable,
    state: Option<State>,
    bases: usize,
    deltas: usize,
}

impl Worker {
    fn new() -> Self {
        let tables = Tables::default();
        let table = tables.keys("t").unwrap();
        Self { tables, table, state: None, bases: 0, deltas: 0 }
    }

    /// Takes all that there is.
    fn catch_up(&mut self, material: &Material) {
        while let Some(next) = material.next("t", TableKind::Keys, self.state) {
            match next {
                Next::Change(change, state) => {
                    assert_eq!(self.tables.take(&change), Taken::Applied);
                    self.state = Some(state);
                    self.deltas += 1;
                }
                Next::Base(published) => {
                    let taken = published.chunks("t").map(|chunk| self.tables.take(&chunk)).last();
                    assert_eq!(taken, Some(Taken::Applied));
                    self.state = Some(published.base_state());
                    self.bases += 1;
                }
            }
        }
        let told = self.tables.tell().tables.remove(0);
        assert_eq!(told.state, material.get("t").unwrap().state().0);
    }

    fn find(&self, key: u32) -> Option<Vec<u8>> {
        self.table.read(|keys| keys.find(&key.to_be_bytes()).map(<[u8]>::to_vec)).flatten()
    }
}

#[test]
fn a_worker_gets_the_base_once_and_deltas_from_then_on() {
    let material = Material::default();
    let mut worker = Worker::new();
    assert!(material.next("t", TableKind::Keys, None).is_none(), "nothing is published yet");
    material.publish("t", TableKind::Keys, keys(50_000, b"v")).unwrap();
    assert!(material.next("t", TableKind::Ranges, None).is_none(), "of another kind");
    worker.catch_up(&material);
    material.change("t", &put(7, b"new")).unwrap();
    worker.catch_up(&material);
    // As a whole, with ten keys changed and one more.
    let mut builder = KeysBuilder::default();
    (0..50_001_u32).for_each(|key| builder.put(&key.to_be_bytes(), if key < 10 { b"w" } else { b"v" }).unwrap());
    material.publish("t", TableKind::Keys, builder.build().unwrap()).unwrap();
    worker.catch_up(&material);
    assert_eq!((worker.bases, worker.deltas), (1, 2));
    assert_eq!((worker.find(7).unwrap(), worker.find(10).unwrap()), (b"w".to_vec(), b"v".to_vec()));
    assert!(worker.find(50_000).is_some());
    // All of it is another: the base is shorter than its deltas.
    material.publish("t", TableKind::Keys, keys(50_000, b"another value")).unwrap();
    worker.catch_up(&material);
    assert_eq!((worker.bases, worker.deltas), (2, 2));
    assert_eq!(worker.find(50_000), None);
    // The same once more is no change.
    let before = material.get("t").unwrap().state();
    material.publish("t", TableKind::Keys, keys(50_000, b"another value")).unwrap();
    assert_eq!(material.get("t").unwrap().state(), before);
}

#[test]
fn workers_that_are_behind_catch_up_by_deltas_until_the_base_is_as_good() {
    let material = Material::default();
    material.publish("t", TableKind::Keys, keys(1_000, b"v")).unwrap();
    let (mut always, mut seldom, mut late) = (Worker::new(), Worker::new(), Worker::new());
    late.catch_up(&material);
    for round in 0..20_000_u32 {
        material.change("t", &put(round % 1_000, &round.to_le_bytes())).unwrap();
        always.catch_up(&material);
        if round % 100 == 0 {
            seldom.catch_up(&material);
        }
        let published = material.get("t").unwrap();
        assert!(published.steps.len() <= MAX_KEPT, "{published:?}");
    }
    seldom.catch_up(&material);
    assert_eq!((always.bases, seldom.bases), (1, 1), "{:?}", material.get("t"));
    late.catch_up(&material);
    assert_eq!(late.bases, 2, "what it needs is not kept any more");
    let mut fresh = Worker::new();
    fresh.catch_up(&material);
    assert!(fresh.deltas < MAX_KEPT / 2, "{}", fresh.deltas);
    let content = |worker: &Worker| worker.table.read(TableIndex::save).unwrap();
    for worker in [&seldom, &late, &fresh] {
        assert_eq!(content(worker), content(&always));
    }
}

const MAX_KEPT: usize = 4096;

#[test]
fn what_cannot_be_published_or_changed_leaves_the_table_as_it_was() {
    let material = Material::default();
    assert_eq!(material.change("t", &put(1, b"x")), Err(MaterialError::Unknown));
    material.publish("t", TableKind::Keys, keys(10, b"v")).unwrap();
    let before = material.get("t").unwrap().state();
    assert!(matches!(material.publish("t", TableKind::Keys, b"no base".to_vec()), Err(MaterialError::Base(_))));
    assert!(matches!(material.publish("t", TableKind::Ranges, keys(10, b"v")), Err(MaterialError::Base(_))));
    assert!(matches!(material.change("t", &[99]), Err(MaterialError::Change(_))));
    assert_eq!(material.change("t", &[]), Ok(()));
    assert_eq!(material.get("t").unwrap().state(), before);
    let mut changes = material.changes();
    material.withdraw("t");
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert!(material.get("t").is_none() && material.names().is_empty());
}

#[test]
fn a_table_of_ranges_may_become_one_of_keys() {
    let material = Material::default();
    let address = |last| IpAddr::from([192, 0, 2, last]);
    let mut builder = RangesBuilder::new(tables::LabelWidth::Two);
    builder.set(address(0), address(99), 1).unwrap();
    material.publish("t", TableKind::Ranges, builder.build().unwrap()).unwrap();
    let width = Table::<Ranges>::new(material.get("t").unwrap().base.to_vec()).unwrap().index().width();
    let mut ops = RangeOps::new(width);
    ops.set(address(10), address(19), 2).unwrap();
    material.change("t", &ops.finish()).unwrap();
    let tables = Tables::default();
    let table = tables.ranges("t").unwrap();
    let Some(Next::Base(base)) = material.next("t", TableKind::Ranges, None) else { panic!() };
    base.chunks("t").for_each(|chunk| drop(tables.take(&chunk)));
    let Some(Next::Change(change, _)) = material.next("t", TableKind::Ranges, Some(base.base_state())) else {
        panic!()
    };
    tables.take(&change);
    let label = |last| table.read(|ranges| ranges.find(address(last))).unwrap();
    assert_eq!([label(9), label(10), label(20), label(100)], [Some(1), Some(2), Some(1), None]);
    material.publish("t", TableKind::Keys, keys(1, b"v")).unwrap();
    assert!(material.next("t", TableKind::Ranges, None).is_none(), "the old kind is kept as it is");
    assert!(Table::<Keys>::new(material.get("t").unwrap().base.to_vec()).is_ok());
}
