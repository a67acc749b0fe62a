//! The settings of `palisade serve`. Each is an option of the command line and, as `PALISADE_…`, of the environment.

mod events;
mod login;
mod replay;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

pub use self::events::{Compression, EventsConfig, Format, Sasl};
pub use self::login::LoginConfig;
pub use self::replay::ReplayConfig;
use listen::ListenOptions;
use telemetry::LogFormat;

/// How long requests that are under way may take once the control plane was told to stop.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The settings of `palisade serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeConfig {
    /// The directory of the store; created if it does not exist.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    pub data: PathBuf,

    /// A Redis or Valkey that several control planes share, instead of a file in --data: `redis://[user:password@]host[:port]`,
    /// `rediss://`, `redis+sentinel://host,host/name`, `redis+cluster://host,host`, with `?prefix=`, `ca_file=`, `password_file=`,
    /// `timeout_millis=` as needed. What other users of the machine may not see belongs in the variable or in a password_file.
    #[arg(long, env = "PALISADE_STORE", hide_env_values = true, value_name = "URL")]
    pub store: Option<String>,

    /// The first admin key of a store that has none: a file `{"id": "...", "secret": "..."}` with a secret of 32 characters or more.
    /// Without it a key is made, shown once on standard error, and written to admin-key.json in --data.
    #[arg(long, env = "PALISADE_FIRST_ADMIN_KEY_FILE", value_name = "FILE")]
    pub first_admin_key_file: Option<PathBuf>,

    /// The address of the admin API; port 0 takes a free one. Without --tls-cert it speaks plain HTTP:
    /// keep it on loopback or put TLS in front.
    #[arg(long, env = "PALISADE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8900")]
    pub listen: SocketAddr,

    /// The host names of the admin API, separated by commas, without ports; others get 421, except for /healthz, /readyz
    /// and /metrics. By default all.
    #[arg(long, env = "PALISADE_ADMIN_HOST", value_name = "NAME", value_delimiter = ',', value_parser = admin_host)]
    pub admin_host: Vec<String>,

    /// How operators log in.
    #[command(flatten)]
    pub login: LoginConfig,

    /// The address of xDS and the node link for gateways; port 0 takes a free one.
    #[arg(long, env = "PALISADE_XDS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:18000")]
    pub xds_listen: SocketAddr,

    /// TLS, and who may connect.
    #[command(flatten)]
    pub tls: ListenOptions,

    /// The segment after `/apis/` in the paths of the entity collections.
    #[arg(long, env = "PALISADE_ENTITY_GROUP", value_name = "NAME", default_value = "palisade.svc", value_parser = entity_group)]
    pub entity_group: String,

    /// The format of log lines on standard error; RUST_LOG sets the levels.
    #[arg(long, env = "PALISADE_LOG_FORMAT", value_enum, default_value = "pretty")]
    pub log_format: LogFormat,

    /// The maximum size of a request body of the admin API, in bytes.
    #[arg(long, env = "PALISADE_MAX_BODY_BYTES", value_name = "BYTES", default_value_t = 8 * 1024 * 1024)]
    pub max_body_bytes: usize,

    /// The maximum size of the store's file, in MiB; further writes are answered with 507. Unlimited by default.
    #[arg(long, env = "PALISADE_MAX_STORE_MIB", value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub max_store_mib: Option<u32>,

    /// The folder of the .wasm modules, as the gateways see it.
    #[arg(long, env = "PALISADE_FILTERS_DIR", value_name = "DIR", default_value = "target/filters")]
    pub filters_dir: PathBuf,

    /// Where events go.
    #[command(flatten)]
    pub events: EventsConfig,

    /// Replays of recorded traffic in the console.
    #[command(flatten)]
    pub replay: ReplayConfig,

    /// Private networks that addresses in entities (channels of alerts, vendors of challenges, ...) may use: CIDRs or
    /// addresses, separated by commas or given several times.
    #[arg(long, env = "PALISADE_OUTBOUND_ALLOW", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub outbound_allow: Vec<IpNet>,

    /// A file that is written once all ports listen: JSON with `rest`, `xds` (address and port) and `pid`.
    #[arg(long, env = "PALISADE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

fn admin_host(name: &str) -> Result<String, String> {
    let sane = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte));
    if sane { Ok(name.to_owned()) } else { Err("the name or the address of a host is expected".to_owned()) }
}

fn entity_group(name: &str) -> Result<String, String> {
    let sane = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if sane { Ok(name.to_owned()) } else { Err("one path segment of A-Z a-z 0-9 . _ - is expected".to_owned()) }
}

fn network(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    net.map(|net| net.trunc()).map_err(|_| "a CIDR such as 10.0.0.0/8 is expected, or an address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_a_cidr_or_an_address() {
        let shown = |text: &str| network(text).map(|net| net.to_string());
        assert_eq!(shown("10.1.2.3/8").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!((shown("10.0.0.5").as_deref(), shown("fd00::1").as_deref()), (Ok("10.0.0.5/32"), Ok("fd00::1/128")));
        for wrong in ["", "10.0.0.0/33", "localhost", "10.0.0.0/8,127.0.0.1"] {
            assert!(network(wrong).unwrap_err().contains("10.0.0.0/8 is expected"), "{wrong}");
        }
    }
}
