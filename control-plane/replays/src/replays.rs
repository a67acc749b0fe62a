//! The recordings and jobs in the store, as one control plane has them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::clock;
use store::Store;
use store::replays::{KeptReplays, NewReplay, RecordingRemoved, ReplayAdded, ReplayEnd};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::error::{ReplayError, io};
use crate::folder::{self, Temporary};
use crate::job::{Job, JobState, NewJob, Progress};
use crate::queue::{Entry, Queue};
use crate::recording::{Recording, Source};
use crate::settings::{Limits, Settings};
use crate::upload::Upload;
use crate::work::{AFTER, BEFORE};
use crate::{contents, names};

/// The bytes of a result, without compression.
pub(crate) const MAX_RESULT: u64 = 64 << 20;
/// How long it may take to say at the end that jobs were not done.
const CLOSING: Duration = Duration::from_secs(3);
/// Why a job has failed whose control plane was stopped.
const STOPPED: &str = "its control plane was stopped before it was done; start it again";

/// The recordings and jobs of the control planes that share a store, at one of them. Cheap to clone.
#[derive(Clone)]
pub struct Replays {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    store: Arc<dyn Store>,
    /// Where this control plane works; `Err`: it cannot be used.
    folder: Result<PathBuf, String>,
    /// The name of this process in the store.
    runner: String,
    queue: Mutex<Queue>,
    /// Told when a job was added.
    added: Notify,
    /// One upload at a time.
    uploads: Arc<Semaphore>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// The ids of rows that the log has said are not to be read.
    unread: Mutex<HashSet<String>>,
}

impl Replays {
    /// Opens the folder, removes what an earlier process has left in it but for recordings, which go to the store, and starts to work on
    /// jobs. A folder that cannot be used keeps nothing but this from working; calls say so.
    pub async fn open(settings: Settings, store: Arc<dyn Store>) -> Replays {
        let mut folder = open(&settings.folder);
        let runner = names::fresh_id("runner").unwrap_or_else(|error| {
            folder = Err(error.to_string());
            String::new()
        });
        if let Err(why) = &folder {
            tracing::error!(folder = %settings.folder.display(), "recordings and replays cannot be used: {why}");
        }
        let inner = Inner {
            settings,
            store,
            folder,
            runner,
            queue: Mutex::default(),
            added: Notify::new(),
            uploads: Arc::new(Semaphore::new(1)),
            tasks: Mutex::default(),
            unread: Mutex::default(),
        };
        let replays = Replays { inner: Arc::new(inner) };
        if !replays.store().is_dedicated() {
            // No other process has the file: what is under way there is of one that is gone.
            if let Err(error) = replays.end_all().await {
                tracing::warn!(%error, "replays that were cut off could not be ended yet");
            }
        }
        let tasks = [
            tokio::spawn(replays.clone().work()),
            tokio::spawn(replays.clone().beat()),
            tokio::spawn(replays.clone().watch()),
            tokio::spawn(replays.clone().move_older()),
        ];
        replays.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
        replays
    }

    /// Ends the job that runs and those that wait here, and says so in the store. None is taken any more. Recordings and results stay.
    pub async fn close(&self) {
        self.abort().await;
        let ended = self.queue().take_all();
        let saying = async {
            for Entry { job, .. } in &ended {
                if let Err(error) = self.end(job.clone(), JobState::Failed, Some(STOPPED.to_owned()), None, 0).await {
                    tracing::warn!(%error, job = %job.id, "that a replay was not done could not be stored");
                }
            }
        };
        let _late = tokio::time::timeout(CLOSING, saying).await;
    }

    /// Ends everything that is under way, and says nothing of it in the store.
    pub(crate) async fn abort(&self) {
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // The future that waits for the child is dropped, which kills it.
        tasks.iter().for_each(JoinHandle::abort);
        for task in tasks {
            let _aborted = task.await;
        }
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
        self.folder()?;
        self.inner.settings.find_program()
    }

    /// The recordings, oldest first.
    ///
    /// # Errors
    /// The store has failed.
    pub async fn recordings(&self) -> Result<Vec<Recording>, ReplayError> {
        let rows = self.store().recordings().await?;
        Ok(rows.iter().map(|row| self.read_recording(row)).collect())
    }

