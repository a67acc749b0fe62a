//! Batches in parts: a request that a server says is too large is divided.

use axum::http::StatusCode;

use super::server::Answer;
use super::{Failure, Then};
use crate::queue::Line;

/// A server that takes some events in one request.
pub(super) trait Requests: Sync {
    /// Sends events in one request.
    fn send(&self, part: &[Line]) -> impl Future<Output = Result<Settled, Unsent>> + Send;
}

/// How a batch is divided: at most N events in a request, fewer after the server has said that one was too large.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    most: usize,
}

/// The outcome of the first events of a request that was answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// The number of the first events that are written or refused.
    pub(super) first: usize,
    /// The number of them that are refused: they would be refused again.
    pub(super) refused: usize,
    /// Why the first of those was.
    pub(super) refusal: Option<String>,
    /// Why the event after them failed, which is to be sent again. Those behind it may be written; they are sent again, and the server
    /// knows them by their id.
    pub(super) failure: Option<String>,
}

/// Nothing of a request is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// It has too many bytes for the server (413).
    TooLarge,
    /// For another reason.
    Failed(Failure),
}

impl Parts {
    /// At most `most` events in a request.
    pub(super) fn new(most: usize) -> Parts {
        Parts { most }
    }

    /// Sends a batch in as many requests as it takes. An event that is too large by itself is refused.
    pub(super) async fn write(&mut self, requests: &impl Requests, batch: &[Line]) -> Result<(), Failure> {
        let (mut done, mut refused, mut why) = (0, 0, None);
        while let Some(rest) = batch.get(done..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..self.most).unwrap_or(rest);
            match requests.send(part).await {
                Err(Unsent::Failed(failure)) => return Err(Failure { written: done, refused, ..failure }),
                Err(Unsent::TooLarge) if part.len() > 1 => self.most = part.len() / 2,
                Err(Unsent::TooLarge) => {
                    (done, refused) = (done + 1, refused + 1);
                    why.get_or_insert_with(|| "an event is too large for the server".to_owned());
                }
                Ok(settled) => {
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

    #[cfg(test)]
    pub(super) fn most(&self) -> usize {
        self.most
    }
}

impl Answer {
    /// [`Answer::judge`] for a request that can be divided, from a server that wants a key and a name. What an operator mends (401, 403,
    /// 404) is waited for: events are lost only where the queue is full.
    pub(super) fn judge_part(&self) -> Result<(), Unsent> {
        match self.status {
            StatusCode::PAYLOAD_TOO_LARGE => Err(Unsent::TooLarge),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                self.judge().map_err(|failure| Unsent::Failed(Failure { then: Then::Retry(None), ..failure }))
            }
            _ => Ok(self.judge()?),
        }
    }
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Unsent {
        Unsent::Failed(failure)
    }
}
