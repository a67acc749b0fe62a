//! What rows of the store say. One whose description cannot be read (another program has written it) is shown all the same, so that it can
//! be removed.

use serde::de::DeserializeOwned;
use store::replays::{RecordingRow, ReplayRow};

use crate::Replays;
use crate::job::{Job, JobState, Progress};
use crate::recording::{Recording, Source};

/// What is in the place of a text that cannot be read.
const UNREAD: &str = "(cannot be read)";

impl Replays {
    /// A recording of the store.
    pub(crate) fn read_recording(&self, row: &RecordingRow) -> Recording {
        self.described(&row.id, &row.json, |recording: &Recording| &recording.id).unwrap_or_else(|| Recording {
            id: row.id.clone(),
            name: UNREAD.to_owned(),
            source: Source::Upload,
            by: String::new(),
            added_millis: row.added_millis,
            bytes: row.bytes,
            requests: 0,
            unreadable: 0,
            reasons: Vec::new(),
            first_millis: None,
            last_millis: None,
            unrouted: 0,
        })
    }

    /// A job of the store; of one that runs here, as it is now.
    pub(crate) fn read(&self, row: &ReplayRow) -> Job {
        if !row.has_ended
            && let Some(job) = self.queue().get(&row.id)
        {
            return job.clone();
        }
        self.described(&row.id, &row.json, |job: &Job| &job.id).unwrap_or_else(|| Job {
            id: row.id.clone(),
            recording: row.recording.clone(),
            recording_name: UNREAD.to_owned(),
            by: String::new(),
            changes: Vec::new(),
            group: String::new(),
            route: String::new(),
            route_names: None,
            state: if row.has_ended { JobState::Failed } else { JobState::Waiting },
            added_millis: 0,
            began_millis: None,
            ended_millis: None,
            progress: Progress::default(),
            error: row.has_ended.then(|| "what was kept of it cannot be read".to_owned()),
        })
    }

    /// The description of a row, which has the id of the row. Once for each row the log says that there is none.
    fn described<T: DeserializeOwned>(&self, id: &str, json: &str, id_of: impl Fn(&T) -> &String) -> Option<T> {
        let why = match serde_json::from_str::<T>(json) {
            Ok(found) if id_of(&found) == id => return Some(found),
            Ok(found) => format!("it has the id {}", id_of(&found).escape_debug()),
            Err(error) => error.to_string(),
        };
        if self.is_first_time(id) {
            let id = id.escape_debug();
            tracing::warn!(%id, why, "what the store has of a recording or a replay cannot be read; delete it in the console");
        }
        None
    }
}
