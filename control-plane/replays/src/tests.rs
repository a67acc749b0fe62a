//! Limits, order and clean-up, with a script in the place of the program that waits where it is told to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use store::replays::{MAX_CHUNK, NewReplay, RecordingBegun, RecordingRoom, RecordingRow, ReplayAdded};
use store::{SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

use crate::watch::{Patience, Seen};
use crate::{JobState, Limits, NewJob, Recording, ReplayError, Replays, Settings, Source};

/// Writes what it was called with and its environment, and waits as long as there is a file `hold`.
const SCRIPT: &str = r#"#!/bin/sh
echo "$@" >> FOLDER/calls
env > FOLDER/env
echo $$ > FOLDER/pid.new && mv FOLDER/pid.new FOLDER/pid
while [ "$1" = diff ] && [ -e FOLDER/hold ]; do sleep 0.02; done
case "$1" in
record) cat "$3" > "$5"; echo '{"progress": {"recorded": 1, "bad": 0}}' >&2 ;;
diff) echo '{}' > "${13}" ;;
esac
"#;

/// Recordings and jobs in a store and a folder of their own.
struct Place {
    folder: TempDir,
    store: Arc<dyn Store>,
    replays: Replays,
}

impl Place {
    async fn new(change: impl FnOnce(&mut Limits)) -> Place {
        Place::prepared(change, |_| {}).await
    }

