//! Where a control plane works on recordings, which program replays, and how much of everything there may be.

use std::path::PathBuf;
use std::time::Duration;

use crate::ReplayError;

/// The program's name.
pub const PROGRAM: &str = "palisade-replay";

/// The settings of [`Replays`](crate::Replays).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of uploads and jobs that are under way; made if it does not exist.
    pub folder: PathBuf,
    /// The program; `None` for the one beside the running executable.
    pub program: Option<PathBuf>,
    /// The limits.
    pub limits: Limits,
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an upload. Default 64 MiB.
    pub upload_bytes: u64,
    /// Bytes of a kept recording, compressed. Default 256 MiB.
    pub recording_bytes: u64,
    /// Bytes of all kept recordings, of all control planes that share the store. Default 1 GiB.
    pub total_bytes: u64,
    /// Kept recordings, of all control planes that share the store. Default 20.
    pub recordings: usize,
    /// Replays that wait at a control plane while one runs. Default 4.
    pub waiting: usize,
    /// Replays that have ended and are kept with their results. Default 20.
    pub ended: usize,
    /// Bytes of the results that are kept, compressed; of more, the oldest go. Default 64 MiB.
    pub results_bytes: u64,
    /// Address space of the program, in MiB. Default 2048.
    pub memory_mib: u64,
    /// Processor time of a replay, in seconds. Default 600.
    pub cpu_seconds: u64,
    /// Processor time for reading an upload, in seconds. Default 60.
    pub read_cpu_seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            upload_bytes: 64 << 20,
            recording_bytes: 256 << 20,
            total_bytes: 1 << 30,
            recordings: 20,
            waiting: 4,
            ended: 20,
            results_bytes: 64 << 20,
            memory_mib: 2048,
            cpu_seconds: 600,
            read_cpu_seconds: 60,
        }
    }
}

impl Limits {
    /// How long a run with this processor time may take on the wall's clock: it gives way to others.
    pub(crate) fn patience(cpu_seconds: u64) -> Duration {
        Duration::from_secs(cpu_seconds.saturating_mul(3))
    }
}

impl Settings {
    /// The program.
    ///
    /// # Errors
    /// Where it is missing, and what to do.
    pub fn find_program(&self) -> Result<PathBuf, ReplayError> {
        if let Some(named) = &self.program {
            let missing = || {
                ReplayError::Unavailable(format!(
                    "there is no program at {}, which --replay-program (PALISADE_REPLAY_PROGRAM) names; install {PROGRAM} there, or name \
                     the one that is installed",
                    named.display()
                ))
            };
            return Some(named.clone()).filter(|program| program.is_file()).ok_or_else(missing);
        }
        let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(PROGRAM)));
        beside.filter(|program| program.is_file()).ok_or_else(|| {
            ReplayError::Unavailable(format!(
                "the program {PROGRAM} is not beside this one; install it there, or name it with --replay-program \
                 (PALISADE_REPLAY_PROGRAM)"
            ))
        })
    }
}
