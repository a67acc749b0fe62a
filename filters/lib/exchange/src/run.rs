//! One exchange on its way through one chain.

use std::rc::Rc;

use crate::chain::{Step, Steps};
use crate::decision::{Action, Decision, Refusal, Reply};
use crate::{
    Answer, Ask, Body, Caller, Chain, Exchange, Host, Level, Metric, Outcome, PathReadings, Request, Response, Route,
    SecurityEvent, Slot, Verdict, transfer,
};

/// What the gateway is to do now.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Flow {
    /// Go on, with the body that [`Run::take_replaced_body`] gives in place of the old one, if any.
    Continue,
    /// Hold everything until so many bytes of the body are there, or all of it.
    Buffer {
        /// In bytes.
        limit: usize,
    },
    /// Hold everything until so many bytes of the body are there, or all of it, and hand it over as it comes:
    /// [`Run::request_piece`], then [`Run::request_end`]. After a piece this means that the next one is wanted.
    Read {
        /// In bytes.
        limit: usize,
    },
    /// Hold everything so long, then call [`Run::resume`].
    Hold {
        /// In milliseconds.
        millis: u32,
    },
    /// Hold everything until the control plane has answered or the time is up, then call [`Run::answered`].
    Ask(Ask),
    /// Answer in the backend's place.
    Answer(Reply),
}

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

/// One exchange on its way through one chain: the gateway's callbacks go in, a [`Flow`] comes out of each.
///
/// The order of the calls is the gateway's. A call that does not fit what was decided (a body after an answer) is
/// answered with [`Flow::Continue`].
pub struct Run {
    pub(crate) exchange: Exchange,
    pub(crate) steps: Rc<Steps>,
    /// Which steps act on this path.
    covered: Vec<bool>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) stage: Stage,
    shared_exchange: bool,
    replaced_body: Option<Vec<u8>>,
    /// The step that looks at what follows the body it was given, and from which byte on.
    pub(crate) rest: Option<(usize, usize)>,
    /// The request does not end with its headers.
    has_body: bool,
    finished: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// Nothing was asked yet.
    Ready,
    /// A step waits for the request's body.
    RequestBody(usize),
    /// A step reads the request's body, at most so many bytes.
    RequestPieces(usize, usize),
    /// The request is held; then it is answered, or goes on with this step.
    Held(Option<Reply>, usize),
    /// A step waits for an answer of the control plane, in the phase of access or not.
    Asked { at: usize, access: bool },
    /// The request went to the backend.
    Sent,
    /// A step waits for the response's body.
    ResponseBody(usize),
    /// It was answered by us, or the response is on its way.
    Done,
}

