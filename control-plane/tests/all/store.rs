//! The store on a file: what it does with one that is not in order. What every store promises is in the suite of the shared store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use accounts::Role;
use store::{Author, FabricStore as _, HistoryStore as _, SqliteOptions, SqliteStore, Store, StoreError};

fn open(folder: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(folder, SqliteOptions::default())
}

/// A store with some entities, closed.
async fn filled(folder: &Path) {
    let store = open(folder).unwrap();
    for number in 0..50 {
        store.entity_put("c", &number.to_string(), "x".repeat(1000), 0).await.unwrap();
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_names_it_and_is_left_alone() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("empty", |file| fs::write(file, "").unwrap()),
        ("cut off", |file| fs::File::options().write(true).open(file).unwrap().set_len(5000).unwrap()),
        ("text", |file| fs::write(file, "this is not a database, whatever its name says".repeat(100)).unwrap()),
        ("header", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[..16].fill(0);
            fs::write(file, bytes).unwrap();
        }),
        ("pages", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[4096..].fill(0xaa);
            fs::write(file, bytes).unwrap();
        }),
        ("another database", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[68..72].copy_from_slice(b"GPKG");
            fs::write(file, bytes).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).await;
        let file = folder.path().join("palisade.db");
        damage(&file);
        let before = fs::read(&file).unwrap();
        let error = open(folder.path()).err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{name}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(file.to_str().unwrap()) && text.contains("backup"), "{name}: {text}");
        assert!(fs::read(&file).unwrap() == before, "{name}: the damaged file was changed");
    }
}

