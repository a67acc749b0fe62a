//! Messages that wait: for an answer of the control plane, or for the end of a delay.

use snapshot::{MAX_ANSWER, MAX_ASK_BODY, MAX_WAIT_MILLIS};

use super::{Half, Run, Stage};
use crate::ask::MAX_FOLLOW_UPS;
use crate::{Answer, Ask, Flow, Host, Level, Metric, Verdict};

/// A step that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asking {
    /// The step's place.
    pub(super) at: usize,
    /// The phase in which it asked.
    pub(super) phase: Phase,
    /// How many further questions it may ask in this phase.
    pub(super) further: u8,
    /// The body in hand goes with the question.
    pub(super) sends: bool,
}

/// The body that goes with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedBody<'a> {
    /// How many bytes from its beginning on are sent.
    pub length: usize,
    /// They are the whole body.
    pub complete: bool,
    /// The bytes, where a step has replaced the body; otherwise the gateway keeps them.
    pub replaced: Option<&'a [u8]>,
}

/// The phase in which a step asks. The answer is carried out as if that phase had returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Access,
    /// At the headers; the body may be there already.
    Headers(Half),
    /// With the body, after [`Verdict::NeedBody`].
    Body(Half, InHand),
    /// Behind the pieces of the request's body, after [`Verdict::ReadBody`].
    Pieces(InHand),
}

/// The body that a step was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InHand {
    /// In bytes.
    pub(super) length: usize,
    /// Nothing follows.
    pub(super) complete: bool,
}

impl Asking {
    /// The first question of a step in a phase.
    pub(super) fn first(at: usize, phase: Phase) -> Self {
        Self { at, phase, further: MAX_FOLLOW_UPS, sends: false }
    }
}

impl Phase {
    pub(super) fn half(self) -> Half {
        match self {
            Self::Access | Self::Pieces(_) => Half::Request,
            Self::Headers(half) | Self::Body(half, _) => half,
        }
    }

    fn in_hand(self) -> Option<InHand> {
        match self {
            Self::Access | Self::Headers(_) => None,
            Self::Body(_, body) | Self::Pieces(body) => Some(body),
        }
    }
}

impl Run {
    /// The answer to a [`Flow::Ask`]. The gateway still has the body that was handed over before: a flow that asks for it is to be
    /// answered with it at once.
    pub fn answered(&mut self, answer: Answer, host: &dyn Host) -> Flow {
        let Stage::Asked(asking) = self.stage else {
            return Flow::Continue;
        };
        // Nothing went on meanwhile.
        self.stage = Stage::Done;
        let answer = match answer {
            Answer::Data(data) if data.len() > MAX_ANSWER => Answer::Unavailable,
            answer => answer,
        };
        let Asking { at, phase, further, .. } = asking;
        let Some(step) = self.step(at) else {
            return self.go_on_behind(asking, host);
        };
        let verdict = match self.answer_to(asking, answer, host) {
            // A step that asks without end gets no answer, and then has no more to say.
            Verdict::Ask(_) if further == 0 => {
                host.log(Level::Error, &format!("palisade: the step {} asks too often; it gets no answer", step.name));
                match self.answer_to(asking, Answer::Unavailable, host) {
                    Verdict::Ask(_) => Verdict::Pass,
                    verdict => verdict,
                }
            }
            verdict => verdict,
        };
        let further = further.saturating_sub(1);
        let flow = match (phase, verdict) {
            (Phase::Headers(half), verdict) => {
                let has_body = self.has_body_of(half);
                self.at_headers(verdict, (at, further), &step, (half, has_body), None, host)
            }
            (_, Verdict::Ask(ask)) => Some(self.ask(ask, Asking { further, ..asking }, host)),
            (Phase::Body(half, body), Verdict::ReplaceBody(new)) => self.replace_body(half, new, body, &step, host),
            (Phase::Pieces(body), Verdict::ReplaceBody(new)) => {
                self.replace_body(Half::Request, new, body, &step, host)
            }
            (_, verdict) => self.act(verdict, at, &step, phase.half(), host),
        };
        flow.unwrap_or_else(|| self.go_on_behind(asking, host))
    }

    /// Hands an answer to the step that has asked.
    fn answer_to(&mut self, asking: Asking, answer: Answer, host: &dyn Host) -> Verdict {
        if matches!(answer, Answer::Unavailable | Answer::Overrun) {
            host.count(Metric::QuestionsUnanswered);
        }
        let step = self.step(asking.at);
        if let Some(step) = &step {
            self.look_ahead(asking.at, step);
        }
        match (step, self.slots.get_mut(asking.at)) {
            (Some(step), Some(slot)) => step.turn(&mut self.exchange).answered(&mut self.exchange, answer, slot, host),
            _ => Verdict::Pass,
        }
    }

    /// Goes on with the steps behind one that has asked, in its phase. Those that want the body ask for it again.
    fn go_on_behind(&mut self, Asking { at, phase, .. }: Asking, host: &dyn Host) -> Flow {
        match phase {
            Phase::Access => self.access(at + 1, host),
            Phase::Headers(half) | Phase::Body(half, _) => {
                self.advance(half, at + 1, self.has_body_of(half), None, host)
            }
            Phase::Pieces(_) => {
                self.keep_rest_of(at);
                self.advance(Half::Request, at + 1, true, None, host)
            }
        }
    }

    /// The body that goes with the question of a [`Flow::Ask`], until it is answered; `None` where there is none.
    #[must_use]
    pub fn asked_body(&self) -> Option<AskedBody<'_>> {
        let Stage::Asked(asking) = &self.stage else { return None };
        let InHand { length, complete } = asking.phase.in_hand().filter(|_| asking.sends)?;
        Some(AskedBody { length, complete, replaced: self.replaced_body.as_deref() })
    }

    /// Whether the request is held for an answer of this host's own at the end of the delay.
    #[must_use]
    pub fn is_held_for_answer(&self) -> bool {
        matches!(self.stage, Stage::Held(Some(_), _))
    }

    fn has_body_of(&self, half: Half) -> bool {
        match half {
            Half::Request => self.has_body,
            Half::Response => self.response_has_body,
        }
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

    /// Asks the control plane for a step. What is too long to be sent has no answer.
    pub(super) fn ask(&mut self, ask: Ask, asking: Asking, host: &dyn Host) -> Flow {
        self.stage = Stage::Asked(Asking { sends: ask.body, ..asking });
        if ask.body && asking.phase.in_hand().is_none_or(|body| body.length > MAX_ASK_BODY) {
            let topic = &ask.question.topic;
            host.log(
                Level::Error,
                &format!("palisade: a question about {topic} has no body in hand, or too long a one"),
            );
            return self.answered(Answer::Unavailable, host);
        }
        if !ask.question.fits() {
            host.log(Level::Error, &format!("palisade: a question about {} is over the limits", ask.question.topic));
            return self.answered(Answer::Unavailable, host);
        }
        self.hand_on(host);
        Flow::Ask(Ask { millis: ask.millis.min(MAX_WAIT_MILLIS), ..ask })
    }
}
