//! The recordings and jobs of one control plane.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::child::{self, Allowance};
use crate::error::{ReplayError, io};
use crate::folder::{self, Temporary};
use crate::job::{Job, JobState, NewJob, Progress};
use crate::names;
use crate::queue::{Entry, Queue};
use crate::recording::{Recording, Source};
use crate::settings::{Limits, Settings};
use crate::shelf::Shelf;
use crate::upload::Upload;

/// The file of a result in the folder of its job.
const RESULT: &str = "diff.json";
/// The files of the snapshots.
const BEFORE: &str = "before";
const AFTER: &str = "after";
/// The requests of each kind that a result lists; the page says so as well.
const LISTED: &str = "500";
/// The bytes of a result, in MiB.
const RESULT_MIB: u64 = 256;

/// The recordings and jobs of one control plane. Cheap to clone.
#[derive(Clone)]
pub struct Replays {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    /// `None`: the folder cannot be used.
    shelf: Result<Shelf, String>,
    folder: PathBuf,
    state: Mutex<State>,
    /// Told when a job was added.
    added: Notify,
    /// One upload at a time.
    uploads: Arc<Semaphore>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    recordings: Vec<Recording>,
    queue: Queue,
}

impl Replays {
    /// Opens the folder, removes what an earlier process has left in it but for recordings, and starts to work on jobs. A folder that
    /// cannot be used keeps nothing but this from working; calls say so.
    #[must_use]
    pub fn open(settings: Settings) -> Replays {
        let opened = open(&settings.folder);
        if let Err(why) = &opened {
            tracing::error!(folder = %settings.folder.display(), "recordings and replays cannot be used: {why}");
        }
        let (folder, shelf, recordings) = match opened {
            Ok((folder, shelf, recordings)) => (folder, Ok(shelf), recordings),
            Err(why) => (settings.folder.clone(), Err(why), Vec::new()),
        };
        let inner = Inner {
            settings,
            shelf,
            folder,
            state: Mutex::new(State { recordings, queue: Queue::default() }),
            added: Notify::new(),
            uploads: Arc::new(Semaphore::new(1)),
            worker: Mutex::new(None),
        };
        let replays = Replays { inner: Arc::new(inner) };
        let worker = tokio::spawn(replays.clone().work());
        *replays.inner.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        replays
    }

    /// Ends the job that runs, and works on no other. Recordings stay.
    pub fn close(&self) {
        let worker = self.inner.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The future that waits for the child is dropped, which kills it.
        worker.iter().for_each(JoinHandle::abort);
        let ended = std::mem::take(&mut self.state().queue);
        drop(ended);
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.settings.limits
    }

    /// The program.
    ///
    /// # Errors
    /// It is missing, or the folder cannot be used.
    pub fn find_program(&self) -> Result<PathBuf, ReplayError> {
        self.shelf()?;
        self.inner.settings.find_program()
    }

    /// The recordings, oldest first.
    #[must_use]
    pub fn recordings(&self) -> Vec<Recording> {
        self.state().recordings.clone()
    }

    /// A recording.
    ///
    /// # Errors
    /// There is none with this id.
    pub fn recording(&self, id: &str) -> Result<Recording, ReplayError> {
        let state = self.state();
        let found = state.recordings.iter().find(|recording| recording.id == id);
        found.cloned().ok_or(ReplayError::UnknownRecording)
    }

    /// Begins an upload. `length` is what the client says.
    ///
    /// # Errors
    /// The name is wrong, another upload is under way, there is no room, or the program is missing.
    pub async fn upload(&self, name: &str, source: Source, length: Option<u64>) -> Result<Upload, ReplayError> {
        let name = names::checked(name)?;
        self.find_program()?;
        let limits = self.limits();
        if length.is_some_and(|length| length > limits.upload_bytes) {
            return Err(ReplayError::TooLarge(limits.upload_bytes));
        }
        self.room()?;
        let busy = |_| ReplayError::Busy("another recording is being uploaded; try again when it is there".to_owned());
        let turn = Arc::clone(&self.inner.uploads).try_acquire_owned().map_err(busy)?;
        let folder = self.inner.folder.join("incoming").join(names::fresh_id("upload")?);
        folder::make(&folder).map_err(io("make the folder of the upload"))?;
        Upload::begin(self.clone(), name, source, Temporary(folder), turn).await
    }

    /// Deletes a recording.
    ///
    /// # Errors
    /// There is none with this id, or a job needs it.
    pub fn delete(&self, id: &str) -> Result<Recording, ReplayError> {
        let mut state = self.state();
        let place = state.recordings.iter().position(|recording| recording.id == id);
        let place = place.ok_or(ReplayError::UnknownRecording)?;
        if state.queue.needs(id) {
            return Err(ReplayError::InUse);
        }
        self.shelf()?.remove(id).map_err(io("delete the recording"))?;
        Ok(state.recordings.remove(place))
    }

