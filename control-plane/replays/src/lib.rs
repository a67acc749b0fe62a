//! Replays of recorded traffic: the recordings that a control plane keeps, and jobs that compare two snapshots on one of them.
//!
//! Recordings are hostile, and a replay costs a processor and memory: both are read by the program `palisade-replay`, as a child with
//! limits (see `child`) that ends with its parent. [`Replays`] is the way to all of it.

mod child;
mod error;
mod folder;
mod job;
mod names;
mod queue;
mod recording;
mod replays;
mod settings;
mod shelf;
mod upload;

#[cfg(test)]
mod tests;

pub use error::ReplayError;
pub use job::{Job, JobState, NewJob, Progress};
pub use recording::{Recording, Source};
pub use replays::Replays;
pub use settings::{Limits, PROGRAM, Settings};
pub use upload::Upload;
