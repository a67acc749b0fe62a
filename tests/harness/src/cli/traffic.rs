//! Recorded traffic on the command line.

use std::path::PathBuf;
use std::sync::Arc;

use ftw::Stages;
use recording::{Format, Options, Recording};

/// Recorded traffic.
#[derive(Debug, clap::Args)]
pub(super) struct Traffic {
    /// Recorded traffic: files and folders, of any format, compressed or not
    #[arg(id = "traffic", long = "traffic", num_args = 1.., value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The format of all of it; found file by file otherwise (har, tap-json, tap-pb, tap-pb-delimited, http, jsonl)
    #[arg(long, value_name = "FORMAT")]
    traffic_format: Option<Format>,
    /// The client's address where the recording does not tell
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:40000")]
    peer: String,
}

impl Traffic {
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    pub(super) fn open(&self) -> Result<Recording, String> {
        let options = Options {
            format: self.traffic_format,
            peer: self.peer.clone(),
            other: vec![Arc::new(Stages)],
            ..Options::default()
        };
        recording::open(&self.paths, &options).map_err(|error| error.to_string())
    }
}