    /// Adds a job, which runs as soon as those before it have ended.
    ///
    /// # Errors
    /// There is no such recording, too many jobs wait, or the program is missing.
    pub fn start(&self, new: NewJob) -> Result<Job, ReplayError> {
        self.may_start(&new.recording)?;
        let id = names::fresh_id("replay")?;
        let folder = Temporary(self.inner.folder.join("jobs").join(&id));
        folder::make(&folder.0).map_err(io("make the folder of the replay"))?;
        write(&folder.0.join(BEFORE), &new.before).map_err(io("write a snapshot"))?;
        write(&folder.0.join(AFTER), &new.after).map_err(io("write a snapshot"))?;
        let mut state = self.state();
        // Again, because others may have been faster.
        let recording = self.check(&state, &new.recording)?;
        let job = Job {
            id,
            recording: new.recording,
            recording_name: recording,
            by: new.by,
            changes: new.changes,
            group: new.group,
            route: new.route,
            state: JobState::Waiting,
            added_millis: clock::now_millis(),
            began_millis: None,
            ended_millis: None,
            progress: Progress::default(),
            error: None,
        };
        state.queue.add(Entry { job: job.clone(), folder, cancel: Arc::default() });
        drop(state);
        self.inner.added.notify_one();
        Ok(job)
    }

    /// Whether a job on a recording could be added now: asked before what is costly.
    ///
    /// # Errors
    /// As of [`Replays::start`].
    pub fn may_start(&self, recording: &str) -> Result<(), ReplayError> {
        self.find_program()?;
        self.check(&self.state(), recording).map(drop)
    }

    /// The name of a recording that a job could be added for.
    fn check(&self, state: &State, recording: &str) -> Result<String, ReplayError> {
        let found = state.recordings.iter().find(|known| known.id == recording).ok_or(ReplayError::UnknownRecording)?;
        let (waiting, most) = (state.queue.waiting(), self.limits().waiting);
        // The next one takes the place of the one that runs, if none does.
        if waiting >= most + usize::from(!state.queue.is_running()) {
            return Err(ReplayError::Busy(format!(
                "a replay runs and {waiting} wait, as many as may; try again when one has ended, or cancel one"
            )));
        }
        Ok(found.name.clone())
    }

