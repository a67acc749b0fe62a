//! What a control plane does about jobs and uploads of others that are gone.
//!
//! A job has a beat that its control plane moves on. The one that leads ends a job whose beat has not moved for [`Patience::silent`] by the
//! leader's own stopwatch: no clocks are compared.

use std::collections::HashMap;
use std::time::Duration;

use base::clock::Stopwatch;

use crate::job::JobState;
use crate::{ReplayError, Replays, contents};

/// How often the one that leads looks.
const LOOK: Duration = Duration::from_secs(5);
/// How many looks there are from one sweep of contents to the next.
const SWEEP: u32 = 60;

/// How long a control plane may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// About a job.
    pub(crate) silent: Duration,
    /// About a recording that was begun: how many times as long as its contents may take ([`contents::time_of`]).
    pub(crate) unlisted: u32,
}

const PATIENCE: Patience = Patience { silent: Duration::from_secs(30), unlisted: 2 };

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
        loop {
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
            } else if since.seconds() >= patience.silent.as_secs_f64() {
                let why = "its control plane has stopped, or does not reach the store; start it again";
                self.end(self.read(&row), JobState::Failed, Some(why.to_owned()), Some(row.beat), 0).await?;
            }
        }
        let begun = store.recordings_begun().await?;
        seen.begun.retain(|id, _| begun.iter().any(|row| row.id == *id));
        for row in begun {
            let since = seen.begun.entry(row.id.clone()).or_insert_with(Stopwatch::start);
            let most = contents::time_of(row.bytes) * patience.unlisted;
            if since.seconds() >= most.as_secs_f64() {
                store.recording_abandon(&row.id).await?;
            }
        }
        if sweep {
            store.contents_sweep().await?;
        }
        Ok(())
    }

    /// Ends all jobs, gives up all recordings that are not listed, and removes what is left of them.
    pub(crate) async fn end_all(&self) -> Result<(), ReplayError> {
        let none = Patience { silent: Duration::ZERO, unlisted: 0 };
        self.look(&mut Seen::default(), none, true).await
    }
}
