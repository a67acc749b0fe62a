use ::tables::{KeyOps, KeysBuilder};
use snapshot::KeptTable;

use super::super::pace::CATCH_UP;
use super::*;

type Downs = mpsc::Receiver<Result<Down, Status>>;

fn material(keys: u32) -> Material {
    let material = Material::default();
    let mut builder = KeysBuilder::default();
    (0..keys).for_each(|key| builder.put(&key.to_be_bytes(), &[7; 100]).unwrap());
    material.publish("t", TableKind::Keys, builder.build().unwrap()).unwrap();
    material
}

fn change(material: &Material, value: &[u8]) {
    let mut ops = KeyOps::default();
    ops.put(b"key", value).unwrap();
    material.change("t", &ops.finish()).unwrap();
}

fn word(state: Option<State>, refused: &str) -> KeptTables {
    let state = state.map(|state| state.0.to_vec()).unwrap_or_default();
    let (name, refused) = ("t".to_owned(), refused.to_owned());
    KeptTables { tables: vec![KeptTable { name, kind: TableKind::Keys.into(), state, refused }] }
}

async fn next(downs: &mut Downs) -> TableChange {
    let down = tokio::time::timeout(Duration::from_secs(60), downs.recv()).await.expect("nothing came");
    down.unwrap().unwrap().tables.remove(0)
}

/// The chunks of a base; how many there were.
async fn base(downs: &mut Downs) -> usize {
    let mut count = 0;
    loop {
        let chunk = next(downs).await;
        count += 1;
        if chunk.offset as usize + chunk.data.len() == chunk.size as usize {
            return count;
        }
    }
}

fn begin(material: &Material) -> (WorkerTables, Downs, tokio::task::JoinHandle<Result<(), Status>>) {
    let (down, downs) = mpsc::channel(QUEUE);
    let (worker, kept) = keep(material.clone(), down);
    (worker, downs, tokio::spawn(kept))
}

#[tokio::test(start_paused = true)]
async fn a_worker_gets_what_it_keeps_and_what_changes() {
    let material = material(2_000);
    let (worker, mut downs, task) = begin(&material);
    worker.said(KeptTables::default());
    worker.said(word(None, ""));
    assert_eq!(base(&mut downs).await, 4);
    change(&material, b"1");
    let delta = next(&mut downs).await;
    assert_eq!((delta.size, delta.state), (0, material.get("t").unwrap().state().0.to_vec()));
    // What it says meanwhile is old news.
    worker.said(word(None, ""));
    change(&material, b"2");
    assert_eq!(next(&mut downs).await.size, 0);
    // It keeps the table no more, then again, and has all of it.
    worker.said(KeptTables::default());
    tokio::time::sleep(Duration::from_secs(1)).await;
    change(&material, b"3");
    worker.said(word(Some(material.get("t").unwrap().state()), ""));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(downs.try_recv().is_err());
    drop(worker);
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_brings_the_base_but_not_over_and_over() {
    let material = material(2_000);
    let (worker, mut downs, _task) = begin(&material);
    let begin = Instant::now();
    worker.said(word(Some(State([1; 32])), ""));
    base(&mut downs).await;
    worker.said(word(None, "it is damaged"));
    base(&mut downs).await;
    assert!(begin.elapsed() >= BASE_PAUSE, "{:?}", begin.elapsed());
    change(&material, b"1");
    assert_eq!(next(&mut downs).await.size, 0, "it goes on from there");
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_replaced_comes_soon() {
    let material = material(2_000);
    let (worker, mut downs, _task) = begin(&material);
    worker.said(word(None, ""));
    base(&mut downs).await;
    // None of its keys stays: workers get the base.
    let mut other = KeysBuilder::default();
    (100_000..102_000_u32).for_each(|key| other.put(&key.to_be_bytes(), &[9; 100]).unwrap());
    let begin = Instant::now();
    material.publish("t", TableKind::Keys, other.build().unwrap()).unwrap();
    assert_eq!(base(&mut downs).await, 4);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_read_is_cut_off_and_leaves_room_for_others() {
    let material = material(40_000);
    let (worker, mut downs, task) = begin(&material);
    worker.said(word(None, ""));
    tokio::time::sleep(CATCH_UP / 2).await;
    assert_eq!(downs.len(), QUEUE / 2 + 1);
    next(&mut downs).await;
    tokio::time::sleep(CATCH_UP * 2).await;
    assert!(task.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_answers_each_of_many_deltas_goes_on() {
    const CHANGES: u32 = 500;
    let material = material(2_000);
    let begin_state = material.get("t").unwrap().state();
    (0..CHANGES).for_each(|number| change(&material, &number.to_le_bytes()));
    let (worker, mut downs, task) = begin(&material);
    worker.said(word(Some(begin_state), ""));
    let mut states = std::collections::BTreeSet::new();
    for _ in 0..CHANGES {
        let delta = next(&mut downs).await;
        assert_eq!(delta.size, 0, "the base");
        assert!(states.insert(delta.state.clone()), "it is sent twice");
        // Several times, before anything else happens.
        (0..20).for_each(|_| worker.said(word(delta.state.as_slice().try_into().ok().map(State), "")));
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(downs.try_recv().is_err() && !task.is_finished());
    change(&material, b"last");
    assert_eq!(next(&mut downs).await.state, material.get("t").unwrap().state().0, "the link lives");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_another_word_follows_at_once_brings_the_base() {
    let material = material(2_000);
    let (worker, mut downs, _task) = begin(&material);
    let state = material.get("t").unwrap().state();
    worker.said(word(Some(state), ""));
    tokio::time::sleep(Duration::from_secs(1)).await;
    worker.said(word(Some(state), "it is damaged"));
    worker.said(word(Some(state), ""));
    assert_eq!(base(&mut downs).await, 4);
    // It gave the table up and took it up again.
    tokio::time::sleep(BASE_PAUSE).await;
    worker.said(KeptTables::default());
    worker.said(word(None, ""));
    assert_eq!(base(&mut downs).await, 4);
}
