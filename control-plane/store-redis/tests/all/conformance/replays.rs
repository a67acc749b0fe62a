//! Recordings of traffic and replays of them.

use std::sync::Arc;

use store::Store;
use store::replays::{
    KeptReplays, MAX_CHUNK, MAX_CHUNKS, NewReplay, RecordingBegun, RecordingRemoved, RecordingRoom, RecordingRow,
    ReplayAdded, ReplayEnd, ReplayRow,
};

use super::NOW;

const ROOM: RecordingRoom = RecordingRoom { recordings: 3, bytes: 1000 };
const KEEP: KeptReplays = KeptReplays { replays: 20, bytes: 1000 };

fn recording(id: &str, added_millis: u64, bytes: u64) -> RecordingRow {
    RecordingRow { id: id.into(), added_millis, bytes, json: format!("{{\"name\":\"{id}\"}}") }
}

fn new(id: &str, recording: &str, runner: &str) -> NewReplay {
    NewReplay { id: id.into(), recording: recording.into(), runner: runner.into(), json: "added".into() }
}

fn end(id: &str, beat: Option<u64>) -> ReplayEnd {
    ReplayEnd { id: id.into(), beat, json: "ended".into(), ..ReplayEnd::default() }
}

async fn put(store: &dyn Store, owner: &str) {
    for (number, byte) in [(0, b'a'), (1, b'b')] {
        assert!(store.content_put(owner, number, vec![byte; 3]).await.unwrap());
    }
}

/// The chunks that there are.
async fn contents(store: &dyn Store, owner: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for number in 0..3 {
        found.extend(store.content(owner, number).await.unwrap());
    }
    found
}

async fn kept(store: &dyn Store, row: RecordingRow) {
    assert_eq!(store.recording_begin(row.clone(), ROOM).await.unwrap(), RecordingBegun::Begun);
    put(store, &row.id).await;
    assert!(store.recording_publish(&row.id).await.unwrap());
}

async fn ids(store: &dyn Store) -> Vec<String> {
    store.recordings().await.unwrap().into_iter().map(|row| row.id).collect()
}

async fn begun(store: &dyn Store) -> Vec<String> {
    store.recordings_begun().await.unwrap().into_iter().map(|row| row.id).collect()
}

