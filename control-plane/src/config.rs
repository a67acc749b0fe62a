//! The settings of `palisade serve`. Each is an option of the command line and, as `PALISADE_…`, of the environment.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use ipnet::IpNet;

use events::{DEFAULT_DATA_STREAM, Elasticsearch, Exporter, Rotation, ServerError, ServerOptions, Syslog, Webhook};
use listen::ListenOptions;
use telemetry::LogFormat;

/// How long requests that are under way may take once the control plane was told to stop.
pub const DRAIN: Duration = Duration::from_secs(10);

/// How long a bulk request may take.
const ELASTICSEARCH_TIMEOUT: Duration = Duration::from_secs(30);

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

    /// Private networks that addresses in entities (channels of alerts, vendors of challenges, ...) may use: CIDRs or
    /// addresses, separated by commas or given several times.
    #[arg(long, env = "PALISADE_OUTBOUND_ALLOW", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub outbound_allow: Vec<IpNet>,

    /// A file that is written once all ports listen: JSON with `rest`, `xds` (address and port) and `pid`.
    #[arg(long, env = "PALISADE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

/// Where events go.
#[derive(Clone, clap::Args)]
pub struct EventsConfig {
    /// Every event is appended to this file, one line of JSON each; other programs may rotate the file.
    #[arg(long, env = "PALISADE_EVENTS_FILE", value_name = "FILE")]
    pub events_file: Option<PathBuf>,

    /// The size from which the file of events is rotated to FILE.1, FILE.2 and so on. Not rotated by default: nothing is
    /// deleted without an instruction.
    #[arg(long, env = "PALISADE_EVENTS_FILE_MAX_MIB", value_name = "MIB", requires = "events_file",
          value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub events_file_max_mib: Option<u32>,

    /// How many rotated files of events are kept.
    #[arg(long, env = "PALISADE_EVENTS_FILE_KEEP", value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub events_file_keep: u32,

    /// Every event is written to standard output, one line of JSON each.
    #[arg(long, env = "PALISADE_EVENTS_STDOUT")]
    pub events_stdout: bool,

    /// Every event is sent to this URL by POST, in batches of JSON lines. It may be on a private network.
    #[arg(long, env = "PALISADE_EVENTS_WEBHOOK", value_name = "URL", hide_env_values = true)]
    pub events_webhook: Option<Uri>,

    /// A file with a header on each line (`Authorization: Bearer …`) for the requests of the webhook; put secrets here and
    /// not on the command line. Read again for each request.
    #[arg(long, env = "PALISADE_EVENTS_WEBHOOK_HEADERS_FILE", value_name = "FILE", requires = "events_webhook")]
    pub events_webhook_headers_file: Option<PathBuf>,

    /// A file with the certificate authorities (PEM) that are trusted for the webhook, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_WEBHOOK_CA_FILE", value_name = "FILE", requires = "events_webhook")]
    pub events_webhook_ca_file: Option<PathBuf>,

    /// The timeout of a request of the webhook, in seconds.
    #[arg(long, env = "PALISADE_EVENTS_WEBHOOK_TIMEOUT", value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=300))]
    pub events_webhook_timeout: u64,

    /// Every event is created in Elasticsearch or OpenSearch at this URL (`https://HOST:9200`), by its bulk API. It may be on a private
    /// network. `palisade events-template` prints a template for the index.
    #[arg(long, env = "PALISADE_EVENTS_ELASTICSEARCH", value_name = "URL", hide_env_values = true)]
    pub events_elasticsearch: Option<Uri>,

    /// The data stream, or the index, that events are created in.
    #[arg(long, env = "PALISADE_EVENTS_ELASTICSEARCH_DATA_STREAM", value_name = "NAME", default_value = DEFAULT_DATA_STREAM)]
    pub events_elasticsearch_data_stream: String,

    /// A file with a header on each line (`Authorization: ApiKey …`) for Elasticsearch. Read again for each request.
    #[arg(
        long,
        env = "PALISADE_EVENTS_ELASTICSEARCH_HEADERS_FILE",
        value_name = "FILE",
        requires = "events_elasticsearch"
    )]
    pub events_elasticsearch_headers_file: Option<PathBuf>,

    /// A file with the certificate authorities (PEM) that are trusted for Elasticsearch, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_ELASTICSEARCH_CA_FILE", value_name = "FILE", requires = "events_elasticsearch")]
    pub events_elasticsearch_ca_file: Option<PathBuf>,

    /// Every event is sent to this syslog server: `tcp://HOST:601`, `tls://HOST:6514` or `udp://HOST:514`.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG", value_name = "URL")]
    pub events_syslog: Option<Uri>,

    /// The facility of syslog messages.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG_FACILITY", value_name = "NAME", default_value = "local0")]
    pub events_syslog_facility: String,

    /// A file with the certificate authorities (PEM) that are trusted for the syslog server, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG_CA_FILE", value_name = "FILE", requires = "events_syslog")]
    pub events_syslog_ca_file: Option<PathBuf>,
}

impl EventsConfig {
    /// The exporters that are asked for.
    ///
    /// # Errors
    ///
    /// A server cannot be used.
    pub fn exporters(&self) -> Result<Vec<Exporter>, ServerError> {
        let mut exporters = Vec::new();
        if let Some(file) = self.events_file.clone() {
            exporters.push(match self.events_file_max_mib {
                Some(mib) => {
                    let rotation = Rotation { max_bytes: u64::from(mib) << 20, keep: self.events_file_keep };
                    Exporter::RotatedFile(file, rotation)
                }
                None => Exporter::File(file),
            });
        }
        exporters.extend(self.events_stdout.then_some(Exporter::Stdout));
        if let Some(url) = self.events_webhook.clone() {
            let webhook = Webhook::new(ServerOptions {
                url,
                headers_file: self.events_webhook_headers_file.clone(),
                ca_file: self.events_webhook_ca_file.clone(),
                timeout: Duration::from_secs(self.events_webhook_timeout),
            })?;
            exporters.push(Exporter::Webhook(Box::new(webhook)));
        }
        if let Some(url) = self.events_elasticsearch.clone() {
            let options = ServerOptions {
                url,
                headers_file: self.events_elasticsearch_headers_file.clone(),
                ca_file: self.events_elasticsearch_ca_file.clone(),
                timeout: ELASTICSEARCH_TIMEOUT,
            };
            let cluster = Elasticsearch::new(options, &self.events_elasticsearch_data_stream)?;
            exporters.push(Exporter::Elasticsearch(Box::new(cluster)));
        }
        if let Some(url) = &self.events_syslog {
            let server = Syslog::new(url, &self.events_syslog_facility, self.events_syslog_ca_file.as_deref())?;
            exporters.push(Exporter::Syslog(Box::new(server)));
        }
        Ok(exporters)
    }
}

impl fmt::Debug for EventsConfig {
    /// Without URLs, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsConfig")
            .field("events_file", &self.events_file)
            .field("events_file_max_mib", &self.events_file_max_mib)
            .field("events_file_keep", &self.events_file_keep)
            .field("events_stdout", &self.events_stdout)
            .field("events_webhook", &self.events_webhook.as_ref().map(|_| "…"))
            .field("events_elasticsearch", &self.events_elasticsearch.as_ref().map(|_| "…"))
            .field("events_syslog", &self.events_syslog.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
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
