//! Bodies: handed over whole, piece by piece, or the first bytes of a stream; and a body that takes the place of another.

use super::wait::{Asking, InHand, Phase};
use super::{Half, Run, Stage};
use crate::chain::Step;
use crate::{Body, Flow, Host, Verdict};

impl Run {
    /// The request's body, as far as [`Flow::Buffer`] asked for it.
    pub fn request_body(&mut self, body: Body<'_>, host: &dyn Host) -> Flow {
        match self.stage {
            Stage::RequestBody(at, limit) => {
                self.body_seen |= body.complete;
                self.with_body(Half::Request, (at, limit), body, host)
            }
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
        self.read = self.read.saturating_add(bytes.len());
        self.piece(at, bytes, host).unwrap_or(Flow::Read { limit })
    }

    /// All pieces were handed over that [`Flow::Read`] asked for; `complete` if they are the whole body.
    pub fn request_end(&mut self, complete: bool, host: &dyn Host) -> Flow {
        let Stage::RequestPieces(at, limit) = self.stage else {
            return Flow::Continue;
        };
        self.body_seen |= complete;
        self.rest = (!complete && self.replaced_body.is_none()).then_some((at, limit));
        if let Some(replaced) = self.replaced_body.take() {
            let seen = Body { bytes: &replaced, complete: true }.prefix(limit);
            let body = InHand { length: seen.bytes.len(), complete: seen.complete };
            let flow = self.piece(at, seen.bytes, host);
            self.replaced_body = Some(replaced);
            return flow.unwrap_or_else(|| self.end_of_pieces(at, body, host));
        }
        self.end_of_pieces(at, InHand { length: self.read, complete }, host)
    }

    /// The first bytes of a request's stream that is not held: at least five, or all there are.
    pub fn stream_start(&mut self, bytes: &[u8], host: &dyn Host) -> Flow {
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        for at in 0..self.steps.list.len() {
            let Some(step) = self.step(at) else { continue };
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let verdict = step.turn(&mut self.exchange).stream_start(&mut self.exchange, bytes, slot, host);
            if let Verdict::Refuse(refusal) = verdict {
                return self.refuse(&refusal, step.name, host);
            }
        }
        Flow::Continue
    }

    /// The response's body, as far as [`Flow::Buffer`] asked for it.
    pub fn response_body(&mut self, body: Body<'_>, host: &dyn Host) -> Flow {
        match self.stage {
            Stage::ResponseBody(at, limit) => self.with_body(Half::Response, (at, limit), body, host),
            _ => Flow::Continue,
        }
    }

    /// The step that waited for the body gets it, then the steps behind it are asked.
    fn with_body(&mut self, half: Half, step: (usize, usize), body: Body<'_>, host: &dyn Host) -> Flow {
        if let Some(flow) = self.hand_over(half, step, body, host) {
            return flow;
        }
        self.advance(half, step.0 + 1, true, Some(body), host)
    }

    /// Gives a piece to the step that reads the body; `None` if it reads on.
    pub(super) fn piece(&mut self, at: usize, bytes: &[u8], host: &dyn Host) -> Option<Flow> {
        let (step, slot) = (self.step(at)?, self.slots.get_mut(at)?);
        match step.turn(&mut self.exchange).request_piece(&mut self.exchange, bytes, slot, host) {
            verdict @ Verdict::Refuse(_) => self.act(verdict, at, &step, Half::Request, host),
            _ => None,
        }
    }

    /// The step has read the body: what it says of it, and the steps behind it.
    fn end_of_pieces(&mut self, at: usize, body: InHand, host: &dyn Host) -> Flow {
        let flow = self.step(at).and_then(|step| self.hand_over_end(at, &step, body, host));
        self.keep_rest_of(at);
        flow.unwrap_or_else(|| self.advance(Half::Request, at + 1, true, None, host))
    }

    /// Tells a step that it has all pieces that it asked for.
    fn hand_over_end(&mut self, at: usize, step: &Step, body: InHand, host: &dyn Host) -> Option<Flow> {
        let slot = self.slots.get_mut(at)?;
        let end = Body { bytes: &[], complete: body.complete };
        match step.turn(&mut self.exchange).request_body(&mut self.exchange, end, slot, host) {
            Verdict::Ask(ask) => Some(self.ask(ask, Asking::first(at, Phase::Pieces(body)), host)),
            Verdict::ReplaceBody(new) => self.replace_body(Half::Request, new, body, step, host),
            verdict => self.act(verdict, at, step, Half::Request, host),
        }
    }

    /// Gives a step that reads the body all of it at once, because an earlier step has waited for it.
    pub(super) fn read_at_once(
        &mut self,
        at: usize,
        step: &Step,
        body: Body<'_>,
        limit: usize,
        host: &dyn Host,
    ) -> Option<Flow> {
        let replaced = self.replaced_body.take();
        let seen = in_its_place(replaced.as_deref(), body, limit);
        let in_hand = InHand { length: seen.bytes.len(), complete: seen.complete };
        if !seen.complete && replaced.is_none() {
            self.rest = Some((at, limit));
        }
        let flow = self.piece(at, seen.bytes, host);
        self.replaced_body = replaced;
        let flow = flow.or_else(|| self.hand_over_end(at, step, in_hand, host));
        self.keep_rest_of(at);
        flow
    }

    /// Gives the body to one step, in its replaced form where an earlier step has replaced it.
    pub(super) fn hand_over(
        &mut self,
        half: Half,
        (at, limit): (usize, usize),
        body: Body<'_>,
        host: &dyn Host,
    ) -> Option<Flow> {
        let step = self.step(at)?;
        let slot = self.slots.get_mut(at)?;
        let replaced = self.replaced_body.take();
        let body = in_its_place(replaced.as_deref(), body, limit);
        let in_hand = InHand { length: body.bytes.len(), complete: body.complete };
        let verdict = match half {
            Half::Request => step.turn(&mut self.exchange).request_body(&mut self.exchange, body, slot, host),
            Half::Response => step.turn(&mut self.exchange).response_body(&mut self.exchange, body, slot, host),
        };
        self.replaced_body = replaced;
        match verdict {
            Verdict::Ask(ask) => Some(self.ask(ask, Asking::first(at, Phase::Body(half, in_hand)), host)),
            Verdict::ReplaceBody(new) => self.replace_body(half, new, in_hand, &step, host),
            verdict => self.act(verdict, at, &step, half, host),
        }
    }

    /// Puts another body in place of the one that a step has in hand. What it has only a part of cannot be replaced: the rest
    /// would follow the new body.
    pub(super) fn replace_body(
        &mut self,
        half: Half,
        new: Vec<u8>,
        old: InHand,
        step: &Step,
        host: &dyn Host,
    ) -> Option<Flow> {
        // Nothing of it goes on.
        if half == Half::Request && self.withholds_body() {
            return None;
        }
        let outcome = match old.complete {
            true => self.exchange.replaces_body(half, old.length, new.len()),
            false => Err("more of the body follows than the step has asked for"),
        };
        match outcome {
            Ok(()) => {
                self.replaced_body = Some(new);
                None
            }
            Err(why) => Some(self.body_not_replaced(why, step.name, host)),
        }
    }

    /// The body that takes the place of the one that was handed over, once.
    pub fn take_replaced_body(&mut self) -> Option<Vec<u8>> {
        self.replaced_body.take()
    }
}

/// The body that a step gets: the one that an earlier step has put in place, which is there as a whole, or what has come.
fn in_its_place<'a>(replaced: Option<&'a [u8]>, body: Body<'a>, limit: usize) -> Body<'a> {
    replaced.map_or(body, |bytes| Body { bytes, complete: true }).prefix(limit)
}
