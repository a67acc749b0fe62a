//! The jobs of a control plane: those that wait, the one that runs, and those that have ended, with their results.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::folder::Temporary;
use crate::job::{Job, JobState, Progress};
use crate::settings::Limits;

/// A job with its folder.
pub(crate) struct Entry {
    pub(crate) job: Job,
    /// The snapshots until it has ended, then the result.
    pub(crate) folder: Temporary,
    /// Told where it is to end.
    pub(crate) cancel: Arc<Notify>,
}

/// All jobs, oldest first.
#[derive(Default)]
pub(crate) struct Queue {
    entries: Vec<Entry>,
}

impl Queue {
    pub(crate) fn jobs(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.entries.iter().map(|entry| &entry.job)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.job.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.job.id == id)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs().filter(|job| job.state == JobState::Waiting).count()
    }

    /// Whether one runs.
    pub(crate) fn is_running(&self) -> bool {
        self.jobs().any(|job| job.state == JobState::Running)
    }

    /// Whether a job that has not ended needs a recording.
    pub(crate) fn needs(&self, recording: &str) -> bool {
        self.jobs().any(|job| job.recording == recording && !job.state.has_ended())
    }

    pub(crate) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Begins the first one that waits.
    pub(crate) fn begin_next(&mut self, now_millis: u64) -> Option<&Entry> {
        let entry = self.entries.iter_mut().find(|entry| entry.job.state == JobState::Waiting)?;
        entry.job.state = JobState::Running;
        entry.job.began_millis = Some(now_millis);
        Some(entry)
    }

    pub(crate) fn progress(&mut self, id: &str, progress: Progress) {
        if let Some(entry) = self.get_mut(id) {
            entry.job.progress = progress;
        }
    }

    /// Ends a job, and forgets the oldest of those that have ended. Those that are forgotten come back: dropping them removes their files.
    pub(crate) fn end(
        &mut self,
        id: &str,
        state: JobState,
        error: Option<String>,
        now_millis: u64,
        limits: &Limits,
    ) -> Vec<Entry> {
        if let Some(entry) = self.get_mut(id) {
            entry.job.state = state;
            entry.job.error = error;
            entry.job.ended_millis = Some(now_millis);
        }
        let mut surplus = self.jobs().filter(|job| job.state.has_ended()).count().saturating_sub(limits.ended);
        let mut forgotten = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            if surplus > 0 && entry.job.state.has_ended() {
                surplus -= 1;
                forgotten.push(entry);
            } else {
                self.entries.push(entry);
            }
        }
        forgotten
    }
}
