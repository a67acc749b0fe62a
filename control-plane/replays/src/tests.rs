//! Limits, order and clean-up, with a script in the place of the program that waits where it is told to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

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

/// Recordings and jobs in a folder of their own.
struct Place {
    folder: TempDir,
    replays: Replays,
}

impl Place {
    fn new(change: impl FnOnce(&mut Limits)) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, SCRIPT.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let mut limits = Limits::default();
        change(&mut limits);
        let replays = Replays::open(Settings { folder: folder.path().join("kept"), program: Some(program), limits });
        Place { folder, replays }
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

    fn start(&self, recording: &str, group: &str) -> Result<String, ReplayError> {
        let (before, after) = (b"before".to_vec(), b"after".to_vec());
        let new = NewJob {
            recording: recording.to_owned(),
            by: "anna".to_owned(),
            changes: Vec::new(),
            group: group.to_owned(),
            route: String::new(),
            before,
            after,
        };
        self.replays.start(new).map(|job| job.id)
    }

    fn state(&self, id: &str) -> JobState {
        self.replays.job(id).unwrap().0.state
    }

    async fn until(&self, id: &str, state: JobState) {
        until(|| (self.state(id) == state).then_some(())).await;
    }

    /// The process that the script has written last.
    async fn pid(&self) -> String {
        let pid = until(|| fs::read_to_string(self.path("pid")).ok()).await;
        fs::remove_file(self.path("pid")).unwrap();
        pid.trim().to_owned()
    }
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
    let place = Place::new(|limits| (limits.upload_bytes, limits.recordings) = (10, 2));
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
    assert_eq!(place.replays.recordings().iter().map(|kept| kept.id.clone()).collect::<Vec<_>>(), [&*one.id, &*two.id]);
    assert_eq!(names(&place.path("kept/recordings")).len(), 4);
    assert_eq!(place.replays.delete(&one.id).unwrap(), one);
    assert!(matches!(place.replays.delete(&one.id), Err(ReplayError::UnknownRecording)));
    let left = names(&place.path("kept/recordings"));
    assert_eq!((left.len(), left.iter().all(|name| name.starts_with(&two.id))), (2, true), "{left:?}");
    place.record(b"3").await.unwrap();
}

#[tokio::test]
async fn recordings_have_no_more_bytes_than_there_is_room_for() {
    let place = Place::new(|limits| (limits.recording_bytes, limits.total_bytes) = (3 << 20, 4 << 20));
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
    let place = Place::new(|limits| (limits.waiting, limits.ended) = (2, 2));
    let recording = place.record(b"1").await.unwrap().id;
    place.hold();
    drop(place.pid().await);
    let started: Vec<String> = ["a", "b", "c"].map(|group| place.start(&recording, group).unwrap()).to_vec();
    assert!(matches!(place.start(&recording, "d"), Err(ReplayError::Busy(_))), "two may wait");
    assert!(matches!(place.replays.delete(&recording), Err(ReplayError::InUse)));
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
    assert!(matches!(place.replays.job(&started[0]), Err(ReplayError::UnknownJob)), "the oldest of three");
    let mut kept = started[1..].to_vec();
    kept.sort();
    assert_eq!(names(&jobs), kept);
    for id in &kept {
        assert_eq!(names(&jobs.join(id)), ["diff.json"], "the snapshots are removed");
    }
    let ended = place.replays.job(&started[2]).unwrap();
    assert_eq!(ended.1, Some(jobs.join(&started[2]).canonicalize().unwrap().join("diff.json")));
    assert!(matches!(place.replays.cancel(&started[2]), Err(ReplayError::Ended)));
    assert_eq!(place.state(&started[2]), JobState::Done);
    place.replays.delete(&recording).unwrap();
    assert!(matches!(place.start(&recording, "e"), Err(ReplayError::UnknownRecording)));
}

#[tokio::test]
async fn a_job_that_is_cancelled_or_cut_off_leaves_no_process_and_no_snapshot() {
    let place = Place::new(|_| {});
    let recording = place.record(b"1").await.unwrap().id;
    place.hold();
    drop(place.pid().await);
    let (one, two) = (place.start(&recording, "a").unwrap(), place.start(&recording, "b").unwrap());
    let (jobs, pid) = (place.path("kept/jobs"), place.pid().await);
    assert_eq!(place.replays.cancel(&one).unwrap().state, JobState::Cancelled);
    let next = place.pid().await;
    gone(&pid).await;
    assert_eq!((place.state(&one), names(&jobs.join(&one))), (JobState::Cancelled, vec![]));
    assert_eq!(place.replays.job(&one).unwrap().1, None, "it has no result");
    assert_eq!(place.state(&two), JobState::Running);
    // The control plane stops.
    place.replays.close();
    gone(&next).await;
    until(|| names(&jobs).is_empty().then_some(())).await;
}
