//! A plugin that asks the control plane, and the messages that it shares with the double of tests.

use std::collections::BTreeMap;

use exchange::{Answer, Ask, Body, BodyNeed, Build, Exchange, Host, Plugin, Slot, Verdict};
use serde::Deserialize;

use super::{LIMIT, Phase, Refuse, SkipConfig, category, emit_observed};

/// What the control plane is asked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ProbeQuestion {
    /// What the double does; see its script.
    #[prost(string, tag = "1")]
    pub(crate) script: String,
    /// The body in hand, as far as it fits.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) body: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ProbeAnswer {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

impl snapshot::Topic for ProbeQuestion {
    const TOPIC: &'static str = "probe.ask";
    type Answer = ProbeAnswer;
}

/// How much of a body goes into a question, in bytes.
const BODY: usize = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    at: Phase,
    ask: String,
    #[serde(default = "wait_millis")]
    millis: u32,
    /// The body in hand goes with the question, in place of its beginning in it.
    #[serde(default)]
    send: bool,
    /// How much of a body is asked for, in bytes.
    #[serde(default = "limit")]
    limit: usize,
    /// What follows from an answer, by its text; `unavailable`, `overrun` and `no control plane` stand for those. It goes on otherwise.
    #[serde(default)]
    on: BTreeMap<String, Then>,
}

/// The first of these that is there.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Then {
    refuse: Option<Refuse>,
    skip: Option<SkipConfig>,
    /// The body that takes the place of the one in hand.
    replace: Option<String>,
    /// Asks for the body, whose length is then observed.
    need_body: bool,
    /// A further question.
    ask: Option<String>,
    /// Holds the request so long, in milliseconds, and then refuses it where `refuse` is there.
    hold: u32,
    /// The category of an event.
    observe: Option<String>,
}

const fn wait_millis() -> u32 {
    5000
}

const fn limit() -> usize {
    LIMIT
}

struct Asks(Config);

pub(crate) fn make(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let config = serde_json::from_slice(config).map_err(|error| error.to_string())?;
    Ok(Box::new(Asks(config)))
}

impl Asks {
    fn at(&self, phase: Phase, body: &[u8]) -> Verdict {
        match self.0.at == phase {
            true => self.ask(&self.0.ask, body),
            false => Verdict::Pass,
        }
    }

    fn ask(&self, script: &str, body: &[u8]) -> Verdict {
        let body = if self.0.send { Vec::new() } else { body.get(..BODY).unwrap_or(body).to_vec() };
        let ask = Ask::new(&ProbeQuestion { script: script.to_owned(), body }, self.0.millis);
        Verdict::Ask(if self.0.send { ask.with_body() } else { ask })
    }
}

impl Plugin for Asks {
    fn access(&self, _exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.at(Phase::Access, b"")
    }

    fn request(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::RequestBody => Verdict::NeedBody(BodyNeed { limit: self.0.limit }),
            Phase::RequestPieces => Verdict::ReadBody(BodyNeed { limit: self.0.limit }),
            _ => self.at(Phase::Request, b""),
        }
    }

    fn request_piece(&self, _exchange: &mut Exchange, bytes: &[u8], slot: &mut Slot, _host: &dyn Host) -> Verdict {
        let mut read: Vec<u8> = slot.take().unwrap_or_default();
        read.extend_from_slice(bytes);
        slot.put(read);
        Verdict::Pass
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::RequestPieces => self.ask(&self.0.ask, &slot.take::<Vec<u8>>().unwrap_or_default()),
            Phase::RequestBody => self.ask(&self.0.ask, body.bytes),
            _ => observe_length(exchange, body, host),
        }
    }

    fn response(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::ResponseBody => Verdict::NeedBody(BodyNeed { limit: self.0.limit }),
            _ => self.at(Phase::Response, b""),
        }
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::ResponseBody => self.ask(&self.0.ask, body.bytes),
            _ => observe_length(exchange, body, host),
        }
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let text = match (&answer, answer.read::<ProbeQuestion>()) {
            (Answer::NoControlPlane, _) => "no control plane".to_owned(),
            (Answer::Overrun, _) => "overrun".to_owned(),
            (_, Some(answer)) => answer.text,
            (_, None) => "unavailable".to_owned(),
        };
        let Some(then) = self.0.on.get(&text) else { return Verdict::Pass };
        if let Some(word) = &then.observe {
            emit_observed("probe-ask", category(word), &format!("answered: {text}"), exchange, host);
        }
        if then.hold > 0 {
            let decision = exchange::Decision::new(exchange::Action::Tarpit, 0.0, "held by a probe");
            let status = then.refuse.as_ref().map(|refuse| refuse.refusal().status);
            let reply = status.map(|status| exchange::Reply { status, ..exchange::Reply::default() });
            return Verdict::Enforce { decision: decision.enforced(), hold_millis: then.hold, reply };
        }
        match then {
            Then { refuse: Some(refuse), .. } => Verdict::Refuse(refuse.refusal()),
            Then { skip: Some(skip), .. } => Verdict::Skip(skip.skip()),
            Then { replace: Some(body), .. } => Verdict::ReplaceBody(body.clone().into_bytes()),
            Then { ask: Some(script), .. } => self.ask(script, b""),
            Then { need_body: true, .. } => Verdict::NeedBody(BodyNeed { limit: LIMIT }),
            _ => Verdict::Pass,
        }
    }
}

fn observe_length(exchange: &mut Exchange, body: Body<'_>, host: &dyn Host) -> Verdict {
    let message = format!("a body of {} bytes, complete: {}", body.bytes.len(), body.complete);
    emit_observed("probe-ask", category("upload"), &message, exchange, host);
    Verdict::Pass
}
