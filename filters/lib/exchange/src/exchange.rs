//! The exchange: what plugins read, and where they leave what they found.

use std::rc::Rc;

use crate::{Action, Caller, Changes, Decision, Headers, MatchedOperation, Score, SkipNote};

/// The most policies whose decisions are noted: a chain has one for the global chain, one for the route, and refusals.
const MAX_DECIDED_BY: usize = 8;

/// One request, its response, and what was found out about both.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The request as the caller sent it, with the headers that plugins have changed ([`Exchange::change_request`]).
    pub request: Request,
    /// The response, from its headers on, with what plugins have changed ([`Exchange::change_response`]).
    pub response: Option<Response>,
    /// Who is calling.
    pub caller: Caller,
    /// The request has the header that carries api keys, where one is configured, whatever is in it.
    pub has_api_key_header: bool,
    /// The route that the gateway chose; with an empty name where none matched.
    pub route: Route,
    /// The operation of an API contract that the request was matched with; set by the step that checks the contract.
    pub operation: Option<MatchedOperation>,
    /// The signals so far.
    pub score: Score,
    /// Steps that are skipped, with the reasons; at most [`MAX_SKIPS`](crate::MAX_SKIPS).
    pub skips: Vec<SkipNote>,
    /// What was decided, once anything was.
    pub decision: Option<Decision>,
    /// Another filter of this gateway has decided, see [`Exchange::is_decided`].
    pub decided_elsewhere: bool,
    /// The scores by which was decided so far, in this filter or another one, see [`Exchange::decided_score`].
    pub decided_by: Vec<DecidedBy>,
    /// What the request says of `accept-encoding` as it goes on, where that is not what the caller said.
    pub accept_encoding: Option<Vec<u8>>,
    /// What plugins have changed of the two messages.
    pub changes: Changes,
    /// The path or the host of the request holds a secret: events say `(hidden)` for both. A plugin that finds one there sets it.
    pub target_is_secret: bool,
    /// A step behind the one whose turn it is judges submissions to challenges of another provider
    /// ([`Plugin::judges`](crate::Plugin::judges)).
    pub is_judged_later: bool,
    /// Challenge providers whose vendors do not vouch for the token of the request, or could not be asked, by their ids.
    pub rejected_by: Vec<String>,
    /// The request counts in the traffic of its route already. It does not travel: gates are all in one filter.
    pub is_counted: bool,
    /// A filter of this gateway, this one or another, has answered in the backend's place.
    pub answered: bool,
    /// That answer, from when it is given on.
    pub given: Option<GivenAnswer>,
    /// Events that this exchange has emitted so far, one line of JSON each.
    pub events: Vec<Vec<u8>>,
}

impl Exchange {
    /// Whether a threat response or a refusal has decided on the request, in this filter or in another one: the decision has
    /// its event then.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.decision.is_some() || self.decided_elsewhere
    }

    /// Notes a decision by a score: of a policy (`collection/id`), or of none, with an empty `policy`. The latter is a refusal, which every
    /// policy was asked about.
    pub fn note_decided(&mut self, policy: &str, score: f64) {
        if let Some(known) = self.decided_by.iter_mut().find(|known| known.policy == policy) {
            known.score = known.score.max(score);
        } else if self.decided_by.len() < MAX_DECIDED_BY {
            self.decided_by.push(DecidedBy { policy: policy.to_owned(), score });
        }
    }

    /// The highest score by which this policy has decided, or by which the request was refused; `None` without either. What other policies
    /// have decided does not count.
    #[must_use]
    pub fn decided_score(&self, policy: &str) -> Option<f64> {
        let counts = self.decided_by.iter().filter(|known| known.policy.is_empty() || known.policy == policy);
        counts.map(|known| known.score).reduce(f64::max)
    }
}

/// The score by which a policy has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedBy {
    /// The policy, as `collection/id`; empty for a refusal.
    pub policy: String,
    /// Its highest score.
    pub score: f64,
}

/// An answer that a filter of this gateway has given in the backend's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenAnswer {
    /// Its status.
    pub status: u16,
    /// The action that led to it; [`Action::Deny`] for a refusal that no tier asked for.
    pub action: Action,
}

/// The head of a request.
#[derive(Debug, Default, Clone)]
pub struct Request {
    /// Its id (`x-request-id`), for matching events with other logs; may be empty.
    pub id: Vec<u8>,
    /// `GET`, `POST`, ...
    pub method: Vec<u8>,
    /// Path and query, as they were sent.
    pub path: Vec<u8>,
    /// Host and port that were asked for.
    pub authority: Vec<u8>,
    /// `HTTP/1.1`, `HTTP/2`, ...
    pub protocol: Vec<u8>,
    /// All headers.
    pub headers: Headers,
    /// Upgrades, CONNECT, gRPC: nothing of it may be held back.
    pub streaming: bool,
}

impl Request {
    /// The path without the query.
    #[must_use]
    pub fn path_only(&self) -> &[u8] {
        self.path.split(|byte| *byte == b'?').next().unwrap_or_default()
    }

    /// The query without its question mark; empty where there is none.
    #[must_use]
    pub fn query(&self) -> &[u8] {
        match self.path.iter().position(|byte| *byte == b'?') {
            Some(place) => self.path.get(place + 1..).unwrap_or_default(),
            None => &[],
        }
    }
}

/// The head of a response.
#[derive(Debug, Default, Clone)]
pub struct Response {
    /// Its status code; 0 where the gateway gave none.
    pub status: u16,
    /// All headers.
    pub headers: Headers,
    /// Upgrades, gRPC, event streams: nothing of it may be held back.
    pub streaming: bool,
}

impl Response {
    /// Whether its body is a part of a representation, cut at a byte: a 206 with a `content-range` of bytes, or without one
    /// (`multipart/byteranges`). With other statuses the header means nothing (RFC 9110, section 14.4), and applications number the
    /// entries of a list with it: `posts 0-24/319`, `0-14/*`.
    #[must_use]
    pub fn is_part(&self) -> bool {
        let mut ranges = self.headers.all("content-range").peekable();
        let is_bytes =
            |range: &[u8]| range.trim_ascii_start().get(..5).is_some_and(|unit| unit.eq_ignore_ascii_case(b"bytes"));
        self.status == 206 && (ranges.peek().is_none() || ranges.any(is_bytes))
    }
}

/// The route of a request. Its words are those of the chain, shared by all requests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Route {
    /// The gateway's name for it (`xds.route_name`).
    pub name: Rc<str>,
    /// Id of the route entity; empty where the route has none.
    pub id: Rc<str>,
    /// Name of the route entity.
    pub label: Rc<str>,
    /// The node that serves it.
    pub node: Rc<str>,
}
