//! Logs on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    #[default]
    Pretty,
}

/// Starts to log on standard error. `RUST_LOG` says what, `info` where it is not set. A second call does nothing.
pub fn init_logs(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only the first call of a process can install its logs; tests of one process make several.
    let _ = match format {
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
        LogFormat::Pretty => logs.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
}
