//! The recordings and jobs in the store, as one control plane has them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::clock;
use store::Store;
use store::replays::{
    KeptReplays, NewReplay, RecordingBegun, RecordingRemoved, RecordingRoom, RecordingRow, ReplayAdded, ReplayEnd,
    ReplayRow,
};
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
/// How long the contents of a recording may take to the store. Well below the time after which another control plane takes it for
/// abandoned ([`watch`](crate::watch)).
const WRITING: Duration = Duration::from_secs(300);
/// How long it may take to say at the end that jobs were not done.
const CLOSING: Duration = Duration::from_secs(3);

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
        ];
        replays.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
        replays
    }

    /// Ends the job that runs and those that wait here, and says so in the store. Recordings and results stay.
    pub async fn close(&self) {
        self.abort().await;
        let ended = self.queue().take_all();
        let saying = async {
            for Entry { job, .. } in &ended {
                let why = "its control plane was stopped before it was done; start it again";
                if let Err(error) = self.end(job.clone(), JobState::Failed, Some(why.to_owned()), None, 0).await {
                    tracing::warn!(%error, job = %job.id, "that a replay was not done could not be stored");
                }
            }
        };
        let _late = tokio::time::timeout(CLOSING, saying).await;
    }

    /// Ends everything that is under way without a word, as a kill does.
    #[cfg(test)]
    pub(crate) async fn kill(&self) {
        self.abort().await;
    }

    async fn abort(&self) {
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
        Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.json).ok()).collect())
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
    /// There is no such recording, too many jobs wait, or the program is missing.
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
            route: new.route,
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
        self.queue().add(Entry { job: job.clone(), folder: Some(folder), cancel: Arc::default() });
        self.inner.added.notify_one();
        Ok(job)
    }

    /// Whether a job on a recording could be added now: asked before what is costly. The recording.
    ///
    /// # Errors
    /// As of [`Replays::start`].
    pub async fn may_start(&self, recording: &str) -> Result<Recording, ReplayError> {
        self.find_program()?;
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
        Ok(rows.iter().rev().filter_map(|row| self.read(row)).collect())
    }

    /// A job, and its result if it has one: the document of the program as it has written it.
    ///
    /// # Errors
    /// There is none with this id, or its result cannot be read.
    pub async fn job(&self, id: &str) -> Result<(Job, Option<String>), ReplayError> {
        let row = self.store().replay(id).await?.ok_or(ReplayError::UnknownJob)?;
        let job = self.read(&row).ok_or(ReplayError::UnknownJob)?;
        let result = match job.state {
            JobState::Done => contents::read_text(self.store(), id, row.result_chunks, MAX_RESULT + 1).await?,
            _ => None,
        };
        Ok((job, result))
    }

    /// Ends a job, wherever it runs.
    ///
    /// # Errors
    /// There is none with this id, or it has ended.
    pub async fn cancel(&self, id: &str) -> Result<Job, ReplayError> {
        let row = self.store().replay(id).await?.ok_or(ReplayError::UnknownJob)?;
        let job = self.read(&row).ok_or(ReplayError::UnknownJob)?;
        if row.has_ended {
            return Err(ReplayError::Ended);
        }
        let ended = self.end(job, JobState::Cancelled, None, None, 0).await?.ok_or(ReplayError::Ended)?;
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
        let end = ReplayEnd {
            id: job.id.clone(),
            beat,
            json: json(&job)?,
            result_bytes,
            result_chunks: contents::chunks(result_bytes),
        };
        let limits = self.limits();
        let keep = KeptReplays { replays: limits.ended as u64, bytes: limits.results_bytes };
        Ok(self.store().replay_end(end, keep).await?.then_some(job))
    }

    /// A job of the store; of one that runs here, as it is now.
    pub(crate) fn read(&self, row: &ReplayRow) -> Option<Job> {
        let here = || self.queue().get(&row.id).cloned();
        let kept = || serde_json::from_str(&row.json).ok();
        if row.has_ended { kept() } else { here().or_else(kept) }
    }

    /// The bytes that a further recording may have.
    pub(crate) async fn room(&self) -> Result<u64, ReplayError> {
        let (rows, limits) = (self.store().recordings().await?, self.limits());
        let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
        if rows.len() >= limits.recordings || bytes >= limits.total_bytes {
            return Err(self.full(rows.len() as u64, bytes));
        }
        Ok(limits.recording_bytes.min(limits.total_bytes - bytes))
    }

    fn full(&self, recordings: u64, bytes: u64) -> ReplayError {
        let limits = self.limits();
        ReplayError::Full(format!(
            "{recordings} recordings with {} MiB are kept, as many as may ({} recordings, {} MiB); delete one",
            bytes.div_ceil(1 << 20),
            limits.recordings,
            limits.total_bytes >> 20
        ))
    }

    /// Keeps a recording: the contents of a file first, then what shows it.
    pub(crate) async fn keep(&self, recording: &Recording, file: &Path) -> Result<(), ReplayError> {
        let (store, limits) = (self.store(), self.limits());
        let row = RecordingRow {
            id: recording.id.clone(),
            added_millis: recording.added_millis,
            bytes: recording.bytes,
            chunks: contents::chunks(recording.bytes),
            json: json(recording)?,
        };
        let room = RecordingRoom { recordings: limits.recordings as u64, bytes: limits.total_bytes };
        match store.recording_begin(row, room).await? {
            RecordingBegun::Begun => {}
            RecordingBegun::Listed => return Ok(()),
            RecordingBegun::Removing => {
                store.contents_sweep().await?;
                return Err(ReplayError::Busy(
                    "an earlier copy of the recording is being removed; try again".to_owned(),
                ));
            }
            RecordingBegun::Full { recordings, bytes } => return Err(self.full(recordings, bytes)),
        }
        let written = tokio::time::timeout(WRITING, contents::write_file(store, &recording.id, file)).await;
        let kept = match written {
            Ok(Ok(())) => match store.recording_publish(&recording.id).await {
                Ok(true) => return Ok(()),
                Ok(false) => Err(too_slow()),
                Err(error) => Err(error.into()),
            },
            Ok(Err(error)) => Err(error),
            Err(_) => Err(too_slow()),
        };
        // What cannot be removed now is removed later (`watch`).
        if let Err(error) = store.recording_abandon(&recording.id).await {
            tracing::warn!(%error, recording = %recording.id, "a recording that was not kept could not be removed yet");
        }
        kept
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

fn too_slow() -> ReplayError {
    let seconds = WRITING.as_secs();
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, format!("it took longer than {seconds} s"));
    ReplayError::Io("write the recording to the store".to_owned(), error)
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