    /// A recording.
    ///
    /// # Errors
    /// There is none with this id, or the store has failed.
    pub async fn recording(&self, id: &str) -> Result<Recording, ReplayError> {
        let found = self.recordings().await?.into_iter().find(|recording| recording.id == id);
        found.ok_or(ReplayError::UnknownRecording)
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
        self.room().await?;
        let busy = |_| ReplayError::Busy("another recording is being uploaded; try again when it is there".to_owned());
        let turn = Arc::clone(&self.inner.uploads).try_acquire_owned().map_err(busy)?;
        let folder = self.folder()?.join("incoming").join(names::fresh_id("upload")?);
        folder::make(&folder).map_err(io("make the folder of the upload"))?;
        Upload::begin(self.clone(), name, source, Temporary(folder), turn).await
    }

    /// Deletes a recording.
    ///
    /// # Errors
    /// There is none with this id, or a job needs it.
    pub async fn delete(&self, id: &str) -> Result<Recording, ReplayError> {
        let recording = self.recording(id).await?;
        match self.store().recording_remove(id).await? {
            RecordingRemoved::Removed => Ok(recording),
            RecordingRemoved::Unknown => Err(ReplayError::UnknownRecording),
            RecordingRemoved::InUse => Err(ReplayError::InUse),
        }
    }

    /// Adds a job, which runs here as soon as those before it have ended.
    ///
    /// # Errors
    /// There is no such recording, too many jobs wait, the control plane is being stopped, or the program is missing.
    pub async fn start(&self, new: NewJob) -> Result<Job, ReplayError> {
        let recording = self.may_start(&new.recording).await?;
        let id = names::fresh_id("replay")?;
        let folder = Temporary(self.folder()?.join("jobs").join(&id));
        folder::make(&folder.0).map_err(io("make the folder of the replay"))?;
        write(&folder.0.join(BEFORE), &new.before).map_err(io("write a snapshot"))?;
        write(&folder.0.join(AFTER), &new.after).map_err(io("write a snapshot"))?;
        let job = Job {
            id,
            recording: new.recording,
            recording_name: recording.name,
            by: new.by,
            changes: new.changes,
            group: new.group,
            route: new.route.as_ref().map(|names| names.shown().to_owned()).unwrap_or_default(),
            route_names: new.route,
            state: JobState::Waiting,
            added_millis: clock::now_millis(),
            began_millis: None,
            ended_millis: None,
            progress: Progress::default(),
            error: None,
        };
        let row = NewReplay {
            id: job.id.clone(),
            recording: job.recording.clone(),
            runner: self.inner.runner.clone(),
            json: json(&job)?,
        };
        // Again, because others may have been faster.
        match self.store().replay_add(row, self.most_unfinished()).await? {
            ReplayAdded::Added => {}
            ReplayAdded::UnknownRecording => return Err(ReplayError::UnknownRecording),
            ReplayAdded::Busy(unfinished) => return Err(busy(unfinished)),
        }
        let entry = Entry { job: job.clone(), folder: Some(folder), cancel: Arc::default() };
        let late = self.queue().add(entry);
        if let Some(Entry { job, .. }) = late {
            self.end(job, JobState::Failed, Some(STOPPED.to_owned()), None, 0).await?;
            return Err(stopping());
        }
        self.inner.added.notify_one();
        Ok(job)
    }

    /// Whether a job on a recording could be added now: asked before what is costly. The recording.
    ///
    /// # Errors
    /// As of [`Replays::start`].
    pub async fn may_start(&self, recording: &str) -> Result<Recording, ReplayError> {
        self.find_program()?;
        if self.queue().is_closed() {
            return Err(stopping());
        }
        let found = self.recording(recording).await?;
        let unfinished = u32::try_from(self.queue().jobs().count()).unwrap_or(u32::MAX);
        if unfinished >= self.most_unfinished() {
            return Err(busy(unfinished));
        }
        Ok(found)
    }

