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

/// How many full requests in a row the server takes before a larger one is tried.
const PATIENCE: usize = 8;
/// The same after larger ones were too large again and again.
const MOST_PATIENCE: usize = 1024;

/// How a batch is divided: at most N events in a request, fewer after the server has said that one was too large, and more again once it
/// has taken some.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    most: usize,
    /// The highest value of `most`.
    limit: usize,
    /// The requests with `most` events that were taken since it was changed.
    full: usize,
    /// So many of those raise it.
    patience: usize,
    /// It was raised, and no request with so many events was taken yet.
    raised: bool,
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
    /// The server refuses all of it because of an event in it, and says why.
    Invalid(String),
    /// For another reason.
    Failed(Failure),
}

impl Parts {
    /// At most `most` events in a request.
    pub(super) fn new(most: usize) -> Parts {
        Parts { most, limit: most, full: 0, patience: PATIENCE, raised: false }
    }

    /// Sends a batch in as many requests as it takes. An event that is too large by itself is refused, and one that the server refuses by
    /// itself.
    pub(super) async fn write(&mut self, requests: &impl Requests, batch: &[Line]) -> Result<(), Failure> {
        let (mut done, mut refused, mut why) = (0, 0, None);
        // Fewer events than `most` while one is looked for that has the others refused.
        let mut narrow = self.limit;
        let before = self.most;
        while let Some(rest) = batch.get(done..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..self.most.min(narrow)).unwrap_or(rest);
            let alone = part.len() == 1;
            let reason = match requests.send(part).await {
                Err(Unsent::Failed(failure)) => return Err(Failure { written: done, refused, ..failure }),
                Err(Unsent::TooLarge) if !alone => {
                    self.divide(part.len());
                    continue;
                }
                Err(Unsent::Invalid(_)) if !alone => {
                    narrow = part.len() / 2;
                    continue;
                }
                Err(Unsent::TooLarge) => {
                    // It was this event that made requests too large.
                    self.most = before;
                    "an event is too large for the server".to_owned()
                }
                Err(Unsent::Invalid(reason)) => reason,
                Ok(settled) => {
                    self.taken(part.len());
                    narrow = narrow.saturating_mul(2).min(self.limit);
                    done += settled.first;
                    refused += settled.refused;
                    why = why.or(settled.refusal);
                    if let Some(reason) = settled.failure {
                        return Err(Failure { written: done, refused, reason, then: Then::Retry(None) });
                    }
                    continue;
                }
            };
            (done, refused) = (done + 1, refused + 1);
            why.get_or_insert(reason);
        }
        match why {
            Some(reason) => Err(Failure { written: done, refused, reason, then: Then::Drop }),
            None => Ok(()),
        }
    }

    /// A request with so many events was too large.
    fn divide(&mut self, events: usize) {
        // A server with a fixed limit is not asked for more all the time.
        self.patience = if self.raised { self.patience.saturating_mul(2).min(MOST_PATIENCE) } else { self.patience };
        (self.most, self.full, self.raised) = (events / 2, 0, false);
    }

    /// A request with so many events was taken.
    fn taken(&mut self, events: usize) {
        if events < self.most {
            return;
        }
        if self.raised {
            (self.raised, self.patience) = (false, PATIENCE);
        }
        self.full = self.full.saturating_add(1);
        if self.full >= self.patience && self.most < self.limit {
            (self.most, self.full, self.raised) = (self.most.saturating_mul(2).min(self.limit), 0, true);
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

    /// Refuses an answer to so many events whose body is longer than what is read of it: it is shorter for fewer events. What such an answer
    /// to one event means is for the caller to say.
    pub(super) fn check_length(&self, events: usize) -> Result<(), Unsent> {
        if self.body.is_none() && events > 1 { Err(Unsent::TooLarge) } else { Ok(()) }
    }
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Unsent {
        Unsent::Failed(failure)
    }
}

#[cfg(test)]
mod tests;
