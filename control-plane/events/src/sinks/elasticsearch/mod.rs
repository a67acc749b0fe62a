//! Batches to the bulk API of Elasticsearch or OpenSearch.

mod answer;
mod document;

use axum::http::{StatusCode, Uri};

use super::server::{Server, ServerError, ServerOptions, retry};
use super::{Failure, Sink, Then};
use crate::queue::{Bounds, Line};
use answer::{Items, Settled};

/// The data stream that events go to by default.
pub const DEFAULT_DATA_STREAM: &str = "logs-palisade.events-default";
/// The template of the index, JSON: data streams whose names begin with `logs-palisade.events-`.
pub const INDEX_TEMPLATE: &str = include_str!("index-template.json");
/// So much of an answer is read: it names each event of the batch.
const MAX_ANSWER: usize = 4 << 20;
/// The longest name of an index, in bytes.
const MAX_NAME: usize = 255;

/// A cluster that takes events into a data stream or an index. Each event is created under its `@id`, so that one that is sent
/// for the second time is not there twice. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Elasticsearch {
    server: Server,
    bulk: Uri,
    /// The events of one request; fewer after the cluster has said that a request was too large.
    most: usize,
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
        let base = server.url();
        if base.query().is_some() {
            return Err(ServerError::new("the URL of Elasticsearch must have no query".to_owned()));
        }
        let fields = "errors,items.*.status,items.*.error.type,items.*.error.reason";
        let path = base.path().trim_end_matches('/');
        let bulk = format!("{}{path}/{data_stream}/_bulk?filter_path={fields}", server.origin());
        let bulk = bulk.parse().map_err(|_| wrong("it makes no URL"))?;
        Ok(Elasticsearch { server, bulk, most: <Elasticsearch as Sink>::BATCH.lines })
    }

    /// Scheme, host and port: what may be shown.
    #[must_use]
    pub fn origin(&self) -> String {
        self.server.origin()
    }

    /// Sends some events in one request.
    async fn send(&self, batch: &[Line]) -> Result<Sent, Failure> {
        let body = document::bulk(batch);
        let answer = self.server.post(&self.bulk, "application/x-ndjson", body, MAX_ANSWER).await?;
        if answer.status == StatusCode::PAYLOAD_TOO_LARGE {
            return Ok(Sent::TooLarge);
        }
        // What an operator mends (a key, a role, a name) is waited for: events are lost only where the queue is full.
        let is_mended =
            matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
        answer.judge().map_err(|failure| match is_mended {
            true => Failure { then: Then::Retry(None), ..failure },
            false => failure,
        })?;
        let items = answer.body.as_deref().and_then(|body| Items::read(body, batch.len()));
        let unclear = || retry("the answer does not say what was taken".to_owned(), None);
        Ok(Sent::Settled(items.ok_or_else(unclear)?.settled()))
    }
}

enum Sent {
    Settled(Settled),
    TooLarge,
}

impl Sink for Elasticsearch {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 4 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let (mut done, mut refused, mut why) = (0, 0, None);
        while let Some(rest) = batch.get(done..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..self.most).unwrap_or(rest);
            let failed = |failure: Failure| Failure { written: done, refused, ..failure };
            match self.send(part).await.map_err(failed)? {
                Sent::TooLarge if part.len() > 1 => self.most = part.len() / 2,
                Sent::TooLarge => {
                    (done, refused) = (done + 1, refused + 1);
                    why.get_or_insert_with(|| "an event is too large for the cluster".to_owned());
                }
                Sent::Settled(settled) => {
                    done += settled.first;
                    refused += settled.refused;
                    why = why.or(settled.refusal);
                    if let Some(reason) = settled.failure {
                        return Err(Failure { written: done, refused, reason, then: Then::Retry(None) });
                    }
                }
            }
        }
        match why {
            Some(reason) => Err(Failure { written: done, refused, reason, then: Then::Drop }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