    /// The same in a folder in which there is something.
    async fn prepared(change: impl FnOnce(&mut Limits), prepare: impl FnOnce(&Path)) -> Place {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let program = folder.path().join("program");
        fs::write(&program, SCRIPT.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let mut limits = Limits::default();
        change(&mut limits);
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let settings = Settings { folder: folder.path().join("kept"), program: Some(program), limits };
        let replays = Replays::open(settings, Arc::clone(&store)).await;
        Place { folder, store, replays }
    }

    /// Another control plane with the same store.
    async fn beside(&self, name: &str) -> Replays {
        let settings = Settings {
            folder: self.folder.path().join(name),
            program: Some(self.path("program")),
            limits: Limits::default(),
        };
        Replays::open(settings, Arc::clone(&self.store)).await
    }

    /// Whose contents there are.
    fn contents(&self) -> Vec<String> {
        if self.path("contents").is_dir() { names(&self.path("contents")) } else { Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn hold(&self) {
        fs::write(self.path("hold"), "").unwrap();
    }

    async fn record(&self, bytes: &[u8]) -> Result<Recording, ReplayError> {
        let mut upload = self.replays.upload("shop.har", Source::Upload, None).await?;
        upload.write(bytes).await?;
        upload.finish("anna", 1).await
    }

    async fn start(&self, recording: &str, group: &str) -> Result<String, ReplayError> {
        let (before, after) = (b"before".to_vec(), b"after".to_vec());
        let new = NewJob {
            recording: recording.to_owned(),
            by: "anna".to_owned(),
            changes: Vec::new(),
            group: group.to_owned(),
            route: None,
            before,
            after,
        };
        self.replays.start(new).await.map(|job| job.id)
    }

    async fn state(&self, id: &str) -> JobState {
        self.replays.job(id).await.unwrap().0.state
    }

    async fn until(&self, id: &str, state: JobState) {
        reaches(&self.replays, id, state).await;
    }

    /// The process that the script has written last.
    async fn pid(&self) -> String {
        let pid = until(|| fs::read_to_string(self.path("pid")).ok()).await;
        fs::remove_file(self.path("pid")).unwrap();
        pid.trim().to_owned()
    }
}

async fn reaches(replays: &Replays, id: &str, state: JobState) {
    for _ in 0..6_000 {
        if replays.job(id).await.unwrap().0.state == state {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} does not get to {state:?}", replays.job(id).await.unwrap().0);
}

/// What becomes there; how long that takes decides nothing.
async fn until<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come");
}

async fn gone(pid: &str) {
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is over, and waits for its parent to see it.
    until(|| (stat().is_empty() || stat().contains(") Z ")).then_some(())).await;
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn uploads_are_within_their_limits_one_at_a_time() {
    let place = Place::new(|limits| (limits.upload_bytes, limits.recordings) = (10, 2)).await;
    let begin = |length| place.replays.upload("a", Source::Upload, length);
    assert!(matches!(begin(Some(11)).await, Err(ReplayError::TooLarge(10))), "by what the client says");
    let mut upload = begin(Some(10)).await.unwrap();
    assert!(matches!(begin(None).await, Err(ReplayError::Busy(_))), "one at a time");
    let folder = place.path("kept/incoming").join(&names(&place.path("kept/incoming"))[0]);
    assert_eq!((mode(&folder), mode(&folder.join("upload"))), (0o700, 0o600));
    upload.write(b"0123456789").await.unwrap();
    assert!(matches!(upload.write(b"x").await, Err(ReplayError::TooLarge(10))), "by what has come");
    drop(upload);
    assert_eq!(names(&place.path("kept/incoming")), Vec::<String>::new());
    let one = place.record(b"1").await.unwrap();
    let two = place.record(b"2").await.unwrap();
    assert!(matches!(place.record(b"3").await, Err(ReplayError::Full(_))));
    let mut kept = [one.clone(), two.clone()];
    kept.sort_by(|one, two| one.id.cmp(&two.id));
    assert_eq!(place.replays.recordings().await.unwrap(), kept, "both were added at the same time");
    assert_eq!(place.contents(), kept.each_ref().map(|recording| recording.id.clone()));
    assert_eq!(place.replays.delete(&one.id).await.unwrap(), one);
    assert!(matches!(place.replays.delete(&one.id).await, Err(ReplayError::UnknownRecording)));
    assert_eq!(place.contents(), [two.id]);
    assert_eq!(names(&place.path("kept/incoming")), Vec::<String>::new());
    place.record(b"3").await.unwrap();
}

#[tokio::test]
async fn recordings_have_no_more_bytes_than_there_is_room_for() {
    let place = Place::new(|limits| (limits.recording_bytes, limits.total_bytes) = (3 << 20, 4 << 20)).await;
    place.record(&vec![b'a'; 2 << 20]).await.unwrap();
    place.record(&vec![b'a'; 2 << 20]).await.unwrap();
    assert!(matches!(place.record(b"1").await, Err(ReplayError::Full(_))), "all bytes are taken");
    // The limit of one, then what is left of all.
    let calls = fs::read_to_string(place.path("calls")).unwrap();
    let file_limits: Vec<&str> =
        calls.lines().map(|line| line.split("--max-file-mib ").nth(1).unwrap().split(' ').next().unwrap()).collect();
    assert_eq!(file_limits, ["3", "2"], "{calls}");
    assert!(calls.contains("--max-memory-mib 2048 --max-cpu-seconds 60 "), "{calls}");
    // Nothing of this process's environment, which may have secrets.
    let environment = fs::read_to_string(place.path("env")).unwrap();
    let own = ["TMPDIR=", "PWD=", "OLDPWD=", "SHLVL=", "_="];
    assert!(environment.lines().all(|line| own.iter().any(|name| line.starts_with(name))), "{environment}");
    assert!(std::env::vars().any(|(name, _)| name == "PATH"));
}

#[tokio::test]
async fn jobs_run_in_their_order_and_the_last_results_are_kept() {
    let place = Place::new(|limits| (limits.waiting, limits.ended) = (2, 2)).await;
    let recording = place.record(b"1").await.unwrap().id;
    place.hold();
    drop(place.pid().await);
    let mut started = Vec::new();
    for group in ["a", "b", "c"] {
        started.push(place.start(&recording, group).await.unwrap());
    }
    assert!(matches!(place.start(&recording, "d").await, Err(ReplayError::Busy(_))), "two may wait");
    assert!(matches!(place.replays.delete(&recording).await, Err(ReplayError::InUse)));
    place.pid().await;
    let jobs = place.path("kept/jobs");
    let first = jobs.join(&started[0]);
    assert_eq!((mode(&first), mode(&first.join("before")), mode(&first.join("after"))), (0o700, 0o600, 0o600));
    fs::remove_file(place.path("hold")).unwrap();
    place.until(&started[2], JobState::Done).await;
    let calls = fs::read_to_string(place.path("calls")).unwrap();
    let ran: Vec<&str> = calls.lines().filter_map(|line| line.strip_prefix("diff ")).collect();
    for (call, id) in ran.iter().zip(&started) {
        assert!(call.contains(id.as_str()), "{id} is not next: {call}");
    }
    assert!(ran[0].contains("--max-memory-mib 2048 --max-cpu-seconds 600 "), "{calls}");
    assert!(matches!(place.replays.job(&started[0]).await, Err(ReplayError::UnknownJob)), "the oldest of three");
    let newest_first: Vec<String> = place.replays.jobs().await.unwrap().into_iter().map(|job| job.id).collect();
    assert_eq!(newest_first, [&*started[2], &*started[1]]);
    let mut owners = vec![recording.clone(), started[1].clone(), started[2].clone()];
    owners.sort();
    assert_eq!(place.contents(), owners, "the results of two are kept");
    assert_eq!(names(&jobs), Vec::<String>::new(), "the snapshots are removed");
    let ended = place.replays.job(&started[2]).await.unwrap();
    assert_eq!(ended.1.as_deref(), Some("{}\n"));
    assert!(matches!(place.replays.cancel(&started[2]).await, Err(ReplayError::Ended)));
    assert_eq!(place.state(&started[2]).await, JobState::Done);
    place.replays.delete(&recording).await.unwrap();
    assert!(matches!(place.start(&recording, "e").await, Err(ReplayError::UnknownRecording)));
}

#[tokio::test]
async fn a_job_that_is_cancelled_or_cut_off_leaves_no_process_and_no_snapshot() {
    let place = Place::new(|_| {}).await;
    let recording = place.record(b"1").await.unwrap().id;
    place.hold();
    drop(place.pid().await);
    let (one, two) = (place.start(&recording, "a").await.unwrap(), place.start(&recording, "b").await.unwrap());
    let (jobs, pid) = (place.path("kept/jobs"), place.pid().await);
    assert_eq!(place.replays.cancel(&one).await.unwrap().state, JobState::Cancelled);
    let next = place.pid().await;
    gone(&pid).await;
    until(|| (names(&jobs) == [&*two]).then_some(())).await;
    assert_eq!(place.state(&one).await, JobState::Cancelled);
    assert_eq!(place.replays.job(&one).await.unwrap().1, None, "it has no result");
    assert_eq!(place.state(&two).await, JobState::Running);
    // The control plane stops.
    place.replays.close().await;
    gone(&next).await;
    until(|| names(&jobs).is_empty().then_some(())).await;
    let (cut_off, _) = place.replays.job(&two).await.unwrap();
    assert_eq!(cut_off.state, JobState::Failed);
    assert!(cut_off.error.unwrap().contains("was stopped before it was done"));
}

#[tokio::test]
async fn what_one_has_another_has_and_may_end() {
    let place = Place::new(|_| {}).await;
    let other = place.beside("other").await;
    let recording = place.record(b"1").await.unwrap();
    assert_eq!(other.recordings().await.unwrap(), std::slice::from_ref(&recording));
    place.hold();
    drop(place.pid().await);
    let (one, two) = (place.start(&recording.id, "a").await.unwrap(), place.start(&recording.id, "b").await.unwrap());
    let pid = place.pid().await;
    // Its control plane says how it is.
    reaches(&other, &one, JobState::Running).await;
    assert_eq!(other.cancel(&two).await.unwrap().state, JobState::Cancelled);
    assert_eq!(place.state(&two).await, JobState::Cancelled);
    assert_eq!(other.cancel(&one).await.unwrap().state, JobState::Cancelled);
    gone(&pid).await;
    until(|| names(&place.path("kept/jobs")).is_empty().then_some(())).await;
    // The result of one is read at the other.
    fs::remove_file(place.path("hold")).unwrap();
    let third = place.start(&recording.id, "c").await.unwrap();
    reaches(&other, &third, JobState::Done).await;
    assert_eq!(other.job(&third).await.unwrap().1.as_deref(), Some("{}\n"));
    other.delete(&recording.id).await.unwrap();
    assert!(matches!(place.replays.recording(&recording.id).await, Err(ReplayError::UnknownRecording)));
}

#[tokio::test]
async fn jobs_and_uploads_of_one_that_is_gone_are_ended_and_others_are_not() {
    let place = Place::new(|_| {}).await;
    let other = place.beside("other").await;
    let recording = place.record(b"1").await.unwrap().id;
    place.hold();
    drop(place.pid().await);
    let job = place.start(&recording, "a").await.unwrap();
    place.pid().await;
    let half = RecordingRow { id: "half".into(), bytes: 9, ..RecordingRow::default() };
    let room = RecordingRoom { recordings: 9, bytes: 99 };
    assert_eq!(place.store.recording_begin(half, room).await.unwrap(), RecordingBegun::Begun);
    assert!(place.store.content_put("half", 0, vec![1; MAX_CHUNK]).await.unwrap());
    let (long, short) = (Duration::from_secs(1_000), Duration::from_millis(1));
    let mut seen = Seen::default();
    let kept = Patience { silent: long, unlisted: 1_000 };
    other.look(&mut seen, kept, true).await.unwrap();
    // The beat has moved on: the job counts as heard of from now on.
    let beat = async || place.store.replay(&job).await.unwrap().unwrap().beat;
    let before = beat().await;
    while beat().await == before {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    other.look(&mut seen, Patience { silent: short, unlisted: 1_000 }, true).await.unwrap();
    assert_eq!((place.state(&job).await, place.contents().len()), (JobState::Running, 2));
    // The control plane is killed: nothing says so in the store.
    place.replays.abort().await;
    other.look(&mut seen, kept, true).await.unwrap();
    assert_eq!(place.store.recordings_begun().await.unwrap().len(), 1);
    tokio::time::sleep(short * 5).await;
    other.look(&mut seen, Patience { silent: short, unlisted: 0 }, false).await.unwrap();
    let (failed, _) = other.job(&job).await.unwrap();
    assert_eq!(failed.state, JobState::Failed);
    assert!(failed.error.unwrap().contains("its control plane has stopped"));
    assert_eq!((place.contents(), place.store.recordings_begun().await.unwrap()), (vec![recording.clone()], vec![]));
    other.delete(&recording).await.unwrap();
}

#[tokio::test]
async fn a_replay_without_a_result_leaves_nothing_and_one_that_has_lost_it_says_so() {
    let place = Place::new(|_| {}).await;
    let recording = place.record(b"1").await.unwrap().id;
    let done = place.start(&recording, "a").await.unwrap();
    place.until(&done, JobState::Done).await;
    // As after a backup was restored, which has no contents.
    fs::remove_dir_all(place.path("contents").join(&done)).unwrap();
    assert!(matches!(place.replays.job(&done).await, Err(ReplayError::UnknownJob)));
    assert_eq!(place.replays.find(&done).await.unwrap().state, JobState::Done);
    place.hold();
    let ended = place.start(&recording, "b").await.unwrap();
    assert!(place.store.content_put(&ended, 0, vec![1]).await.unwrap());
    assert_eq!(place.contents(), [&*recording, &*ended]);
    place.replays.cancel(&ended).await.unwrap();
    assert_eq!(place.contents(), [&*recording], "it has ended while its result was written");
    place.store.content_put(&ended, 0, vec![1]).await.unwrap();
    place.store.contents_sweep().await.unwrap();
    assert_eq!(place.contents(), [&*recording], "its row stays, and has no contents");
}

#[tokio::test]
async fn a_control_plane_that_stops_takes_no_replay() {
    let place = Place::new(|_| {}).await;
    let recording = place.record(b"1").await.unwrap().id;
    place.replays.close().await;
    let refused = place.start(&recording, "a").await.unwrap_err();
    assert!(matches!(&refused, ReplayError::Busy(why) if why.contains("is being stopped")), "{refused}");
    assert!(place.replays.jobs().await.unwrap().is_empty());
    assert_eq!(names(&place.path("kept/jobs")), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_read_is_listed_and_removed() {
    let place = Place::new(|_| {}).await;
    let row = RecordingRow { id: "r".into(), bytes: 1, json: "{}".into(), ..RecordingRow::default() };
    let room = RecordingRoom { recordings: 9, bytes: 99 };
    place.store.recording_begin(row, room).await.unwrap();
    assert!(place.store.recording_publish("r").await.unwrap());
    let recording = place.replays.recording("r").await.unwrap();
    assert_eq!((recording.name.as_str(), recording.by.as_str(), recording.bytes), ("(cannot be read)", "", 1));
    for (id, json) in [("a", ""), ("b", "[]")] {
        let new = NewReplay { id: id.into(), recording: "r".into(), runner: "gone".into(), json: json.into() };
        assert_eq!(place.store.replay_add(new, 9).await.unwrap(), ReplayAdded::Added);
    }
    assert_eq!(place.replays.jobs().await.unwrap().len(), 2);
    assert_eq!(place.replays.cancel("a").await.unwrap().state, JobState::Cancelled);
    let none = Patience { silent: Duration::ZERO, unlisted: 1_000 };
    let mut seen = Seen::default();
    place.replays.look(&mut seen, none, false).await.unwrap();
    place.replays.look(&mut seen, none, false).await.unwrap();
    assert_eq!((place.state("a").await, place.state("b").await), (JobState::Cancelled, JobState::Failed));
    place.replays.delete("r").await.unwrap();
    assert!(place.replays.recordings().await.unwrap().is_empty());
}

/// A recording of an older release, and the file about it.
fn about(id: &str, name: &str, added: u64, bytes: u64) -> (Recording, Vec<u8>) {
    let recording = Recording {
        id: id.to_owned(),
        name: name.to_owned(),
        source: Source::Upload,
        by: "anna".to_owned(),
        added_millis: added,
        bytes,
        requests: 3,
        unreadable: 0,
        reasons: Vec::new(),
        first_millis: None,
        last_millis: None,
        unrouted: 0,
    };
    let about = serde_json::to_vec_pretty(&recording).unwrap();
    (recording, about)
}

#[tokio::test]
async fn an_older_recording_that_fails_does_not_stop_the_others() {
    let prepare = |folder: &Path| {
        let shelf = folder.join("kept/recordings");
        fs::create_dir_all(&shelf).unwrap();
        // The store takes no such name.
        for (id, added) in [("recording-1", 1), ("recording_2", 2)] {
            fs::write(shelf.join(format!("{id}.json")), about(id, id, added, 2).1).unwrap();
            fs::write(shelf.join(format!("{id}.jsonl.gz")), b"ab").unwrap();
        }
    };
    let place = Place::prepared(|_| {}, prepare).await;
    let shelf = place.path("kept/recordings");
    until(|| (names(&shelf) == ["recording-1.json", "recording-1.jsonl.gz"]).then_some(())).await;
    assert_eq!(place.replays.recordings().await.unwrap(), [about("recording_2", "recording_2", 2, 2).0]);
    assert_eq!((place.contents(), place.store.recordings_begun().await.unwrap()), (vec!["recording_2".into()], vec![]));
}

#[tokio::test]
async fn recordings_of_an_older_release_are_moved_to_the_store() {
    let large = vec![7; MAX_CHUNK + 5];
    let (first, first_about) = about("recording_1", "first", 1, large.len() as u64);
    let (second, second_about) = about("recording_2", "second", 2, 2);
    let (third, third_about) = about("recording_3", "third", 3, 2);
    let limits = |limits: &mut Limits| limits.recordings = 2;
    let prepare = |folder: &Path| {
        let shelf = folder.join("kept/recordings");
        fs::create_dir_all(&shelf).unwrap();
        let kept: [(&str, &[u8], &[u8]); 3] = [
            ("recording_1", &first_about, &large),
            ("recording_2", &second_about, b"ab"),
            ("recording_3", &third_about, b"cd"),
        ];
        for (id, about, data) in kept {
            fs::write(shelf.join(format!("{id}.json")), about).unwrap();
            fs::write(shelf.join(format!("{id}.jsonl.gz")), data).unwrap();
        }
        fs::write(shelf.join("recording_9.jsonl.gz"), "half").unwrap();
    };
    let place = Place::prepared(limits, prepare).await;
    let shelf = place.path("kept/recordings");
    until(|| (names(&shelf) == ["recording_3.json", "recording_3.jsonl.gz"]).then_some(())).await;
    assert_eq!(place.replays.recordings().await.unwrap(), [first, second.clone()]);
    assert_eq!(place.contents(), ["recording_1", "recording_2"]);
    let chunk = async |number| place.store.content("recording_1", number).await.unwrap().unwrap().len();
    assert_eq!((chunk(0).await, chunk(1).await), (MAX_CHUNK, 5));
    // There is room for the third one at a later start.
    place.replays.delete("recording_1").await.unwrap();
    place.replays.close().await;
    let again = place.beside("kept").await;
    until(|| (!shelf.exists()).then_some(())).await;
    assert_eq!(again.recordings().await.unwrap(), [second, third]);
}
