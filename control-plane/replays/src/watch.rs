//! What a control plane does about jobs and uploads of others that are gone, and about recordings of older releases.
//!
//! A job has a beat that its control plane moves on. The one that leads ends a job whose beat has not moved for [`Patience::silent`] by the
//! leader's own stopwatch: no clocks are compared.

use std::collections::HashMap;
use std::time::Duration;

use base::clock::Stopwatch;

use crate::job::JobState;
use crate::older::OlderRecordings;
use crate::{ReplayError, Replays};

/// How often the one that leads looks.
const LOOK: Duration = Duration::from_secs(5);
/// How many looks there are from one sweep of contents to the next.
const SWEEP: u32 = 60;

/// How long a control plane may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// About a job.
    pub(crate) silent: Duration,
    /// About a recording that was begun: longer than its contents may take.
    pub(crate) unlisted: Duration,
}

const PATIENCE: Patience = Patience { silent: Duration::from_secs(30), unlisted: Duration::from_secs(600) };

/// What was seen of others, and since when it is so.
#[derive(Default)]
pub(crate) struct Seen {
    /// Beats of jobs.
    jobs: HashMap<String, (u64, Stopwatch)>,
    /// Recordings that are not listed.
    begun: HashMap<String, Stopwatch>,
}

impl Replays {
    pub(crate) async fn watch(self) {
        let (leads, mut seen, mut looks) = (self.store().leads(), Seen::default(), 0_u32);
        // Why recordings of an older release are not in the store yet; `None` once they are.
        let mut wanting = Some(String::new());
        loop {
            if let Some(before) = &wanting {
                let why = self.take_over().await.err().map(|error| error.to_string());
                if let Some(why) = why.as_ref().filter(|why| *why != before) {
                    tracing::warn!(why, "recordings of an older release cannot be moved to the store yet");
                }
                wanting = why;
            }
            let leading = *leads.borrow();
            if !leading {
                seen = Seen::default();
            } else if let Err(error) = self.look(&mut seen, PATIENCE, looks.is_multiple_of(SWEEP)).await {
                // Nor could others say that they are there.
                seen = Seen::default();
                tracing::debug!(%error, "replays of others cannot be watched");
            } else {
                looks = looks.wrapping_add(1);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends jobs and gives up recordings whose control plane is gone.
    pub(crate) async fn look(&self, seen: &mut Seen, patience: Patience, sweep: bool) -> Result<(), ReplayError> {
        let store = self.store();
        let unfinished: Vec<_> = store.replays().await?.into_iter().filter(|row| !row.has_ended).collect();
        seen.jobs.retain(|id, _| unfinished.iter().any(|row| row.id == *id));
        for row in unfinished {
            let (beat, since) = seen.jobs.entry(row.id.clone()).or_insert_with(|| (row.beat, Stopwatch::start()));
            if *beat != row.beat {
                (*beat, *since) = (row.beat, Stopwatch::start());
            } else if since.seconds() >= patience.silent.as_secs_f64()
                && let Some(job) = self.read(&row)
            {
                let why = "its control plane has stopped, or does not reach the store; start it again";
                self.end(job, JobState::Failed, Some(why.to_owned()), Some(row.beat), 0).await?;
            }
        }
        let begun = store.recordings_begun().await?;
        seen.begun.retain(|id, _| begun.contains(id));
        for id in begun {
            let since = seen.begun.entry(id.clone()).or_insert_with(Stopwatch::start);
            if since.seconds() >= patience.unlisted.as_secs_f64() {
                store.recording_abandon(&id).await?;
            }
        }
        if sweep {
            store.contents_sweep().await?;
        }
        Ok(())
    }

    /// Ends all jobs, gives up all recordings that are not listed, and removes what is left of them.
    pub(crate) async fn end_all(&self) -> Result<(), ReplayError> {
        let none = Patience { silent: Duration::ZERO, unlisted: Duration::ZERO };
        self.look(&mut Seen::default(), none, true).await
    }

    /// Moves the recordings that an older release has kept on the disk to the store. Those that there is no room for stay where they are.
    async fn take_over(&self) -> Result<(), ReplayError> {
        let Ok(folder) = self.folder() else { return Ok(()) };
        let older = OlderRecordings::within(folder.join("recordings"));
        let found = older.load().map_err(|error| ReplayError::Io("read earlier recordings".to_owned(), error))?;
        for mut recording in found {
            let file = older.data(&recording.id);
            let length = std::fs::metadata(&file).map(|data| data.len());
            recording.bytes = length.map_err(|error| ReplayError::Io("read a recording".to_owned(), error))?;
            match self.keep(&recording, &file).await {
                Ok(()) => {
                    tracing::info!(recording = %recording.id, name = %recording.name, "moved a recording to the store");
                    older.remove(&recording.id);
                }
                Err(ReplayError::Full(why)) => tracing::warn!(
                    file = %file.display(), name = %recording.name,
                    "a recording of an older release stays on the disk until the next start: {why}"
                ),
                Err(error) => return Err(error),
            }
        }
        older.close();
        Ok(())
    }
}
