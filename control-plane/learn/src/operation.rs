//! What is known of one operation.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::media::{Bodies, pairs};
use crate::names::is_parameter;
use crate::parameter::Parameters;
use crate::{Observation, Room};

/// The statuses that are kept.
const MAX_STATUSES: usize = 32;

/// Requests of a method to a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operation {
    pub(crate) requests: u64,
    pub(crate) query: Parameters,
    pub(crate) headers: Parameters,
    pub(crate) body: Bodies,
    pub(crate) responses: BTreeMap<u16, Answers>,
    /// Statuses of requests that were not learned from.
    pub(crate) refused: BTreeMap<u16, u64>,
}

/// The answers with one status.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) count: u64,
    pub(crate) body: Bodies,
}

/// The key of a method in a path item; `None` for those that OpenAPI 3.1 does not have.
pub(crate) fn method(method: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 8] = [
        (b"GET", "get"),
        (b"PUT", "put"),
        (b"POST", "post"),
        (b"DELETE", "delete"),
        (b"OPTIONS", "options"),
        (b"HEAD", "head"),
        (b"PATCH", "patch"),
        (b"TRACE", "trace"),
    ];
    known.into_iter().find(|(name, _)| *name == method).map(|(_, key)| key)
}

impl Operation {
    /// Takes a request that was accepted.
    pub(crate) fn observe(&mut self, seen: &Observation<'_>, query: &[u8], status: u16, room: &mut Room) {
        self.requests += 1;
        self.query.observe(&pairs(query), room);
        let headers = seen.headers.iter().filter_map(|(name, value)| {
            let name = std::str::from_utf8(name).ok().filter(|name| is_parameter(name))?;
            Some((name.to_owned(), Cow::Borrowed(value.as_slice())))
        });
        let headers: Vec<(String, Cow<'_, [u8]>)> = headers.collect();
        self.headers.observe(&headers, room);
        self.body.observe(seen.headers, seen.body, room);
        if self.responses.contains_key(&status) || self.responses.len() < MAX_STATUSES {
            let answers = self.responses.entry(status).or_default();
            answers.count += 1;
            answers.body.observe(seen.response_headers, seen.response_body, room);
        }
    }

    /// Counts one that was not.
    pub(crate) fn refuse(&mut self, status: u16) {
        if self.refused.contains_key(&status) || self.refused.len() < MAX_STATUSES {
            *self.refused.entry(status).or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut Room) {
        self.requests += other.requests;
        self.query.merge(other.query, room);
        self.headers.merge(other.headers, room);
        self.body.merge(other.body, room);
        for (status, answers) in other.responses {
            let own = self.responses.entry(status).or_default();
            own.count += answers.count;
            own.body.merge(answers.body, room);
        }
        for (status, count) in other.refused {
            *self.refused.entry(status).or_default() += count;
        }
    }
}
