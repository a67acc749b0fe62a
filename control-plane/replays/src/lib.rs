//! Replays of recorded traffic: the recordings in the store, and jobs that compare two snapshots on one of them.
//!
//! Each control plane that shares the store has all recordings, jobs and results. A job runs at the one that took it: its snapshots have
//! secrets and stay there. The others see how it is, may cancel it, and say that it has failed once its control plane is gone (`watch`).
//!
//! Recordings are hostile, and a replay costs a processor and memory: both are read by the program `palisade-replay`, as a child with
//! limits (see `child`) that ends with its parent. What is stored is what that program has written, so the beginning of a recording is read
//! here ([`Replays::beginning`]), within limits of its own. [`Replays`] is the way to all of it.

mod beginning;
mod child;
mod contents;
mod error;
mod folder;
mod job;
mod keep;
mod names;
mod older;
mod queue;
mod recording;
mod replays;
mod rows;
mod settings;
mod upload;
mod watch;
mod work;

#[cfg(test)]
mod tests;

pub use beginning::MAX_ENTRIES;
pub use error::ReplayError;
pub use job::{Job, JobState, NewJob, Progress, RouteNames};
pub use recording::{Recording, Source};
pub use replays::Replays;
pub use settings::{Limits, PROGRAM, Settings};
pub use upload::Upload;