pub(crate) async fn a_recording_is_listed_once_its_contents_are_there(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let (first, second) = (recording("r_1", NOW, 400), recording("r_2", NOW - 1, 600));
    assert_eq!(store.recording_begin(first.clone(), ROOM).await.unwrap(), RecordingBegun::Begun);
    assert_eq!(ids(&*store).await, Vec::<String>::new());
    assert_eq!(store.recordings_begun().await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(store.recording_remove("r_1").await.unwrap(), RecordingRemoved::Unknown, "it is not listed");
    // Begun anew, as after a kill.
    assert_eq!(store.recording_begin(first.clone(), ROOM).await.unwrap(), RecordingBegun::Begun);
    put(&*store, "r_1").await;
    assert!(store.recording_publish("r_1").await.unwrap());
    assert!(!store.recording_publish("r_1").await.unwrap(), "it is listed already");
    assert!(!store.recording_abandon("r_1").await.unwrap(), "it is listed");
    assert_eq!(store.recording_begin(first.clone(), ROOM).await.unwrap(), RecordingBegun::Listed);
    kept(&*store, second.clone()).await;
    assert!(store.content_put("r_2", 1, vec![b'c'; MAX_CHUNK]).await.unwrap(), "the largest, in the place of another");
    let store = reopened(store).await;
    assert_eq!(store.recordings().await.unwrap(), [second, first], "oldest first");
    assert_eq!(begun(&*store).await, Vec::<String>::new());
    assert_eq!(contents(&*store, "r_1").await, [vec![b'a'; 3], vec![b'b'; 3]]);
    assert_eq!(contents(&*store, "r_2").await, [vec![b'a'; 3], vec![b'c'; MAX_CHUNK]]);
    assert_eq!(store.recording_remove("r_1").await.unwrap(), RecordingRemoved::Removed);
    assert_eq!(store.recording_remove("r_1").await.unwrap(), RecordingRemoved::Unknown);
    assert_eq!((ids(&*store).await, contents(&*store, "r_1").await), (vec!["r_2".into()], vec![]));
}

pub(crate) async fn recordings_and_their_contents_are_bounded(store: Arc<dyn Store>) {
    for (row, full) in [
        (recording("a", NOW, 500), None),
        (recording("b", NOW, 501), Some((1, 500))),
        (recording("c", NOW, 500), None),
        (recording("d", NOW, 1), Some((2, 1000))),
        (recording("c", NOW, 0), None),
        (recording("e", NOW, 1), None),
        (recording("f", NOW, 0), Some((3, 501))),
    ] {
        let expected = match full {
            None => RecordingBegun::Begun,
            Some((recordings, bytes)) => RecordingBegun::Full { recordings, bytes },
        };
        // Those that are not listed yet count.
        assert_eq!(store.recording_begin(row.clone(), ROOM).await.unwrap(), expected, "{}", row.id);
    }
    for (owner, number, length) in
        [("a", 0, MAX_CHUNK + 1), ("a", MAX_CHUNKS, 1), ("", 0, 1), ("../a", 0, 1), (&*"a".repeat(65), 0, 1)]
    {
        assert!(!store.content_put(owner, number, vec![1; length]).await.unwrap(), "{owner} {number} {length}");
        assert_eq!(store.content(owner, number).await.unwrap(), None);
    }
    assert_eq!(contents(&*store, "a").await, Vec::<Vec<u8>>::new());
}

pub(crate) async fn a_recording_that_is_given_up_leaves_nothing(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    store.recording_begin(recording("r", NOW, 6), ROOM).await.unwrap();
    put(&*store, "r").await;
    // The process is killed here.
    let store = reopened(store).await;
    store.contents_sweep().await.unwrap();
    assert_eq!(contents(&*store, "r").await.len(), 2, "another process may be at it");
    assert_eq!((ids(&*store).await, begun(&*store).await), (vec![], vec!["r".to_owned()]));
    assert!(store.recording_abandon("r").await.unwrap());
    assert!(!store.recording_abandon("r").await.unwrap());
    assert!(!store.recording_publish("r").await.unwrap(), "it is not begun any more");
    assert_eq!((contents(&*store, "r").await, begun(&*store).await), (vec![], Vec::<String>::new()));
    // Its name may be used again.
    kept(&*store, recording("r", NOW, 6)).await;
    store.contents_sweep().await.unwrap();
    assert_eq!(contents(&*store, "r").await.len(), 2);
}

pub(crate) async fn a_replay_has_one_end(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    kept(&*store, recording("r", NOW, 6)).await;
    store.recording_begin(recording("s", NOW, 6), ROOM).await.unwrap();
    for absent in ["s", "t"] {
        assert_eq!(store.replay_add(new("j", absent, "one"), 9).await.unwrap(), ReplayAdded::UnknownRecording);
    }
    for (id, runner) in [("j1", "one"), ("j2", "one"), ("j3", "other")] {
        assert_eq!(store.replay_add(new(id, "r", runner), 2).await.unwrap(), ReplayAdded::Added);
    }
    assert_eq!(store.replay_add(new("j4", "r", "one"), 2).await.unwrap(), ReplayAdded::Busy(2));
    assert_eq!(store.recording_remove("r").await.unwrap(), RecordingRemoved::InUse);
    let notes = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), format!("{id} runs"))).collect::<Vec<_>>();
    assert_eq!(store.replays_beat("one", notes(&["j2", "j3", "j9", "j1"])).await.unwrap(), ["j2", "j1"]);
    // Its runner was heard of since.
    assert!(!store.replay_end(end("j1", Some(0)), KEEP).await.unwrap());
    assert!(store.replay_end(end("j1", Some(1)), KEEP).await.unwrap());
    assert!(!store.replay_end(end("j1", None), KEEP).await.unwrap(), "it has ended");
    assert_eq!(store.replays_beat("one", notes(&["j1", "j2"])).await.unwrap(), ["j2"], "it is told that it has ended");
    put(&*store, "j2").await;
    let result = ReplayEnd { result_bytes: 6, ..end("j2", None) };
    assert!(store.replay_end(result, KEEP).await.unwrap());
    let store = reopened(store).await;
    let row = |id: &str, runner: &str, beat, has_ended, json: &str| ReplayRow {
        id: id.into(),
        recording: "r".into(),
        runner: runner.into(),
        beat,
        has_ended,
        json: json.into(),
        ..ReplayRow::default()
    };
    let second = ReplayRow { result_bytes: 6, ..row("j2", "one", 2, true, "ended") };
    let expected = [row("j1", "one", 1, true, "ended"), second.clone(), row("j3", "other", 0, false, "added")];
    assert_eq!(store.replays().await.unwrap(), expected);
    assert_eq!(store.replay("j2").await.unwrap(), Some(second));
    assert_eq!(store.replay("j9").await.unwrap(), None);
    assert_eq!(contents(&*store, "j2").await.len(), 2);
    // It fails while its result is written: nothing of that stays, nor what comes later.
    put(&*store, "j3").await;
    assert!(store.replay_end(end("j3", None), KEEP).await.unwrap());
    assert_eq!(contents(&*store, "j3").await, Vec::<Vec<u8>>::new());
    put(&*store, "j3").await;
    assert!(!store.replay_end(ReplayEnd { result_bytes: 6, ..end("j3", None) }, KEEP).await.unwrap());
    assert_eq!(contents(&*store, "j3").await, Vec::<Vec<u8>>::new());
    assert!(!store.replay_end(ReplayEnd { result_bytes: 6, ..end("j2", None) }, KEEP).await.unwrap(), "said twice");
    assert_eq!(contents(&*store, "j2").await.len(), 2);
    assert_eq!(store.recording_remove("r").await.unwrap(), RecordingRemoved::Removed);
    assert_eq!(contents(&*store, "j2").await.len(), 2, "a result outlives the recording");
}

