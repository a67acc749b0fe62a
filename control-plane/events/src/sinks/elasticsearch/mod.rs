//! Batches to the bulk API of Elasticsearch or OpenSearch.

mod answer;
mod document;

use axum::http::Uri;

use super::parts::{Parts, Requests, Settled, Unsent};
use super::server::{Body, Server, ServerError, ServerOptions, retry};
use super::{Failure, Sink};
use crate::queue::{Bounds, Line};
use answer::Items;

/// So much of an answer is read: it names each event of the batch.
const MAX_ANSWER: usize = 4 << 20;
/// The longest name of an index, in bytes.
const MAX_NAME: usize = 255;

/// A cluster that takes events into a data stream or an index. Each event is created under its `@id`, so that one that is sent
/// for the second time is not there twice. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Elasticsearch {
    bulk: Bulk,
    parts: Parts,
}

#[derive(Clone, Debug)]
struct Bulk {
    server: Server,
    url: Uri,
}

impl Elasticsearch {
    /// A cluster at the base URL of `options`; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// As of [`Webhook::new`](super::webhook::Webhook::new), or `data_stream` is no name of a data stream or an index.
    pub fn new(options: ServerOptions, data_stream: &str) -> Result<Elasticsearch, ServerError> {
        let wrong = |why: &str| ServerError::new(format!("the data stream `{data_stream}` cannot be used: {why}"));
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if data_stream.is_empty() || data_stream.len() > MAX_NAME || !data_stream.bytes().all(is_part) {
            return Err(wrong("a name of a-z 0-9 . _ - is expected, 255 characters at most"));
        }
        if data_stream.starts_with(['-', '_', '.']) {
            return Err(wrong("it must begin with a letter or a digit"));
        }
        let server = Server::new("Elasticsearch", options)?;
        let fields = "errors,items.*.status,items.*.error.type,items.*.error.reason";
        let url = server.below("Elasticsearch", &format!("/{data_stream}/_bulk?filter_path={fields}"))?;
        let parts = Parts::new(<Elasticsearch as Sink>::BATCH.lines);
        Ok(Elasticsearch { bulk: Bulk { server, url }, parts })
    }

    /// Scheme, host and port: what may be shown.
    #[must_use]
    pub fn origin(&self) -> String {
        self.bulk.server.origin()
    }
}

impl Requests for Bulk {
    async fn send(&self, part: &[Line]) -> Result<Settled, Unsent> {
        let body = Body { content_type: "application/x-ndjson", is_gzip: false, bytes: document::bulk(part) };
        let answer = self.server.post(&self.url, body, MAX_ANSWER).await?;
        answer.judge_part()?;
        answer.check_length(part.len())?;
        let items = answer.body.as_deref().and_then(|body| Items::read(body, part.len()));
        let unclear = || retry("the answer does not say what was taken".to_owned(), None);
        Ok(items.ok_or_else(unclear)?.settled())
    }
}

impl Sink for Elasticsearch {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 4 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        self.parts.write(&self.bulk, batch).await
    }
}

#[cfg(test)]
mod tests;
