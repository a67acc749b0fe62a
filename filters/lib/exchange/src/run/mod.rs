//! One exchange in one chain.

mod access;
mod answer;
mod body;
mod overtaken;
mod wait;

use std::rc::Rc;

use crate::ask::MAX_FOLLOW_UPS;
use crate::chain::{Step, Steps};
use crate::skip::Skips;
use crate::{
    Body, Caller, Chain, Exchange, Flow, HeaderChange, Host, Metric, PathReadings, Reply, Request, Response, Route,
    Slot, Verdict, transfer,
};
use overtaken::Early;
pub use wait::AskedBody;
use wait::{Asking, Phase};

/// What a run begins with.
#[derive(Debug)]
pub struct Start<'a> {
    /// The request.
    pub request: Request,
    /// The gateway's name of the route; empty where none matched.
    pub route: &'a [u8],
    /// The address of the connection.
    pub peer: &'a [u8],
    /// The node's id.
    pub node: &'a Rc<str>,
}

/// One exchange in one chain: the gateway's callbacks go in, a [`Flow`] comes out of each.
///
/// The order of the calls is the gateway's. A call that does not fit what was decided (a body after an answer) is
/// answered with [`Flow::Continue`].
pub struct Run {
    pub(crate) exchange: Exchange,
    pub(crate) steps: Rc<Steps>,
    /// Which steps act on this path.
    covered: Vec<bool>,
    /// Which of them are skipped for this exchange.
    skips: Skips,
    pub(crate) slots: Vec<Slot>,
    pub(crate) stage: Stage,
    shared_exchange: bool,
    replaced_body: Option<Vec<u8>>,
    /// The step that looks at what follows the body it was given, and from which byte on.
    pub(crate) rest: Option<(usize, usize)>,
    /// How much a step has read of the request's body, in bytes.
    read: usize,
    /// The request does not end with its headers.
    has_body: bool,
    /// The response does not end with its headers.
    response_has_body: bool,
    /// Steps have seen the whole body of the request.
    body_seen: bool,
    /// The response that has come before the request's end.
    early: Option<Early>,
    finished: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// Nothing was asked yet.
    Ready,
    /// A step waits for the request's body, at most so many bytes.
    RequestBody(usize, usize),
    /// A step reads the request's body, at most so many bytes.
    RequestPieces(usize, usize),
    /// The request is held; then it is answered, or goes on with this step.
    Held(Option<Reply>, usize),
    /// A step waits for an answer of the control plane.
    Asked(Asking),
    /// The request went to the backend.
    Sent,
    /// A step waits for the response's body, at most so many bytes.
    ResponseBody(usize, usize),
    /// It was answered by us, or the response is on its way.
    Done,
}

/// One of the two halves of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// The request.
    Request,
    /// The response.
    Response,
}

impl Run {
    /// Begins an exchange.
    #[must_use]
    pub fn new(chain: &Chain, start: Start<'_>, host: &dyn Host) -> Self {
        host.count(Metric::Requests);
        let steps = Rc::clone(chain.steps(start.route));
        let mut readings = None;
        let mut covers = |step: &Rc<Step>| {
            let scope = &step.scope;
            scope.is_everywhere()
                || scope.covers(readings.get_or_insert_with(|| PathReadings::of(start.request.path_only())))
        };
        let covered: Vec<bool> = steps.list.iter().map(&mut covers).collect();
        let slots = steps.list.iter().map(|_| Slot::default()).collect();
        let Start { request, peer, .. } = &start;
        let property = |path: &[String]| host.property(path);
        let has_api_key_header = request.headers.get(&chain.identity.api_key_header).is_some();
        let caller = Caller::read(&chain.identity, peer, &request.headers, request.query(), &property);
        let route = Route {
            // A route that Palisade does not manage has a name as well, and no steps of its own.
            name: match steps.name.as_bytes() == start.route {
                true => Rc::clone(&steps.name),
                false => String::from_utf8_lossy(start.route).into(),
            },
            id: Rc::clone(&steps.id),
            label: Rc::clone(&steps.label),
            node: Rc::clone(start.node),
        };
        let mut exchange =
            Exchange { request: start.request, caller, has_api_key_header, route, ..Exchange::default() };
        if chain.shared_exchange {
            transfer::receive(&mut exchange, host);
        }
        let shared_exchange = chain.shared_exchange;
        let skips = Skips::received(&exchange);
        Self {
            exchange,
            steps,
            covered,
            skips,
            slots,
            stage: Stage::Ready,
            shared_exchange,
            replaced_body: None,
            rest: None,
            read: 0,
            has_body: false,
            response_has_body: false,
            body_seen: false,
            early: None,
            finished: false,
        }
    }

    /// The exchange so far.
    #[must_use]
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// The changes of a message's head, in their order, once: its headers go on now, so that nothing of them changes any more.
    pub fn take_changes(&mut self, half: Half) -> Vec<HeaderChange> {
        self.exchange.changes.take(half)
    }

    /// Another `accept-encoding` for the request, once, before its headers go on.
    pub fn take_accept_encoding(&mut self) -> Option<Vec<u8>> {
        self.exchange.accept_encoding.take()
    }

