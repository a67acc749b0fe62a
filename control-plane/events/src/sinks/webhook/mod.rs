//! Batches by POST to a server of the operator's choice.

use super::server::{Body, Server, ServerError, ServerOptions};
use super::{Failure, Sink};
use crate::queue::{Bounds, Line};

/// So much of an answer is read, so that its connection can be used again.
const MAX_ANSWER: usize = 64 * 1024;

/// A server that takes events: each request is a POST of `application/x-ndjson`, a line of JSON for each event, at most 500
/// of them or 1 MiB (a longer event stands alone). Redirects are not followed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Webhook {
    server: Server,
}

impl Webhook {
    /// A webhook; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The URL is none that can be used, a file cannot be read or does not hold what it should, or the system has no
    /// certificates to trust.
    pub fn new(options: ServerOptions) -> Result<Webhook, ServerError> {
        Ok(Webhook { server: Server::new("the webhook", options)? })
    }

    /// Scheme, host and port: what may be shown.
    #[must_use]
    pub fn origin(&self) -> String {
        self.server.origin()
    }
}

impl Sink for Webhook {
    const BATCH: Bounds = Bounds { lines: 500, bytes: 1 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let mut text = Vec::with_capacity(batch.iter().map(|line| line.len() + 1).sum());
        for line in batch {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let body = Body { content_type: "application/x-ndjson", is_gzip: false, bytes: text };
        self.server.post(self.server.url(), body, MAX_ANSWER).await?.judge()
    }
}

#[cfg(test)]
mod tests;