    /// The jobs, newest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.state().queue.jobs().rev().cloned().collect()
    }

    /// A job, and the file of its result if it has one.
    ///
    /// # Errors
    /// There is none with this id.
    pub fn job(&self, id: &str) -> Result<(Job, Option<PathBuf>), ReplayError> {
        let state = self.state();
        let entry = state.queue.get(id).ok_or(ReplayError::UnknownJob)?;
        let result = (entry.job.state == JobState::Done).then(|| entry.folder.0.join(RESULT));
        Ok((entry.job.clone(), result))
    }

    /// Ends a job.
    ///
    /// # Errors
    /// There is none with this id, or it has ended.
    pub fn cancel(&self, id: &str) -> Result<Job, ReplayError> {
        let mut state = self.state();
        let entry = state.queue.get_mut(id).ok_or(ReplayError::UnknownJob)?;
        if entry.job.state.has_ended() {
            return Err(ReplayError::Ended);
        }
        entry.cancel.notify_one();
        let (was, folder) = (entry.job.state, entry.folder.0.clone());
        let forgotten = state.queue.end(id, JobState::Cancelled, None, clock::now_millis(), self.limits());
        let job = state.queue.get(id).map(|entry| entry.job.clone()).ok_or(ReplayError::UnknownJob);
        drop(state);
        drop(forgotten);
        if was == JobState::Waiting {
            remove_snapshots(&folder);
        }
        job
    }

    /// The bytes that a further recording may have.
    pub(crate) fn room(&self) -> Result<u64, ReplayError> {
        let (state, limits) = (self.state(), self.limits());
        let bytes: u64 = state.recordings.iter().map(|recording| recording.bytes).sum();
        if state.recordings.len() >= limits.recordings || bytes >= limits.total_bytes {
            return Err(ReplayError::Full(format!(
                "{} recordings with {} MiB are kept, as many as may ({} recordings, {} MiB); delete one",
                state.recordings.len(),
                bytes.div_ceil(1 << 20),
                limits.recordings,
                limits.total_bytes >> 20
            )));
        }
        Ok(limits.recording_bytes.min(limits.total_bytes - bytes))
    }

    /// Keeps a recording, whose file is moved.
    pub(crate) fn keep(&self, recording: Recording, file: &Path) -> Result<(), ReplayError> {
        let mut state = self.state();
        self.shelf()?.put(&recording, file).map_err(io("keep the recording"))?;
        state.recordings.push(recording);
        Ok(())
    }

    fn shelf(&self) -> Result<&Shelf, ReplayError> {
        self.inner.shelf.as_ref().map_err(|why| {
            let folder = self.inner.settings.folder.display();
            ReplayError::Unavailable(format!(
                "the folder {folder} cannot be used: {why}; mend it and start the control plane again"
            ))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(self) {
        loop {
            let begun = self.state().queue.begin_next(clock::now_millis()).map(|entry| {
                let Entry { job, folder, cancel } = entry;
                (job.clone(), folder.0.clone(), Arc::clone(cancel))
            });
            let Some((job, folder, cancel)) = begun else {
                self.inner.added.notified().await;
                continue;
            };
            let outcome = tokio::select! {
                outcome = self.replay(&job, &folder) => outcome,
                () = cancel.notified() => {
                    remove_snapshots(&folder);
                    continue;
                }
            };
            remove_snapshots(&folder);
            let (state, error) = match outcome {
                Ok(()) => (JobState::Done, None),
                Err(why) => {
                    tracing::warn!(job = %job.id, "a replay has failed: {why}");
                    (JobState::Failed, Some(why))
                }
            };
            let mut locked = self.state();
            // It may have been cancelled at its very end.
            let ended = locked.queue.get(&job.id).is_none_or(|entry| entry.job.state.has_ended());
            let forgotten = match ended {
                true => Vec::new(),
                false => locked.queue.end(&job.id, state, error, clock::now_millis(), self.limits()),
            };
            drop(locked);
            drop(forgotten);
        }
    }

    async fn replay(&self, job: &Job, folder: &Path) -> Result<(), String> {
        let program = self.find_program().map_err(|error| error.to_string())?;
        let recording = self.shelf().map_err(|error| error.to_string())?.data(&job.recording);
        let (before, after) = (folder.join(BEFORE), folder.join(AFTER));
        let mut arguments: Vec<OsString> = vec!["diff".into(), before.clone().into(), after.clone().into()];
        arguments.extend(["--traffic".into(), recording.clone().into()]);
        arguments.extend(["--engine", "native", "--listed", LISTED, "--format", "json", "--out"].map(OsString::from));
        arguments.push(folder.join(RESULT).into());
        if !job.route.is_empty() {
            arguments.extend(["--route".into(), job.route.clone().into()]);
        }
        let limits = self.limits();
        let allowance = Allowance {
            memory_mib: limits.memory_mib,
            cpu_seconds: limits.cpu_seconds,
            // The rows of both runs are temporary files.
            file_mib: RESULT_MIB.max(limits.total_bytes >> 20),
            patience: Limits::patience(limits.cpu_seconds),
        };
        let tell = |told: &Value| self.state().queue.progress(&job.id, progress(told));
        let ended =
            child::run(&program, &arguments, folder, allowance, tell).await.map_err(|error| error.to_string())?;
        let said = ended.said(&[
            (&recording, &job.recording_name),
            (&before, "the policy in force"),
            (&after, "the changed policy"),
        ]);
        match (ended.stopped, ended.code) {
            (Some(stopped), _) => Err(format!("the replay was stopped: {stopped}\n{said}").trim_end().to_owned()),
            // 1: they differ.
            (None, Some(0 | 1)) if folder.join(RESULT).is_file() => Ok(()),
            (None, _) => Err(format!("the replay has failed: {said}")),
        }
    }
}

impl std::fmt::Debug for Replays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replays").field("folder", &self.inner.folder).finish_non_exhaustive()
    }
}

/// Opens the folder: its whole path, which programs with another working directory know as well.
fn open(folder: &Path) -> Result<(PathBuf, Shelf, Vec<Recording>), String> {
    let opened = || {
        folder::make(folder)?;
        let folder = folder.canonicalize()?;
        // Snapshots have secrets: those of a process that was killed go first.
        folder::make_empty(&folder.join("jobs"))?;
        folder::make_empty(&folder.join("incoming"))?;
        let shelf = Shelf::open(folder.join("recordings"))?;
        let recordings = shelf.load()?;
        Ok((folder, shelf, recordings))
    };
    opened().map_err(|error: std::io::Error| error.to_string())
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::File::options();
    options.write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn remove_snapshots(folder: &Path) {
    for name in [BEFORE, AFTER] {
        drop(Temporary(folder.join(name)));
    }
}

fn progress(told: &Value) -> Progress {
    let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
    Progress {
        part: number("part"),
        parts: number("parts"),
        requests: number("requests"),
        bytes_read: number("bytes_read"),
        bytes: number("bytes"),
    }
}
