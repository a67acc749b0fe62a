//! Replays of recorded traffic: the program, and how much there may be.

use std::path::{Path, PathBuf};

use replays::{Limits, Settings};

/// The bytes of all recordings on a shared store, by default: its memory holds the configuration and the bans as well.
const SHARED_TOTAL_BYTES: u64 = 256 << 20;

/// The folder of recordings and replays, in `--data`.
const FOLDER: &str = "replay";

/// The settings of replays.
#[derive(Clone, Debug, clap::Args)]
pub struct ReplayConfig {
    /// The program that replays recorded traffic for the console. By default the `palisade-replay` beside this program; without one,
    /// there are no replays.
    #[arg(long, env = "PALISADE_REPLAY_PROGRAM", value_name = "FILE")]
    pub replay_program: Option<PathBuf>,

    /// The maximum size of an uploaded recording, in MiB.
    #[arg(long, env = "PALISADE_REPLAY_MAX_UPLOAD_MIB", value_name = "MIB", default_value_t = Limits::default().upload_bytes >> 20, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub replay_max_upload_mib: u64,

    /// The maximum size of all recordings that are kept, in MiB: by default 1024, and 256 with a shared store (`--store`), whose memory they
    /// take.
    #[arg(long, env = "PALISADE_REPLAY_MAX_TOTAL_MIB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub replay_max_total_mib: Option<u64>,

    /// The maximum number of recordings that are kept; with a shared store, of all control planes.
    #[arg(long, env = "PALISADE_REPLAY_MAX_RECORDINGS", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub replay_max_recordings: u16,

    /// The maximum memory of a replay, in MiB of address space.
    #[arg(long, env = "PALISADE_REPLAY_MAX_MEMORY_MIB", value_name = "MIB", default_value_t = Limits::default().memory_mib, value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    pub replay_max_memory_mib: u64,

    /// The maximum processor time of a replay, in seconds.
    #[arg(long, env = "PALISADE_REPLAY_MAX_SECONDS", value_name = "SECONDS", default_value_t = Limits::default().cpu_seconds, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub replay_max_seconds: u64,
}

impl ReplayConfig {
    /// The settings for a control plane with this folder. `is_shared`: its store is a server.
    #[must_use]
    pub fn settings(&self, data: &Path, is_shared: bool) -> Settings {
        let by_default = if is_shared { SHARED_TOTAL_BYTES } else { Limits::default().total_bytes };
        let limits = Limits {
            upload_bytes: self.replay_max_upload_mib << 20,
            recording_bytes: Limits::default().recording_bytes.max(self.replay_max_upload_mib << 20),
            total_bytes: self.replay_max_total_mib.map_or(by_default, |mib| mib << 20),
            recordings: usize::from(self.replay_max_recordings),
            memory_mib: self.replay_max_memory_mib,
            cpu_seconds: self.replay_max_seconds,
            ..Limits::default()
        };
        Settings { folder: data.join(FOLDER), program: self.replay_program.clone(), limits }
    }
}
