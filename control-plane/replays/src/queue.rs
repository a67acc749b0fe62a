//! The jobs that this control plane works on: those that wait, and the one that runs.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::folder::Temporary;
use crate::job::{Job, JobState, Progress};

/// A job with its folder.
pub(crate) struct Entry {
    pub(crate) job: Job,
    /// Its snapshots, and what it works with; none any more where it has ended.
    pub(crate) folder: Option<Temporary>,
    /// Told where it is to end.
    pub(crate) cancel: Arc<Notify>,
}

/// What works on a job needs.
pub(crate) struct Begun {
    pub(crate) job: Job,
    pub(crate) folder: PathBuf,
    pub(crate) cancel: Arc<Notify>,
}

/// The jobs of this control plane that have not ended, oldest first.
#[derive(Default)]
pub(crate) struct Queue {
    entries: Vec<Entry>,
    /// The control plane is being stopped: what is added would never run.
    closed: bool,
}

impl Queue {
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.entries.iter().map(|entry| &entry.job)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Job> {
        self.jobs().find(|job| job.id == id)
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.job.id == id)
    }

    /// Adds a job; it comes back where none is taken any more.
    pub(crate) fn add(&mut self, entry: Entry) -> Option<Entry> {
        if self.closed {
            return Some(entry);
        }
        self.entries.push(entry);
        None
    }

    /// Whether no job is taken any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Begins the first one that waits.
    pub(crate) fn begin_next(&mut self, now_millis: u64) -> Option<Begun> {
        let entry = self.entries.iter_mut().find(|entry| entry.job.state == JobState::Waiting)?;
        entry.job.state = JobState::Running;
        entry.job.began_millis = Some(now_millis);
        let folder = entry.folder.as_ref()?.0.clone();
        Some(Begun { job: entry.job.clone(), folder, cancel: Arc::clone(&entry.cancel) })
    }

    pub(crate) fn progress(&mut self, id: &str, progress: Progress) {
        if let Some(entry) = self.get_mut(id) {
            entry.job.progress = progress;
        }
    }

    /// Takes the folder of a job that has done its work; dropping it removes it.
    pub(crate) fn take_folder(&mut self, id: &str) -> Option<Temporary> {
        self.get_mut(id)?.folder.take()
    }

    /// Takes a job out.
    pub(crate) fn take(&mut self, id: &str) -> Option<Entry> {
        let place = self.jobs().position(|job| job.id == id)?;
        Some(self.entries.remove(place))
    }

    /// Ends a job that has ended in the store: one that waits comes back, and the one that runs is told.
    pub(crate) fn stop(&mut self, id: &str) -> Option<Entry> {
        let entry = self.get_mut(id)?;
        if entry.job.state == JobState::Waiting {
            return self.take(id);
        }
        entry.cancel.notify_one();
        None
    }

    /// All of them; none is left, and none is taken any more.
    pub(crate) fn take_all(&mut self) -> Vec<Entry> {
        self.closed = true;
        std::mem::take(&mut self.entries)
    }
}
