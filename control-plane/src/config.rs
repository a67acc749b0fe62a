//! The settings of `palisade serve`. Each is an option of the command line and, as `PALISADE_…`, of the environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::listen::ListenOptions;
use crate::telemetry::LogFormat;

/// How long requests that are under way may take once the control plane was told to stop.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The settings of `palisade serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeConfig {
    /// The directory of the store; made when it does not exist.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    pub data: PathBuf,

    /// Where the admin API listens; port 0 takes a free one. Without --tls-cert it speaks plain HTTP:
    /// keep it on loopback or put TLS in front.
    #[arg(long, env = "PALISADE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8900")]
    pub listen: SocketAddr,

    /// Where gateways reach xDS and the node link; port 0 takes a free one.
    #[arg(long, env = "PALISADE_XDS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:18000")]
    pub xds_listen: SocketAddr,

    /// TLS, and who may connect.
    #[command(flatten)]
    pub tls: ListenOptions,

    /// The segment after `/apis/` under which the entity collections are.
    #[arg(long, env = "PALISADE_ENTITY_GROUP", value_name = "NAME", default_value = "palisade.svc", value_parser = entity_group)]
    pub entity_group: String,

    /// How log lines are written, on standard error; RUST_LOG says what is logged.
    #[arg(long, env = "PALISADE_LOG_FORMAT", value_enum, default_value = "pretty")]
    pub log_format: LogFormat,

    /// The bytes of a request body of the admin API, at most.
    #[arg(long, env = "PALISADE_MAX_BODY_BYTES", value_name = "BYTES", default_value_t = 8 * 1024 * 1024)]
    pub max_body_bytes: usize,

    /// The size the store's file may grow to, in MiB; writes past it are answered with 507. Unlimited where not given.
    #[arg(long, env = "PALISADE_MAX_STORE_MIB", value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub max_store_mib: Option<u32>,

    /// The folder of the .wasm modules, as the gateways see it.
    #[arg(long, env = "PALISADE_FILTERS_DIR", value_name = "DIR", default_value = "target/filters")]
    pub filters_dir: PathBuf,

    /// Every event is appended to this file, one line of JSON each; the file may be rotated away.
    #[arg(long, env = "PALISADE_EVENTS_FILE", value_name = "FILE")]
    pub events_file: Option<PathBuf>,

    /// Every event is written to standard output, one line of JSON each.
    #[arg(long, env = "PALISADE_EVENTS_STDOUT")]
    pub events_stdout: bool,

    /// Written once everything listens: JSON with `rest`, `xds` (address and port) and `pid`.
    #[arg(long, env = "PALISADE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

fn entity_group(name: &str) -> Result<String, String> {
    let sane = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if sane { Ok(name.to_owned()) } else { Err("one path segment of A-Z a-z 0-9 . _ - is expected".to_owned()) }
}