/// One of the two halves of an exchange, so that both go through the same loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Request,
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
        let caller = Caller::read(&chain.identity, peer, &request.headers, request.query(), &property);
        let route = Route {
            // A route of somebody else's has a name as well, and no steps of its own.
            name: match steps.name.as_bytes() == start.route {
                true => Rc::clone(&steps.name),
                false => String::from_utf8_lossy(start.route).into(),
            },
            id: Rc::clone(&steps.id),
            label: Rc::clone(&steps.label),
            node: Rc::clone(start.node),
        };
        let mut exchange = Exchange { request: start.request, caller, route, ..Exchange::default() };
        if chain.shared_exchange {
            transfer::receive(&mut exchange, host);
        }
        let shared_exchange = chain.shared_exchange;
        Self {
            exchange,
            steps,
            covered,
            slots,
            stage: Stage::Ready,
            shared_exchange,
            replaced_body: None,
            rest: None,
            has_body: false,
            finished: false,
        }
    }

    /// The exchange so far.
    #[must_use]
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Another `accept-encoding` for the request, once, before its headers go on.
    pub fn take_accept_encoding(&mut self) -> Option<Vec<u8>> {
        self.exchange.accept_encoding.take()
    }

    /// The request's headers are there: access validation, then the request transformers.
    pub fn request_headers(&mut self, has_body: bool, host: &dyn Host) -> Flow {
        if self.stage != Stage::Ready {
            return Flow::Continue;
        }
        self.has_body = has_body;
        self.access(0, host)
    }

    /// What came of a [`Flow::Ask`].
    pub fn answered(&mut self, answer: Answer, host: &dyn Host) -> Flow {
        let Stage::Asked { at, access } = self.stage else {
            return Flow::Continue;
        };
        self.stage = Stage::Done;
        let (Some(step), Some(slot)) = (self.step(at), self.slots.get_mut(at)) else {
            return Flow::Continue;
        };
        let verdict = step.plugin.answered(&mut self.exchange, answer, slot, host);
        match self.act(verdict, at, &step, Half::Request, host) {
            Some(flow) => flow,
            None if access => self.access(at + 1, host),
            None => self.advance(Half::Request, at + 1, self.has_body, None, host),
        }
    }

    /// The request's body, as far as [`Flow::Buffer`] asked for it.
    pub fn request_body(&mut self, body: Body<'_>, host: &dyn Host) -> Flow {
        match self.stage {
            Stage::RequestBody(at) => self.with_body(Half::Request, at, body, host),
            _ => Flow::Continue,
        }
    }

    /// A piece of the request's body, as [`Flow::Read`] asked for it.
    pub fn request_piece(&mut self, bytes: &[u8], host: &dyn Host) -> Flow {
        let Stage::RequestPieces(at, limit) = self.stage else {
            return Flow::Continue;
        };
        // The body that takes the place of this one is handed over at its end.
        if self.replaced_body.is_some() {
            return Flow::Read { limit };
        }
        self.piece(at, bytes, host).unwrap_or(Flow::Read { limit })
    }

    /// All pieces were handed over that [`Flow::Read`] asked for; `complete` if they are the whole body.
    pub fn request_end(&mut self, complete: bool, host: &dyn Host) -> Flow {
        let Stage::RequestPieces(at, limit) = self.stage else {
            return Flow::Continue;
        };
        self.rest = (!complete && self.replaced_body.is_none()).then_some((at, limit));
        if let Some(replaced) = self.replaced_body.take() {
            let flow = self.piece(at, replaced.get(..limit).unwrap_or(&replaced), host);
            let complete = replaced.len() <= limit;
            self.replaced_body = Some(replaced);
            return flow.unwrap_or_else(|| self.end_of_pieces(at, complete, host));
        }
        self.end_of_pieces(at, complete, host)
    }

    /// The first bytes of a request's stream that is not held: at least five, or all there are.
    pub fn stream_start(&mut self, bytes: &[u8], host: &dyn Host) -> Flow {
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        for at in 0..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let verdict = step.plugin.stream_start(&mut self.exchange, bytes, slot, host);
            if let Verdict::Refuse(refusal) = verdict {
                return self.refuse(&refusal, step.name, host);
            }
        }
        Flow::Continue
    }

    /// The time of a [`Flow::Hold`] is over.
    pub fn resume(&mut self, host: &dyn Host) -> Flow {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Held(Some(reply), _) => self.answer(reply, host),
            Stage::Held(None, next) => self.advance(Half::Request, next, self.has_body, None, host),
            other => {
                self.stage = other;
                Flow::Continue
            }
        }
    }

    /// The response's headers are there.
    pub fn response_headers(&mut self, response: Response, has_body: bool, host: &dyn Host) -> Flow {
        // An answer of our own comes by here as well, and is not looked at again.
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        self.exchange.response = Some(response);
        // Filters behind this one in the request's order come before it in the response's.
        if self.shared_exchange {
            transfer::receive(&mut self.exchange, host);
        }
        self.advance(Half::Response, 0, has_body, None, host)
    }

    /// The response's body, as far as [`Flow::Buffer`] asked for it.
    pub fn response_body(&mut self, body: Body<'_>, host: &dyn Host) -> Flow {
        match self.stage {
            Stage::ResponseBody(at) => self.with_body(Half::Response, at, body, host),
            _ => Flow::Continue,
        }
    }

    /// The exchange is over. Only the first call counts.
    pub fn finish(&mut self, host: &dyn Host) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if self.shared_exchange {
            transfer::receive_decision(&mut self.exchange, host);
        }
        for at in 0..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            if let Some(slot) = self.slots.get_mut(at) {
                step.plugin.finish(&mut self.exchange, slot, host);
            }
        }
    }

    /// The body that takes the place of the one that was handed over, once.
    pub fn take_replaced_body(&mut self) -> Option<Vec<u8>> {
        self.replaced_body.take()
    }

    /// Access validation from a step on, then the request transformers.
    fn access(&mut self, from: usize, host: &dyn Host) -> Flow {
        for at in from..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            let flow = match step.plugin.access(&mut self.exchange, host) {
                Verdict::Ask(ask) => Some(self.ask(ask, at, true, host)),
                verdict => self.act(verdict, at, &step, Half::Request, host),
            };
            if let Some(flow) = flow {
                return flow;
            }
        }
        self.advance(Half::Request, 0, self.has_body, None, host)
    }

    fn ask(&mut self, ask: Ask, at: usize, access: bool, host: &dyn Host) -> Flow {
        self.stage = Stage::Asked { at, access };
        self.hand_on(host);
        Flow::Ask(ask)
    }

    pub(crate) fn step(&self, at: usize) -> Option<Rc<Step>> {
        let covered = self.covered.get(at).copied().unwrap_or(false);
        self.steps.list.get(at).filter(|step| covered && !step.on_refusal_only).cloned()
    }

    /// The step that waited for the body gets it, then the steps behind it are asked.
    fn with_body(&mut self, half: Half, at: usize, body: Body<'_>, host: &dyn Host) -> Flow {
        if let Some(flow) = self.hand_over(half, at, body, host) {
            return flow;
        }
        self.advance(half, at + 1, true, Some(body), host)
    }

    /// Gives a piece to the step that reads the body; `None` if it reads on.
    fn piece(&mut self, at: usize, bytes: &[u8], host: &dyn Host) -> Option<Flow> {
        let (step, slot) = (self.step(at)?, self.slots.get_mut(at)?);
        match step.plugin.request_piece(&mut self.exchange, bytes, slot, host) {
            verdict @ Verdict::Refuse(_) => self.act(verdict, at, &step, Half::Request, host),
            _ => None,
        }
    }

    /// The step has read the body: what it says of it, and the steps behind it.
    fn end_of_pieces(&mut self, at: usize, complete: bool, host: &dyn Host) -> Flow {
        let verdict = match (self.step(at), self.slots.get_mut(at)) {
            (Some(step), Some(slot)) => {
                let end = Body { bytes: &[], complete };
                let verdict = step.plugin.request_body(&mut self.exchange, end, slot, host);
                self.act(verdict, at, &step, Half::Request, host)
            }
            _ => None,
        };
        self.keep_rest_of(at);
        verdict.unwrap_or_else(|| self.advance(Half::Request, at + 1, true, None, host))
    }

    /// Gives the body to one step, in its replaced form where an earlier step has replaced it.
    fn hand_over(&mut self, half: Half, at: usize, body: Body<'_>, host: &dyn Host) -> Option<Flow> {
        let step = self.step(at)?;
        let replaced = self.replaced_body.take();
        let body = Body { bytes: replaced.as_deref().unwrap_or(body.bytes), complete: body.complete };
        let slot = self.slots.get_mut(at)?;
        let verdict = match half {
            Half::Request => step.plugin.request_body(&mut self.exchange, body, slot, host),
            Half::Response => step.plugin.response_body(&mut self.exchange, body, slot, host),
        };
        self.replaced_body = replaced;
        self.act(verdict, at, &step, half, host)
    }

    fn advance(&mut self, half: Half, from: usize, has_body: bool, body: Option<Body<'_>>, host: &dyn Host) -> Flow {
        for at in from..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let verdict = match half {
                Half::Request => step.plugin.request(&mut self.exchange, has_body, slot, host),
                Half::Response => step.plugin.response(&mut self.exchange, has_body, slot, host),
            };
            let flow = match (verdict, body) {
                (Verdict::NeedBody(_) | Verdict::ReadBody(_), _) if self.streaming(half) || !has_body => None,
                (Verdict::ReadBody(_), _) if half == Half::Response => None,
                (Verdict::ReadBody(need), Some(body)) if body.complete || body.bytes.len() >= need.limit => {
                    let replaced = self.replaced_body.take();
                    let seen = Body { bytes: replaced.as_deref().unwrap_or(body.bytes), complete: body.complete };
                    let seen = seen.prefix(need.limit);
                    let flow = self.piece(at, seen.bytes, host);
                    let flow = flow.or_else(|| {
                        let slot = self.slots.get_mut(at)?;
                        let end = Body { bytes: &[], complete: seen.complete };
                        let verdict = step.plugin.request_body(&mut self.exchange, end, slot, host);
                        self.act(verdict, at, &step, half, host)
                    });
                    if !seen.complete && replaced.is_none() {
                        self.rest = Some((at, need.limit));
                        self.keep_rest_of(at);
                    }
                    self.replaced_body = self.replaced_body.take().or(replaced);
                    flow
                }
                (Verdict::ReadBody(need), _) => {
                    self.stage = Stage::RequestPieces(at, need.limit);
                    Some(Flow::Read { limit: need.limit })
                }
                (Verdict::NeedBody(need), Some(body)) if body.complete || body.bytes.len() >= need.limit => {
                    self.hand_over(half, at, body.prefix(need.limit), host)
                }
                (Verdict::NeedBody(need), _) => {
                    self.stage = match half {
                        Half::Request => Stage::RequestBody(at),
                        Half::Response => Stage::ResponseBody(at),
                    };
                    Some(Flow::Buffer { limit: need.limit })
                }
                // What was handed over of a body would not be there any more when the answer comes.
                (Verdict::Ask(ask), None) if half == Half::Request => Some(self.ask(ask, at, false, host)),
                (verdict, _) => self.act(verdict, at, &step, half, host),
            };
            if let Some(flow) = flow {
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

    fn streaming(&self, half: Half) -> bool {
        match half {
            Half::Request => self.exchange.request.streaming,
            Half::Response => self.exchange.response.as_ref().is_some_and(|response| response.streaming),
        }
    }

    /// Carries a verdict out; `None` means that the next step is to be asked.
    pub(crate) fn act(
        &mut self,
        verdict: Verdict,
        at: usize,
        step: &Step,
        half: Half,
        host: &dyn Host,
    ) -> Option<Flow> {
        match verdict {
            Verdict::Pass | Verdict::NeedBody(_) | Verdict::ReadBody(_) | Verdict::Ask(_) => None,
            Verdict::ReplaceBody(body) => {
                self.replaced_body = Some(body);
                None
            }
            Verdict::Refuse(refusal) => Some(self.refuse(&refusal, step.name, host)),
            Verdict::Enforce { decision, hold_millis, reply } => {
                self.enforce(decision, hold_millis, reply, at, half, host)
            }
        }
    }

    /// A refusal: the threat response may answer in its own way, otherwise it stands as it is.
    pub(crate) fn refuse(&mut self, refusal: &Refusal, by: &str, host: &dyn Host) -> Flow {
        let steps = Rc::clone(&self.steps);
        let asked = steps.list.iter().zip(&self.covered).filter(|(_, covered)| refusal.scored && **covered);
        let verdict =
            asked.filter_map(|(step, _)| step.plugin.on_refusal(&mut self.exchange, refusal, by, host)).next();
        if let Some(Verdict::Enforce { decision, hold_millis, reply }) = verdict {
            let reply = reply.unwrap_or_else(|| self.reply(refusal));
            return self
                .enforce(decision, hold_millis, Some(reply), steps.list.len(), Half::Request, host)
                .unwrap_or(Flow::Continue);
        }
        let decision = Decision {
            action: Action::Deny,
            score: self.exchange.score.total(),
            tier: None,
            dry_run: false,
            enforced: true,
            reason: refusal.reason.clone(),
            held_millis: 0,
        };
        let event = SecurityEvent {
            category: refusal.category,
            outcome: Outcome::Blocked,
            module: by,
            message: &refusal.reason,
            decision: &decision,
        };
        self.exchange.emit(&event, host);
        self.exchange.decision = Some(decision);
        let reply = self.reply(refusal);
        self.answer(reply, host)
    }

    fn reply(&self, refusal: &Refusal) -> Reply {
        let mut reply = Reply::refusal(refusal.status, &self.exchange.request.id);
        reply.headers.extend(refusal.headers.iter().cloned());
        reply
    }

    fn enforce(
        &mut self,
        decision: Decision,
        hold_millis: u32,
        reply: Option<Reply>,
        at: usize,
        half: Half,
        host: &dyn Host,
    ) -> Option<Flow> {
        self.exchange.decision = Some(decision);
        // A response that is there already is not made better by waiting.
        if hold_millis > 0 && half == Half::Request && self.exchange.response.is_none() {
            host.count(Metric::Held);
            self.stage = Stage::Held(reply, at + 1);
            self.hand_on(host);
            return Some(Flow::Hold { millis: hold_millis });
        }
        reply.map(|reply| self.answer(reply, host))
    }

    fn answer(&mut self, mut reply: Reply, host: &dyn Host) -> Flow {
        for name in reply.make_safe() {
            host.log(
                Level::Error,
                &format!("palisade: the header {name} of an answer has a byte that none may have; it was left out"),
            );
        }
        self.stage = Stage::Done;
        // What the steps still have to say belongs in the access log, which the gateway writes right after the answer.
        self.finish(host);
        self.hand_on(host);
        Flow::Answer(reply)
    }

    /// Leaves signals and events to the filters behind this one.
    pub(crate) fn hand_on(&self, host: &dyn Host) {
        if self.shared_exchange {
            transfer::send(&self.exchange, host);
        }
    }
}

#[cfg(test)]
mod tests;
