//! A replay: two snapshots compared on one recording.

use serde::{Deserialize, Serialize};

/// What is to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The id of the recording.
    pub recording: String,
    /// The operator who starts it.
    pub by: String,
    /// What is changed, for people: `collection/id` each.
    pub changes: Vec<String>,
    /// The group of gateways.
    pub group: String,
    /// The route of requests whose recording names none; without it the only one, if both policies have the same only one, else
    /// the global chain.
    pub route: Option<RouteNames>,
    /// The snapshot of the policy in force.
    pub before: Vec<u8>,
    /// The snapshot of the changed policy.
    pub after: Vec<u8>,
}

/// The name of a route in two snapshots, which a change may have made, taken away or renamed. Empty where it is not: the global
/// chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteNames {
    /// In the policy in force.
    pub before: String,
    /// In the changed policy.
    pub after: String,
}

/// A replay, as it is. Kept as JSON in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The id of the recording.
    pub recording: String,
    /// The name of the recording.
    pub recording_name: String,
    /// The operator who has started it.
    pub by: String,
    /// What is changed: `collection/id` each.
    pub changes: Vec<String>,
    /// The group of gateways.
    pub group: String,
    /// The route of requests whose recording names none, by its name in the changed policy, or in the one in force where that has
    /// none; empty for none.
    pub route: String,
    /// Its names in both.
    #[serde(default)]
    pub route_names: Option<RouteNames>,
    /// How far it is.
    pub state: JobState,
    /// When it was added, in milliseconds since 1970.
    pub added_millis: u64,
    /// When it began to run.
    pub began_millis: Option<u64>,
    /// When it ended.
    pub ended_millis: Option<u64>,
    /// How much of it is done; of the last one that was told.
    pub progress: Progress,
    /// Why it has failed.
    pub error: Option<String>,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits for the one that runs.
    Waiting,
    /// It runs.
    Running,
    /// It has a result.
    Done,
    /// It has none.
    Failed,
    /// An operator has ended it.
    Cancelled,
}

/// How much of a replay is done. The recording is run twice: before and after the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which of the runs this is, from 1; 0 before the first.
    pub part: u64,
    /// How many runs there are.
    pub parts: u64,
    /// Requests of this run.
    pub requests: u64,
    /// Bytes of the recording that this run has read.
    pub bytes_read: u64,
    /// Bytes of the recording.
    pub bytes: u64,
}

impl RouteNames {
    /// One name, for people.
    pub(crate) fn shown(&self) -> &str {
        if self.after.is_empty() { &self.before } else { &self.after }
    }
}

impl JobState {
    /// Whether it is over.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, JobState::Done | JobState::Failed | JobState::Cancelled)
    }
}
