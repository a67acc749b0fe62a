//! Where events go.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::Uri;
use events::{
    Elasticsearch, EventFormat, Exporter, Kafka, KafkaLogin, Otlp, OtlpCompression, Rotation, SaslMechanism,
    ServerError, ServerOptions, Spill, Syslog, Webhook,
};
use store::events::EventLimits;

/// How long a bulk request may take.
const ELASTICSEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Where events go.
#[derive(Clone, clap::Args)]
pub struct EventsConfig {
    /// The format of events in all exporters.
    #[arg(long, env = "PALISADE_EVENTS_FORMAT", value_enum, default_value = "ecs")]
    pub events_format: Format,

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

    /// The data stream, or the index, that events are created in: by default `logs-palisade.events-default`, and
    /// `logs-palisade.ocsf-default` with `--events-format ocsf`.
    #[arg(long, env = "PALISADE_EVENTS_ELASTICSEARCH_DATA_STREAM", value_name = "NAME")]
    pub events_elasticsearch_data_stream: Option<String>,

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

    /// Every event is sent to the OpenTelemetry collector, or another server of OTLP over HTTP, at this base URL (`http://HOST:4318`);
    /// `/v1/logs` is appended. It may be on a private network.
    #[arg(long, env = "PALISADE_EVENTS_OTLP", value_name = "URL", hide_env_values = true)]
    pub events_otlp: Option<Uri>,

    /// A file with a header on each line (`Authorization: Bearer …`) for the OTLP server. Read again for each request.
    #[arg(long, env = "PALISADE_EVENTS_OTLP_HEADERS_FILE", value_name = "FILE", requires = "events_otlp")]
    pub events_otlp_headers_file: Option<PathBuf>,

    /// A file with the certificate authorities (PEM) that are trusted for the OTLP server, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_OTLP_CA_FILE", value_name = "FILE", requires = "events_otlp")]
    pub events_otlp_ca_file: Option<PathBuf>,

    /// The compression of requests to the OTLP server.
    #[arg(long, env = "PALISADE_EVENTS_OTLP_COMPRESSION", value_enum, default_value = "gzip")]
    pub events_otlp_compression: Compression,

    /// The timeout of a request to the OTLP server, in seconds.
    #[arg(long, env = "PALISADE_EVENTS_OTLP_TIMEOUT", value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=300))]
    pub events_otlp_timeout: u64,

    /// Every event is sent to this syslog server: `tcp://HOST:601`, `tls://HOST:6514` or `udp://HOST:514`.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG", value_name = "URL")]
    pub events_syslog: Option<Uri>,

    /// The facility of syslog messages.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG_FACILITY", value_name = "NAME", default_value = "local0")]
    pub events_syslog_facility: String,

    /// A file with the certificate authorities (PEM) that are trusted for the syslog server, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_SYSLOG_CA_FILE", value_name = "FILE", requires = "events_syslog")]
    pub events_syslog_ca_file: Option<PathBuf>,

    /// Produce events to this topic of Kafka: `kafka://HOST[:9092][,HOST...]/TOPIC`, or `kafkas://` for TLS.
    #[arg(long, env = "PALISADE_EVENTS_KAFKA", value_name = "URL")]
    pub events_kafka: Option<String>,

    /// The user of the Kafka brokers.
    #[arg(long, env = "PALISADE_EVENTS_KAFKA_USER", value_name = "NAME", requires_all = ["events_kafka", "events_kafka_password_file"])]
    pub events_kafka_user: Option<String>,

    /// The file of the user's password; read for each connection.
    #[arg(long, env = "PALISADE_EVENTS_KAFKA_PASSWORD_FILE", value_name = "FILE", requires = "events_kafka_user")]
    pub events_kafka_password_file: Option<PathBuf>,

    /// How the password is shown to the brokers.
    #[arg(long, env = "PALISADE_EVENTS_KAFKA_SASL", value_enum, default_value = "scram-sha-512")]
    pub events_kafka_sasl: Sasl,

    /// A file with the certificate authorities (PEM) that are trusted for the Kafka brokers, instead of those of the system.
    #[arg(long, env = "PALISADE_EVENTS_KAFKA_CA_FILE", value_name = "FILE", requires = "events_kafka")]
    pub events_kafka_ca_file: Option<PathBuf>,

    /// Keep up to so many MiB of events on disk for each exporter over the network, in `events` of --data: those that have no room in
    /// memory, and those that wait when the control plane stops. Without it such events are lost.
    #[arg(long, env = "PALISADE_EVENTS_SPILL_MIB", value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub events_spill_mib: Option<u32>,

    /// How many days events are kept for the console, in events.db of --data or at the server of --store; 0 keeps none.
    #[arg(long, env = "PALISADE_EVENTS_STORE_DAYS", value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(0..=366))]
    pub events_store_days: u32,

    /// The size of these events, with their indexes, in MiB: 512 by default. At a server the size of the compressed events: 64 by default.
    #[arg(long, env = "PALISADE_EVENTS_STORE_MIB", value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub events_store_mib: Option<u32>,