pub(crate) async fn replays_that_have_ended_are_bounded(store: Arc<dyn Store>) {
    kept(&*store, recording("r", NOW, 6)).await;
    let add = async |id: &str| store.replay_add(new(id, "r", "one"), 9).await.unwrap();
    let ended = async |id: &str, result_bytes: u64, keep: KeptReplays| {
        put(&*store, id).await;
        assert!(store.replay_end(ReplayEnd { result_bytes, ..end(id, None) }, keep).await.unwrap());
        store.replays().await.unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    for id in ["a", "b", "c", "d", "e"] {
        assert_eq!(add(id).await, ReplayAdded::Added);
    }
    let two = KeptReplays { replays: 2, bytes: 100 };
    assert_eq!(ended("b", 1, two).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(ended("c", 1, two).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(ended("a", 1, two).await, ["a", "c", "d", "e"], "the one that ends stays, of others the oldest goes");
    assert_eq!(contents(&*store, "b").await, Vec::<Vec<u8>>::new());
    assert_eq!(ended("d", 100, two).await, ["d", "e"], "the bytes of results count, too");
    assert_eq!((contents(&*store, "c").await.len(), contents(&*store, "d").await.len()), (0, 2));
    assert_eq!(ended("e", 200, two).await, ["e"], "one that is larger than all stays alone");
    assert_eq!(contents(&*store, "e").await.len(), 2);
    store.contents_sweep().await.unwrap();
    assert_eq!(contents(&*store, "e").await.len(), 2);
}

/// Two control planes: what one uploads the other reads, and a job of one is ended by the other.
pub(crate) async fn recordings_and_replays_are_known_at_both(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    kept(&*one, recording("r", NOW, 6)).await;
    assert_eq!(ids(&*other).await, ["r"]);
    assert_eq!(contents(&*other, "r").await, contents(&*one, "r").await);
    assert_eq!(contents(&*other, "r").await.len(), 2);
    assert_eq!(one.replay_add(new("j", "r", "one"), 1).await.unwrap(), ReplayAdded::Added);
    assert_eq!(other.replay_add(new("k", "r", "other"), 1).await.unwrap(), ReplayAdded::Added, "each has its own");
    assert_eq!(other.recording_remove("r").await.unwrap(), RecordingRemoved::InUse);
    assert!(other.replay_end(end("j", None), KEEP).await.unwrap());
    assert_eq!(one.replays_beat("one", vec![("j".into(), "x".into())]).await.unwrap(), Vec::<String>::new());
    assert!(other.replay_end(end("k", None), KEEP).await.unwrap());
    assert_eq!(other.recording_remove("r").await.unwrap(), RecordingRemoved::Removed);
    assert_eq!((ids(&*one).await, contents(&*one, "r").await), (vec![], vec![]));
}
