//! A store moves from a file to a server and back.

use std::sync::Mutex;

use palisade_store_redis::{RedisOptions, connect};
use store::fabric::Note;
use store::replays::{KeptReplays, MAX_CHUNK, NewReplay, RecordingRoom, RecordingRow, ReplayEnd};
use store::{
    AccessChange, FabricStore as _, ReplayStore as _, SqliteOptions, SqliteStore, Store as _, StoreError, migrate,
};

use crate::conformance::{NOW, ban};
use crate::server::RedisServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_moves_to_a_server_and_back() {
    let Some(server) = RedisServer::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(&folder.path().join("old"), SqliteOptions::default()).unwrap();
    for number in 0..3000 {
        file.document_put(&number.to_string(), vec![7; 100]).await.unwrap();
    }
    file.document_put("large", vec![7; 6 << 20]).await.unwrap();
    file.entity_put("c", "a", "1".into(), 0).await.unwrap();
    file.bans_issue(vec![ban("ip:192.0.2.7", NOW, NOW + 100, false)], NOW, Note::none()).await.unwrap();
    let operator = |name: &str| accounts::Operator {
        name: name.into(),
        email: "a@example.com".into(),
        role: accounts::Role::Admin,
        second_factor: false,
        has_identity: false,
        passkeys: 0,
        password_hash: "h".into(),
        created_at_millis: 1,
        changed_at_millis: 1,
    };
    file.access_change(AccessChange::OperatorAdd(operator("ada")), "told".into()).await.unwrap();
    let told = file.kept_events(0).await.unwrap().remove(0);
    let number = told.number;
    file.kept_events_told(told).await.unwrap();

    let chunks = [vec![1; MAX_CHUNK], vec![3, 4]];
    let bytes = MAX_CHUNK as u64 + 2;
    let recording = RecordingRow { id: "r".into(), bytes, ..RecordingRow::default() };
    file.recording_begin(recording.clone(), RecordingRoom { recordings: 9, bytes }).await.unwrap();
    for (number, chunk) in (0..).zip(&chunks) {
        file.content_put("r", number, chunk.clone()).await.unwrap();
    }
    file.recording_publish("r").await.unwrap();
    let replay = NewReplay { id: "j".into(), recording: "r".into(), ..NewReplay::default() };
    file.replay_add(replay, 1).await.unwrap();
    file.content_put("j", 0, vec![5]).await.unwrap();
    let ended = ReplayEnd { id: "j".into(), result_bytes: 1, ..ReplayEnd::default() };
    file.replay_end(ended, KeptReplays { replays: 9, bytes: 9 }).await.unwrap();
    let contents = async |store: &SqliteStore| {
        let rows = (store.recordings().await.unwrap(), store.replays().await.unwrap().len());
        let chunk = async |owner: &str, number| store.content(owner, number).await.unwrap().unwrap();
        (rows, [chunk("r", 0).await, chunk("r", 1).await, chunk("j", 0).await])
    };
    let expected = ((vec![recording], 1), [chunks[0].clone(), chunks[1].clone(), vec![5]]);

    let options = || RedisOptions::parse(&server.url()).unwrap();
    let steps: &'static Mutex<Vec<(usize, usize)>> = Box::leak(Box::default());
    let progress = |done, all| steps.lock().unwrap().push((done, all));
    let copied = migrate::to_server(&file, connect(options()).await.unwrap(), "there", progress).await.unwrap();
    assert_eq!((copied["document"], copied["entity"], copied["ban"]), (3001, 1, 1));
    assert_eq!((copied["recording"], copied["replay_job"], copied[migrate::CONTENTS]), (1, 1, 3));
    let last = *steps.lock().unwrap().last().unwrap();
    assert!(last.0 == last.1 && steps.lock().unwrap().len() > 2, "{last:?}");
    let again = migrate::to_server(&file, connect(options()).await.unwrap(), "there", |_, _| ()).await;
    assert_eq!(again, Err(StoreError::NotEmpty { store: "there".into() }));

    let shared = server.open().await;
    assert_eq!(shared.entities().await, file.entities().await);
    assert_eq!(shared.bans(NOW).await, file.bans(NOW).await);
    assert_eq!(shared.document_names("").await.unwrap().len(), 3001);
    assert_eq!(contents(&shared).await, expected);
    let new = folder.path().join("new");
    assert_eq!(migrate::to_file(&shared, &new).await, Ok(copied));
    assert!(matches!(migrate::to_file(&shared, &new).await, Err(StoreError::NotEmpty { .. })));
    let back = SqliteStore::open(&new, SqliteOptions::default()).unwrap();
    assert_eq!(back.entities().await, file.entities().await);
    assert_eq!(contents(&back).await, expected);
    assert_eq!(back.entity_put("c", "a", "2".into(), 1).await, Ok(2));
    back.access_change(AccessChange::OperatorAdd(operator("eve")), "told".into()).await.unwrap();
    assert!(back.kept_events(0).await.unwrap()[0].number > number, "a number is never given twice");
}