    /// The one that runs, and those that wait.
    fn most_unfinished(&self) -> u32 {
        u32::try_from(self.limits().waiting).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The jobs, newest first.
    ///
    /// # Errors
    /// The store has failed.
    pub async fn jobs(&self) -> Result<Vec<Job>, ReplayError> {
        let rows = self.store().replays().await?;
        Ok(rows.iter().rev().map(|row| self.read(row)).collect())
    }

    /// A job, without its result.
    ///
    /// # Errors
    /// There is none with this id, or the store has failed.
    pub async fn find(&self, id: &str) -> Result<Job, ReplayError> {
        let row = self.store().replay(id).await?.ok_or(ReplayError::UnknownJob)?;
        Ok(self.read(&row))
    }

    /// A job, and its result once it is done: the document of the program as it has written it.
    ///
    /// # Errors
    /// There is none with this id, its result is no longer kept, or cannot be read.
    pub async fn job(&self, id: &str) -> Result<(Job, Option<String>), ReplayError> {
        let row = self.store().replay(id).await?.ok_or(ReplayError::UnknownJob)?;
        let job = self.read(&row);
        if job.state != JobState::Done {
            return Ok((job, None));
        }
        let result = contents::read_text(self.store(), id, row.result_bytes, MAX_RESULT).await?;
        result.map(|result| (job, Some(result))).ok_or(ReplayError::UnknownJob)
    }

    /// Ends a job, wherever it runs.
    ///
    /// # Errors
    /// There is none with this id, or it has ended.
    pub async fn cancel(&self, id: &str) -> Result<Job, ReplayError> {
        let row = self.store().replay(id).await?.ok_or(ReplayError::UnknownJob)?;
        if row.has_ended {
            return Err(ReplayError::Ended);
        }
        let ended = self.end(self.read(&row), JobState::Cancelled, None, None, 0).await?.ok_or(ReplayError::Ended)?;
        // Another control plane learns it when it says next that it is there.
        let waited = self.queue().stop(id);
        drop(waited);
        Ok(ended)
    }

    /// Ends a job in the store; `None` where it has ended already, or its runner was heard of since `beat`. `result_bytes` are those of its
    /// result in the store.
    pub(crate) async fn end(
        &self,
        mut job: Job,
        state: JobState,
        error: Option<String>,
        beat: Option<u64>,
        result_bytes: u64,
    ) -> Result<Option<Job>, ReplayError> {
        (job.state, job.error, job.ended_millis) = (state, error, Some(clock::now_millis()));
        let end = ReplayEnd { id: job.id.clone(), beat, json: json(&job)?, result_bytes };
        let limits = self.limits();
        let keep = KeptReplays { replays: limits.ended as u64, bytes: limits.results_bytes };
        Ok(self.store().replay_end(end, keep).await?.then_some(job))
    }

    pub(crate) fn folder(&self) -> Result<&Path, ReplayError> {
        self.inner.folder.as_deref().map_err(|why| {
            let folder = self.inner.settings.folder.display();
            ReplayError::Unavailable(format!(
                "the folder {folder} cannot be used: {why}; mend it and start the control plane again"
            ))
        })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.inner.store.as_ref()
    }

    pub(crate) fn runner(&self) -> &str {
        &self.inner.runner
    }

    pub(crate) fn added(&self) -> &Notify {
        &self.inner.added
    }

    /// Whether this is asked for the first time about a row.
    pub(crate) fn is_first_time(&self, id: &str) -> bool {
        self.inner.unread.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Replays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replays").field("folder", &self.inner.folder).finish_non_exhaustive()
    }
}

fn busy(unfinished: u32) -> ReplayError {
    ReplayError::Busy(format!(
        "a replay runs and {} wait at this control plane, as many as may; try again when one has ended, or cancel one",
        unfinished.saturating_sub(1)
    ))
}

fn stopping() -> ReplayError {
    ReplayError::Busy(
        "this control plane is being stopped; start the replay again when it is back, or at another one".to_owned(),
    )
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, ReplayError> {
    serde_json::to_string(value).map_err(|error| io("write JSON")(error.into()))
}

/// Opens the folder: its whole path, which programs with another working directory know as well.
fn open(folder: &Path) -> Result<PathBuf, String> {
    let opened = || {
        folder::make(folder)?;
        let folder = folder.canonicalize()?;
        // Snapshots have secrets: those of a process that was killed go first.
        folder::make_empty(&folder.join("jobs"))?;
        folder::make_empty(&folder.join("incoming"))?;
        Ok(folder)
    };
    opened().map_err(|error: std::io::Error| error.to_string())
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::File::options();
    options.write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}