#[tokio::test]
async fn a_missing_file_with_its_log_left_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    fs::rename(folder.path().join("palisade.db"), folder.path().join("palisade.db-wal")).unwrap();
    assert!(matches!(open(folder.path()).err(), Some(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn a_file_of_a_newer_release_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path()).await;
    let db = rusqlite::Connection::open(folder.path().join("palisade.db")).unwrap();
    db.execute("INSERT INTO schema_version VALUES (99)", []).unwrap();
    drop(db);
    match open(folder.path()).err() {
        Some(StoreError::TooNew { found: 99, known, .. }) => assert!(known >= 1),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_process_serves_from_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let exclusive = SqliteOptions { exclusive: true, ..SqliteOptions::default() };
    let first = SqliteStore::open(folder.path(), exclusive).unwrap();
    assert!(matches!(SqliteStore::open(folder.path(), exclusive).err(), Some(StoreError::InUse { .. })));
    // The command line works beside it, and each sees what the other has written.
    let beside = open(folder.path()).unwrap();
    first.entity_put("c", "a", "1".to_owned(), 0).await.unwrap();
    assert_eq!(beside.entity_put("c", "b", "1".to_owned(), 0).await, Ok(2));
    assert_eq!(first.entities().await.unwrap().rows.len(), 2);
    first.close().await.unwrap();
    assert!(SqliteStore::open(folder.path(), exclusive).is_ok());
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("deep/data");
    let store = open(&data).unwrap();
    store.entity_put("c", "a", "1".to_owned(), 0).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in ["palisade.db", "palisade.db-wal"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

/// Where the file has a bound, the history has a quarter of it, and what is in force the rest. What was replaced first goes, and what
/// undoes a deletion after it.
#[tokio::test]
async fn the_history_leaves_room_in_a_bounded_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { max_pages: Some(1024), ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path(), options).unwrap();
    let body = "x".repeat(100_000);
    let gone = store.entity_put("c", "gone", body.clone(), 0).await.unwrap();
    store.entity_remove("c", "gone", gone).await.unwrap();
    let mut written = [const { Vec::new() }; 5];
    for number in 0..200 {
        let expected = written[number % 5].last().copied().unwrap_or(0);
        let revision = store.entity_put("c", &(number % 5).to_string(), body.clone(), expected).await.unwrap();
        written[number % 5].push(revision);
    }
    let numbers = async |id: &str| {
        let page = store.versions("c", id, 0, 100).await.unwrap();
        page.versions.iter().map(|version| version.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers("gone").await, [gone + 1, gone]);
    let mut kept = 0;
    for (id, written) in written.iter().enumerate() {
        let numbers = numbers(&id.to_string()).await;
        assert_eq!(numbers, written.iter().rev().take(numbers.len()).copied().collect::<Vec<_>>(), "{id}");
        kept += numbers.len();
    }
    assert_eq!(kept, 5 + 9, "those in force, and with the deleted one a MiB of earlier ones");
}

/// A change that cannot fit takes nothing of the history, and one that makes room needs none.
#[tokio::test]
async fn a_full_file_takes_deletions_and_keeps_its_history_from_what_cannot_fit() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { max_pages: Some(256), ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path(), options).unwrap();
    let first = store.entity_put("c", "a", "x".repeat(50_000), 0).await.unwrap();
    let second = store.entity_put("c", "a", "y".repeat(50_000), first).await.unwrap();
    let full = store.entity_put("c", "b", "x".repeat(2_000_000), 0).await;
    assert!(matches!(full, Err(StoreError::DiskFull { .. })), "{full:?}");
    assert_eq!(store.versions("c", "a", 0, 9).await.unwrap().total, 2);
    let mut filled = Vec::new();
    while let Ok(revision) = store.entity_put("f", &filled.len().to_string(), "x".repeat(8000), 0).await {
        filled.push(revision);
    }
    assert_eq!(store.versions("c", "a", 0, 9).await.unwrap().total, 1, "the earlier one has given way");
    let gone = store.entity_remove("c", "a", second).await.unwrap();
    let left = store.versions("c", "a", 0, 9).await.unwrap();
    assert_eq!(left.versions[0].number, gone);
    assert_eq!(store.entity_put("f", "more", "x".repeat(30_000), 0).await, Ok(gone + 1), "the deletion has made room");
}

/// Files of every schema version that there ever was are brought up to date with all that they hold.
#[tokio::test]
async fn files_of_every_version_come_up_to_date() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store");
    let newest = {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap().close().await.unwrap();
        version(folder.path())
    };
    for old in 1..newest {
        let text = fs::read_to_string(files.join(format!("v{old}.sql")))
            .unwrap_or_else(|error| panic!("tests/data/store/v{old}.sql, a store of version {old}: {error}"));
        let folder = tempfile::tempdir().unwrap();
        rusqlite::Connection::open(folder.path().join("palisade.db")).unwrap().execute_batch(&text).unwrap();
        assert_eq!(version(folder.path()), old);
        let store = open(folder.path()).unwrap();
        let entities = store.entities().await.unwrap();
        assert_eq!((entities.revision, entities.rows.len()), (7, 1), "version {old}");
        assert!(entities.rows[0].body.contains("SecRuleEngine On"), "version {old}");
        let bans = store.bans(0).await.unwrap();
        assert_eq!((bans.len(), bans[0].key.as_str()), (1, "ip:192.0.2.7"), "version {old}");
        // The first five have none that says so.
        let hand_until = if old < 6 { 0 } else { bans[0].until };
        assert_eq!((bans[0].hand_until, bans[0].by_hand), (hand_until, old > 5), "version {old}");
        assert_eq!(store.document("notes").await.unwrap(), Some(b"note".to_vec()), "version {old}");
        let key = store.admin_key("key_1").await.unwrap().unwrap();
        assert_eq!((key.name.as_str(), key.scopes.len()), ("first key", 3), "version {old}");
        let operators = store.operators().await.unwrap();
        assert_eq!(operators.len(), usize::from(old > 1), "version {old}");
        assert!(
            operators.iter().all(|operator| operator.role == Role::Admin),
            "version {old}: as before there were roles"
        );
        // What was there is the first version, without an author, and its document is kept once it changes.
        let versions = store.versions("waf-rulesets", "base", 0, 9).await.unwrap();
        assert_eq!((versions.total, versions.versions[0].number), (1, 7), "version {old}");
        assert_eq!(
            (&versions.versions[0].origin.author, versions.versions[0].origin.at_millis),
            (&Author::default(), 0)
        );
        // And it is written to as any other.
        assert_eq!(store.entity_put("waf-rulesets", "new", "{}".to_owned(), 0).await, Ok(8), "version {old}");
        store.close().await.unwrap();
        assert_eq!(version(folder.path()), newest, "version {old}");
        // What is up to date stays as it is.
        let again = open(folder.path()).unwrap();
        assert_eq!(again.entities().await.unwrap().rows.len(), 2, "version {old}");
        assert_eq!(again.entity_remove("waf-rulesets", "base", 7).await, Ok(9), "version {old}");
        let first = again.version("waf-rulesets", "base", 7).await.unwrap().unwrap();
        assert!(first.body.unwrap().contains("SecRuleEngine On"), "version {old}");
    }
}

/// The schema version of a store.
fn version(folder: &Path) -> u32 {
    let db = rusqlite::Connection::open(folder.join("palisade.db")).unwrap();
    db.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)).unwrap()
}