    /// The response's headers are there.
    pub fn response_headers(&mut self, response: Response, has_body: bool, host: &dyn Host) -> Flow {
        // An answer of our own comes by here as well, and is not looked at again.
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        self.drop_request_body();
        // Filters behind this one in the request's order come before it in the response's.
        if self.shared_exchange {
            transfer::receive(&mut self.exchange, host);
            if self.exchange.answered {
                self.stage = Stage::Done;
                return Flow::Continue;
            }
        }
        self.response_has_body = has_body;
        self.exchange.response = Some(response);
        self.advance(Half::Response, 0, has_body, None, host)
    }

    /// The exchange is over. Only the first call counts.
    pub fn finish(&mut self, host: &dyn Host) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if self.shared_exchange {
            transfer::receive_last(&mut self.exchange, host);
        }
        for at in 0..self.steps.list.len() {
            // A step that is skipped may have begun before.
            let Some(step) = self.covered_step(at) else { continue };
            if let Some(slot) = self.slots.get_mut(at) {
                step.turn(&mut self.exchange).finish(&mut self.exchange, slot, host);
            }
        }
        // Filters behind this one finish after it.
        self.hand_on(host);
    }

    /// The step at a place, if it acts on this path and is not skipped.
    pub(crate) fn step(&self, at: usize) -> Option<Rc<Step>> {
        self.covered_step(at).filter(|step| !self.skips.cover(at, step.name, step.role, false))
    }

    /// The same in one half of the exchange. A threat response that only other filters' requests are judged by sees the response
    /// all the same: its own filter has passed the response on already when detectors of this one see it.
    pub(crate) fn step_of(&self, half: Half, at: usize) -> Option<Rc<Step>> {
        let listed =
            || self.steps.list.get(at).filter(|step| step.on_refusal_only && self.covered.get(at) == Some(&true));
        // It stands for a step behind all filters: whatever was skipped anywhere holds for it.
        let skipped =
            |step: &Step| self.exchange.skips.iter().any(|note| note.steps.covers(step.name, step.role, false));
        let companion = listed().filter(|step| half == Half::Response && !skipped(step));
        self.step(at).or_else(|| companion.cloned())
    }

    /// The same step, skipped or not.
    fn covered_step(&self, at: usize) -> Option<Rc<Step>> {
        let covered = self.covered.get(at).copied().unwrap_or(false);
        self.steps.list.get(at).filter(|step| covered && !step.on_refusal_only).cloned()
    }

    fn advance(&mut self, half: Half, from: usize, has_body: bool, body: Option<Body<'_>>, host: &dyn Host) -> Flow {
        for at in from..self.steps.list.len() {
            let Some(step) = self.step_of(half, at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let verdict = match half {
                Half::Request => step.turn(&mut self.exchange).request(&mut self.exchange, has_body, slot, host),
                Half::Response => step.turn(&mut self.exchange).response(&mut self.exchange, has_body, slot, host),
            };
            if let Some(flow) = self.at_headers(verdict, (at, MAX_FOLLOW_UPS), &step, (half, has_body), body, host) {
                return flow;
            }
        }
        self.stage = match half {
            Half::Request => Stage::Sent,
            Half::Response => Stage::Done,
        };
        self.hand_on(host);
        Flow::Continue
    }

    /// Carries out the verdict of a step at the headers of a message; `body` is what is there of its body already. After a
    /// question, `further` ones may follow.
    fn at_headers(
        &mut self,
        verdict: Verdict,
        (at, further): (usize, u8),
        step: &Step,
        (half, has_body): (Half, bool),
        body: Option<Body<'_>>,
        host: &dyn Host,
    ) -> Option<Flow> {
        match (verdict, body) {
            // The body of an upgrade is not held. A step that needs it is told so: the header must be no way around it.
            (Verdict::NeedBody(need), _)
                if half == Half::Request && has_body && self.exchange.request.upgrades_with_body() =>
            {
                self.hand_over(half, (at, need.limit), Body { bytes: &[], complete: false }, host)
            }
            (Verdict::NeedBody(_) | Verdict::ReadBody(_), _) if self.streaming(half) || !has_body => None,
            (Verdict::NeedBody(_) | Verdict::ReadBody(_), _) if half == Half::Request && self.withholds_body() => {
                self.without_body(at, step, host)
            }
            (Verdict::ReadBody(_), _) if half == Half::Response => None,
            (Verdict::ReadBody(need), Some(body)) if body.complete || body.bytes.len() >= need.limit => {
                self.read_at_once(at, step, body, need.limit, host)
            }
            (Verdict::ReadBody(need), _) => {
                self.stage = Stage::RequestPieces(at, need.limit);
                self.read = 0;
                Some(Flow::Read { limit: need.limit })
            }
            (Verdict::NeedBody(need), Some(body)) if body.complete || body.bytes.len() >= need.limit => {
                self.hand_over(half, (at, need.limit), body.prefix(need.limit), host)
            }
            (Verdict::NeedBody(need), _) => {
                self.stage = match half {
                    Half::Request => Stage::RequestBody(at, need.limit),
                    Half::Response => Stage::ResponseBody(at, need.limit),
                };
                Some(Flow::Buffer { limit: need.limit })
            }
            (Verdict::Ask(ask), _) => {
                Some(self.ask(ask, Asking { further, ..Asking::first(at, Phase::Headers(half)) }, host))
            }
            (verdict, _) => self.act(verdict, at, step, half, host),
        }
    }

    fn streaming(&self, half: Half) -> bool {
        match half {
            Half::Request => self.exchange.request.streaming,
            Half::Response => self.exchange.response.as_ref().is_some_and(|response| response.streaming),
        }
    }
}

#[cfg(test)]
mod tests;