    /// The number of these events: 1,000,000 by default, at a server 200,000.
    #[arg(long, env = "PALISADE_EVENTS_STORE_MAX", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub events_store_max: Option<u32>,
}

/// The format of events.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Format {
    /// The Elastic Common Schema.
    Ecs,
    /// The Open Cybersecurity Schema Framework.
    Ocsf,
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Compression {
    /// With gzip.
    Gzip,
    /// Not at all.
    None,
}

/// How a password is shown to the Kafka brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sasl {
    /// In clear text, over TLS only.
    Plain,
    /// SCRAM-SHA-256.
    #[value(name = "scram-sha-256")]
    ScramSha256,
    /// SCRAM-SHA-512.
    #[value(name = "scram-sha-512")]
    ScramSha512,
}

impl From<Format> for EventFormat {
    fn from(format: Format) -> EventFormat {
        match format {
            Format::Ecs => EventFormat::Ecs,
            Format::Ocsf => EventFormat::Ocsf,
        }
    }
}

impl From<Compression> for OtlpCompression {
    fn from(compression: Compression) -> OtlpCompression {
        match compression {
            Compression::Gzip => OtlpCompression::Gzip,
            Compression::None => OtlpCompression::None,
        }
    }
}

impl From<Sasl> for SaslMechanism {
    fn from(sasl: Sasl) -> SaslMechanism {
        match sasl {
            Sasl::Plain => SaslMechanism::Plain,
            Sasl::ScramSha256 => SaslMechanism::ScramSha256,
            Sasl::ScramSha512 => SaslMechanism::ScramSha512,
        }
    }
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
            let format = EventFormat::from(self.events_format);
            let data_stream = self.events_elasticsearch_data_stream.as_deref().unwrap_or(format.data_stream());
            let cluster = Elasticsearch::new(options, data_stream)?;
            exporters.push(Exporter::Elasticsearch(Box::new(cluster)));
        }
        if let Some(url) = self.events_otlp.clone() {
            let options = ServerOptions {
                url,
                headers_file: self.events_otlp_headers_file.clone(),
                ca_file: self.events_otlp_ca_file.clone(),
                timeout: Duration::from_secs(self.events_otlp_timeout),
            };
            exporters.push(Exporter::Otlp(Box::new(Otlp::new(options, self.events_otlp_compression.into())?)));
        }
        if let Some(url) = &self.events_syslog {
            let server = Syslog::new(url, &self.events_syslog_facility, self.events_syslog_ca_file.as_deref())?;
            exporters.push(Exporter::Syslog(Box::new(server)));
        }
        if let Some(url) = &self.events_kafka {
            let login = self.events_kafka_user.clone().zip(self.events_kafka_password_file.clone());
            let mechanism = self.events_kafka_sasl.into();
            let login = login.map(|(user, password_file)| KafkaLogin { user, password_file, mechanism });
            let topic = Kafka::new(url, self.events_kafka_ca_file.as_deref(), login)?;
            exporters.push(Exporter::Kafka(Box::new(topic)));
        }
        Ok(exporters)
    }

    /// How many events are kept for the console: `None` for none. `is_shared`: at a server, whose memory they take.
    #[must_use]
    pub fn store_limits(&self, is_shared: bool) -> Option<EventLimits> {
        const DAY: u64 = 86_400_000;
        let (mib, events) = if is_shared { (64, 200_000) } else { (512, 1_000_000) };
        (self.events_store_days > 0).then(|| EventLimits {
            age_millis: u64::from(self.events_store_days) * DAY,
            bytes: u64::from(self.events_store_mib.unwrap_or(mib)) << 20,
            events: u64::from(self.events_store_max.unwrap_or(events)),
        })
    }

    /// Where exporters keep events on disk, in the folder of `--data`.
    #[must_use]
    pub fn spill(&self, data: &Path) -> Option<Spill> {
        let max_bytes = u64::from(self.events_spill_mib?) << 20;
        Some(Spill { folder: data.join("events"), max_bytes })
    }
}

impl fmt::Debug for EventsConfig {
    /// Without URLs, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsConfig")
            .field("events_format", &self.events_format)
            .field("events_file", &self.events_file)
            .field("events_file_max_mib", &self.events_file_max_mib)
            .field("events_file_keep", &self.events_file_keep)
            .field("events_stdout", &self.events_stdout)
            .field("events_webhook", &self.events_webhook.as_ref().map(|_| "…"))
            .field("events_elasticsearch", &self.events_elasticsearch.as_ref().map(|_| "…"))
            .field("events_otlp", &self.events_otlp.as_ref().map(|_| "…"))
            .field("events_syslog", &self.events_syslog.as_ref().map(|_| "…"))
            .field("events_kafka", &self.events_kafka.as_ref().map(|_| "…"))
            .field("events_spill_mib", &self.events_spill_mib)
            .field("events_store_days", &self.events_store_days)
            .field("events_store_mib", &self.events_store_mib)
            .field("events_store_max", &self.events_store_max)
            .finish_non_exhaustive()
    }
}
