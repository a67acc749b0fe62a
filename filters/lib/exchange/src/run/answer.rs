//! What a verdict leads to: the next step, a hold, or the one place where the gateway answers for the backend.

use std::rc::Rc;

use super::{Half, Run, Stage};
use crate::chain::Step;
use crate::{
    Action, Decision, Flow, GivenAnswer, Host, Level, Metric, Outcome, Refusal, Reply, SecurityEvent, Verdict, transfer,
};

impl Run {
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
            Verdict::ReplaceBody(_) => {
                let message = format!("palisade: the step {} has no body in hand that it could replace", step.name);
                host.log(Level::Error, &message);
                None
            }
            Verdict::Skip(skip) => {
                // Behind that, other filters are done with the request already.
                if half == Half::Request && self.stage != Stage::Sent {
                    self.skips.add(skip, at, (step.name, step.may_skip), &mut self.exchange, host);
                }
                None
            }
            Verdict::Refuse(refusal) => Some(self.refuse(&refusal, step.name, host)),
            Verdict::Enforce { decision, hold_millis, reply } => {
                self.exchange.note_decided(&decision.about.policy, decision.score);
                self.enforce(decision, hold_millis, reply, at, half, host)
            }
        }
    }

    /// A refusal: the threat response may answer in its own way, otherwise it stands as it is.
    pub(crate) fn refuse(&mut self, refusal: &Refusal, by: &str, host: &dyn Host) -> Flow {
        let half = if self.exchange.response.is_none() { Half::Request } else { Half::Response };
        let behind = self.steps.list.len();
        // Every threat response is asked, whichever answers.
        self.exchange.note_decided("", self.exchange.score.total());
        if let Some(Verdict::Enforce { decision, hold_millis, reply }) = self.override_of(refusal, by, half, host) {
            let reply = reply.unwrap_or_else(|| refusal.reply(&self.exchange.request, host));
            return self
                .enforce(decision, hold_millis, Some(reply), behind, Half::Request, host)
                .unwrap_or(Flow::Continue);
        }
        let decision = Decision::new(refusal.action, self.exchange.score.total(), refusal.reason.clone());
        let decision = decision.enforced().held(refusal.hold_millis).about(refusal.about.clone());
        let event = SecurityEvent {
            category: refusal.category,
            outcome: Outcome::Blocked,
            module: by,
            message: &refusal.reason,
            decision: &decision,
        };
        self.exchange.emit(&event, host);
        let reply = refusal.reply(&self.exchange.request, host);
        self.enforce(decision, refusal.hold_millis, Some(reply), behind, half, host).unwrap_or(Flow::Continue)
    }

    /// What a threat response makes of a refusal: the strictest of them, of those alike the last one, so that a policy of the route goes
    /// before one of the global chain. One answers, and emits the one event.
    fn override_of(&mut self, refusal: &Refusal, by: &str, half: Half, host: &dyn Host) -> Option<Verdict> {
        if !refusal.scored {
            return None;
        }
        let steps = Rc::clone(&self.steps);
        let covered = steps.list.iter().zip(&self.covered).enumerate().filter(|(_, (_, covered))| **covered);
        let asked = covered.filter(|(at, (step, _))| !self.skips.cover(*at, step.name, step.role, false));
        let mut asked: Vec<_> =
            asked.map(|(_, (step, _))| (step.plugin.stricter(&self.exchange, refusal), step)).rev().collect();
        // The order of those alike stays.
        asked.sort_by_key(|(action, _)| std::cmp::Reverse(*action));
        asked
            .iter()
            .find_map(|(_, step)| step.turn(&mut self.exchange).on_refusal(&mut self.exchange, refusal, by, half, host))
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

    pub(super) fn answer(&mut self, mut reply: Reply, host: &dyn Host) -> Flow {
        for name in reply.make_safe() {
            host.log(
                Level::Error,
                &format!("palisade: the header {name} of an answer is not valid or not allowed; it was left out"),
            );
        }
        self.stage = Stage::Done;
        self.replaced_body = None;
        self.exchange.changes.discard();
        self.exchange.answered = true;
        let action = self.exchange.decision.as_ref().map_or(Action::Deny, |decision| decision.action);
        self.exchange.given = Some(GivenAnswer { status: reply.status, action });
        // What the steps still have to say belongs in the access log, which the gateway writes right after the answer.
        self.finish(host);
        self.hand_on(host);
        Flow::Answer(reply)
    }

    /// Leaves signals and events to the filters behind this one.
    pub(crate) fn hand_on(&mut self, host: &dyn Host) {
        if self.shared_exchange {
            // They have gone on meanwhile.
            if self.early.is_some() {
                transfer::merge(&mut self.exchange, host);
            }
            transfer::send(&self.exchange, host);
        }
    }
}
