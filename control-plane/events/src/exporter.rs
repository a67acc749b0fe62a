//! Where events go.

use std::path::PathBuf;
use std::sync::Arc;

use super::format::EventFormat;
use super::queue::Queue;
use super::sinks::elasticsearch::Elasticsearch;
use super::sinks::file::{FileSink, Rotation};
use super::sinks::kafka::Kafka;
use super::sinks::otlp::Otlp;
use super::sinks::stdout::Stdout;
use super::sinks::stored::Stored;
use super::sinks::syslog::Syslog;
use super::sinks::webhook::Webhook;
use super::sinks::{self, Backoff, Formatted, Notices, Sink};

/// The name of [`Exporter::Store`] in metrics and status.
pub const STORE: &str = "store";

/// A place that events are written to, in JSON.
#[derive(Clone, Debug)]
pub enum Exporter {
    /// Standard output.
    Stdout,
    /// A file that is appended to; it is opened again when it was moved away.
    File(PathBuf),
    /// The same, moved away when it is large enough.
    RotatedFile(PathBuf, Rotation),
    /// A server that takes batches by POST.
    Webhook(Box<Webhook>),
    /// The bulk API of Elasticsearch or OpenSearch.
    Elasticsearch(Box<Elasticsearch>),
    /// An OpenTelemetry collector, or another server of OTLP.
    Otlp(Box<Otlp>),
    /// A syslog server.
    Syslog(Box<Syslog>),
    /// A topic of Kafka.
    Kafka(Box<Kafka>),
    /// The event store of the control plane, in the format of gateways whatever that of the others is.
    Store(Stored),
}

impl Exporter {
    /// Its name in metrics and status.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::File(path) | Self::RotatedFile(path, _) => format!("file:{}", path.display()),
            Self::Webhook(webhook) => format!("webhook:{}", webhook.origin()),
            Self::Elasticsearch(cluster) => format!("elasticsearch:{}", cluster.origin()),
            Self::Otlp(server) => format!("otlp:{}", server.origin()),
            Self::Syslog(server) => format!("syslog:{}", server.origin()),
            Self::Kafka(topic) => topic.origin(),
            Self::Store(_) => STORE.into(),
        }
    }

    /// Whether it depends on another machine: its events may have to wait for long.
    #[must_use]
    pub(super) fn is_remote(&self) -> bool {
        match self {
            Self::Stdout | Self::File(_) | Self::RotatedFile(..) | Self::Store(_) => false,
            Self::Webhook(_) | Self::Elasticsearch(_) | Self::Otlp(_) | Self::Syslog(_) | Self::Kafka(_) => true,
        }
    }

    /// Writes what comes through `queue` in a format, for as long as the task lives.
    pub(super) async fn run(self, queue: Arc<Queue>, format: EventFormat, notices: Notices) {
        match self {
            Self::Stdout => run(Stdout::new(), queue, format, notices).await,
            Self::File(path) => run(FileSink::new(path, None), queue, format, notices).await,
            Self::RotatedFile(path, rotation) => {
                run(FileSink::new(path, Some(rotation)), queue, format, notices).await;
            }
            Self::Webhook(webhook) => run(*webhook, queue, format, notices).await,
            Self::Elasticsearch(cluster) => run(*cluster, queue, format, notices).await,
            Self::Otlp(server) => run(*server, queue, format, notices).await,
            Self::Syslog(server) => run(*server, queue, format, notices).await,
            Self::Kafka(topic) => run(*topic, queue, format, notices).await,
            Self::Store(store) => run(store, queue, EventFormat::Ecs, notices).await,
        }
    }
}

async fn run(sink: impl Sink, queue: Arc<Queue>, format: EventFormat, notices: Notices) {
    sinks::run(Formatted::new(sink, format), queue, Backoff::default(), notices).await;
}
