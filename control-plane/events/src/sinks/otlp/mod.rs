//! Batches to an OpenTelemetry collector, or another server of OTLP over HTTP (OTLP specification 1.9), in binary protobuf.

mod answer;
mod attributes;
mod proto;
mod record;
mod value;

use std::io::Write as _;

use axum::http::Uri;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::parts::{Parts, Requests, Settled, Unsent};
use super::server::{Body, Server, ServerError, ServerOptions, retry};
use super::{Failure, Sink, host_name};
use crate::queue::{Bounds, Line};
use base::clock;
use proto::Resource;

/// The path of logs below the base URL.
const PATH: &str = "/v1/logs";
/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// How the body of a request is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtlpCompression {
    /// With gzip.
    #[default]
    Gzip,
    /// Not at all.
    None,
}

/// A server that takes events as log records of OpenTelemetry, at most 500 of them or 1 MiB of JSON in a request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Otlp {
    export: Export,
    parts: Parts,
}

#[derive(Clone, Debug)]
struct Export {
    server: Server,
    url: Uri,
    compression: OtlpCompression,
    resource: Resource,
}

impl Otlp {
    /// A server at the base URL of `options`, to which `/v1/logs` is appended, as the specification of OTLP exporters says for
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// As of [`Webhook::new`](super::webhook::Webhook::new), or the URL has that path already.
    pub fn new(options: ServerOptions, compression: OtlpCompression) -> Result<Otlp, ServerError> {
        if options.url.path().trim_end_matches('/').ends_with(PATH) {
            return Err(ServerError::new(format!("the base URL of the OTLP server is expected, without {PATH}")));
        }
        let server = Server::new("the OTLP server", options)?;
        let url = server.below("the OTLP server", PATH)?;
        let resource = record::resource(&host_name(), &uuid::Uuid::new_v4().to_string());
        let export = Export { server, url, compression, resource };
        Ok(Otlp { export, parts: Parts::new(<Otlp as Sink>::BATCH.lines) })
    }

    /// Scheme, host and port: what may be shown.
    #[must_use]
    pub fn origin(&self) -> String {
        self.export.server.origin()
    }
}

impl Requests for Export {
    async fn send(&self, part: &[Line]) -> Result<Settled, Unsent> {
        let (resource, compression, lines, now) =
            (self.resource.clone(), self.compression, part.to_vec(), clock::now_millis());
        // A MiB of JSON takes too long for a thread that others wait for.
        let made = tokio::task::spawn_blocking(move || body(resource, compression, &lines, now)).await;
        let body = made.map_err(|error| retry(error.to_string(), None))?;
        let answer = self.server.post(&self.url, body, MAX_ANSWER).await?;
        answer::settled(&answer, part.len())
    }
}

impl Sink for Otlp {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 1 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        self.parts.write(&self.export, batch).await
    }
}

fn body(resource: Resource, compression: OtlpCompression, lines: &[Line], now_millis: u64) -> Body {
    let content_type = "application/x-protobuf";
    let bytes = record::request(resource, lines, now_millis).encode_to_vec();
    let compressed = match compression {
        OtlpCompression::Gzip => gzip(&bytes).ok(),
        OtlpCompression::None => None,
    };
    let is_gzip = compressed.is_some();
    Body { content_type, is_gzip, bytes: compressed.unwrap_or(bytes) }
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
