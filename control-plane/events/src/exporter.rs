//! Where events go.

use std::path::PathBuf;
use std::sync::Arc;

use super::queue::Queue;
use super::sinks::elasticsearch::Elasticsearch;
use super::sinks::file::{FileSink, Rotation};
use super::sinks::stdout::Stdout;
use super::sinks::syslog::Syslog;
use super::sinks::webhook::Webhook;
use super::sinks::{self, Backoff, Notices};

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
    /// A syslog server.
    Syslog(Box<Syslog>),
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
            Self::Syslog(server) => format!("syslog:{}", server.origin()),
        }
    }

    /// Writes what comes through `queue`, for as long as the task lives.
    pub(super) async fn run(self, queue: Arc<Queue>, notices: Notices) {
        let backoff = Backoff::default();
        match self {
            Self::Stdout => sinks::run(Stdout::new(), queue, backoff, notices).await,
            Self::File(path) => sinks::run(FileSink::new(path, None), queue, backoff, notices).await,
            Self::RotatedFile(path, rotation) => {
                sinks::run(FileSink::new(path, Some(rotation)), queue, backoff, notices).await;
            }
            Self::Webhook(webhook) => sinks::run(*webhook, queue, backoff, notices).await,
            Self::Elasticsearch(cluster) => sinks::run(*cluster, queue, backoff, notices).await,
            Self::Syslog(server) => sinks::run(*server, queue, backoff, notices).await,
        }
    }
}
