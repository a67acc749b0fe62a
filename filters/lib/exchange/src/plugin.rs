//! What a plugin is.

use std::any::Any;

#[cfg(doc)]
use crate::MAX_FOLLOW_UPS;
use crate::{
    Action, Answer, Ask, Body, Build, Decision, Exchange, Half, Headers, Host, Refusal, Reply, Role, Skip, SkipRight,
    Timer,
};

/// A configured plugin: one step of one chain, immutable, shared by all requests of a worker.
///
/// Every method has an answer by default, so a plugin writes only the phases that it takes part in. Phases come in the
/// order of the methods. A plugin keeps what one exchange needs to remember in its [`Slot`].
///
/// While the headers of a message are held, that is until the last step has continued with them and with the body that it has
/// asked for, a plugin may change them ([`Exchange::change_request`], [`Exchange::change_response`],
/// [`Exchange::set_response_status`]). Changes are not a verdict: a phase may make some and return any verdict. Later steps see
/// them, and the gateway carries them out when the message goes on. If it is refused instead, none is carried out. A step that is
/// skipped is not called, and so changes nothing from then on; what it changed before stays. The frame knows no dry run: a plugin
/// that only monitors makes no changes.
pub trait Plugin {
    /// ValidateAccess: who is calling, before anything is parsed.
    fn access(&self, _exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// TransformRequest at the headers. `has_body` is false where the request ends with them.
    fn request(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// A piece of the body, in order, after [`Verdict::ReadBody`]. What it refuses ends the request there and then; every
    /// verdict but [`Verdict::Refuse`] asks for the next piece.
    fn request_piece(&self, _exchange: &mut Exchange, _bytes: &[u8], _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// TransformRequest with the body, after [`Verdict::NeedBody`]. After [`Verdict::ReadBody`] the pieces were handed over
    /// already, the body is empty, and what is said of its end is whether all of it was.
    fn request_body(&self, _exchange: &mut Exchange, _body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// The response has come before the body that it waits for, so that the backend answers a request of which it has the headers
    /// alone (gateways that do not hold headers), or the gateway itself has answered. Of the body nothing has reached the
    /// backend, and nothing will. `status` is the one of the response. By default an empty body is handed over
    /// ([`Plugin::request_body`]), unless the response is an error ([`is_error`]): the request was refused already then, and what
    /// it lacks is on its way.
    fn without_body(&self, exchange: &mut Exchange, status: u16, slot: &mut Slot, host: &dyn Host) -> Verdict {
        if is_error(status) {
            return Verdict::Pass;
        }
        self.request_body(exchange, Body { bytes: &[], complete: true }, slot, host)
    }

    /// Whether it looks at what follows the body that it was given by [`Plugin::request_body`], after [`Verdict::ReadBody`].
    fn reads_rest(&self, _slot: &mut Slot) -> bool {
        false
    }

    /// A piece of the body behind what it asked for, in order, before it goes on to the backend; `end` if nothing follows. The
    /// headers and all that is in front went already; all that can be done is [`Verdict::Refuse`].
    fn request_rest(
        &self,
        _exchange: &mut Exchange,
        _bytes: &[u8],
        _end: bool,
        _slot: &mut Slot,
        _host: &dyn Host,
    ) -> Verdict {
        Verdict::Pass
    }

    /// The first bytes of a request's stream that is not held: at least five, or all there are. The headers went to the
    /// backend already; all that can be done is [`Verdict::Refuse`].
    fn stream_start(&self, _exchange: &mut Exchange, _bytes: &[u8], _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// Whether it looks at the trailers of requests. Where no step of a chain does, they are dropped.
    fn inspects_trailers(&self) -> bool {
        false
    }

    /// The request's trailers, before they go on: after the body, which went on already where it was not held.
    fn request_trailers(
        &self,
        _exchange: &mut Exchange,
        _trailers: &Headers,
        _slot: &mut Slot,
        _host: &dyn Host,
    ) -> Verdict {
        Verdict::Pass
    }

    /// The answer to [`Verdict::Ask`], in place of the phase that returned it: the verdict is carried out as that phase's, so
    /// after headers it may want the body, and with a body it may replace it. It may ask again, [`MAX_FOLLOW_UPS`] times in one
    /// phase; after that the answer is [`Answer::Unavailable`]. By default the message goes on, whatever the answer.
    fn answered(&self, _exchange: &mut Exchange, _answer: Answer, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// TransformResponse at the headers; `exchange.response` is there.
    fn response(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// TransformResponse with the body, after [`Verdict::NeedBody`].
    fn response_body(&self, _exchange: &mut Exchange, _body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Pass
    }

    /// Whether it looks at the trailers of responses.
    fn inspects_response_trailers(&self) -> bool {
        false
    }

    /// The response's trailers, before they go on to the client: after the body, which went on already where it was not held.
    /// Signals and events can be left; nothing can be refused any more.
    fn response_trailers(&self, _exchange: &mut Exchange, _trailers: &Headers, _slot: &mut Slot, _host: &dyn Host) {}

    /// The exchange is over, however it ended.
    fn finish(&self, _exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) {}

    /// Does a piece of what requests would otherwise wait for, such as building a pattern, while the worker has nothing else to
    /// do; 20 ms at most. `false` once there is nothing left to do.
    fn prepare(&self) -> bool {
        false
    }

    /// When [`Plugin::on_timer`] runs; `None` where it never does. Asked once, when the chain is made.
    fn timer(&self) -> Option<Timer> {
        None
    }

    /// The task that runs on the timer, outside of any exchange: of the host, what belongs to a request is absent. It takes 20 ms
    /// at most.
    fn on_timer(&self, _host: &dyn Host) {}

    /// The id of the challenge provider whose submissions it judges; `None` if it judges none.
    fn judges(&self) -> Option<&str> {
        None
    }

    /// The action by which [`Plugin::on_refusal`] would take the place of a refusal; `None` where it would leave the refusal as it is. Of
    /// several threat responses the one with the strictest action is asked, and of those alike the last one, which is that of the route.
    fn stricter(&self, _exchange: &Exchange, _refusal: &Refusal) -> Option<Action> {
        None
    }

    /// Lets a threat response override the refusal of the plugin `by`, of a request or of a response: the verdict to carry out
    /// instead. `None`, from every other plugin, leaves the refusal as it is.
    fn on_refusal(
        &self,
        _exchange: &mut Exchange,
        _refusal: &Refusal,
        _by: &str,
        _half: Half,
        _host: &dyn Host,
    ) -> Option<Verdict> {
        None
    }
}

/// What a plugin decides in one phase.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Go on. Signals, if any, were left in the exchange.
    Pass,
    /// Hold everything until the body is there, then call again with it. Ignored for streams; for an upgrade that announces a body it is
    /// called at once, with a body that is empty and not complete.
    NeedBody(BodyNeed),
    /// Hold everything until the body is there, and hand it over piece by piece as it comes. For requests alone, and ignored
    /// for streams.
    ReadBody(BodyNeed),
    /// Refuse. The chain asks the threat response first where the refusal is scored, and emits the event.
    Refuse(Refusal),
    /// Hold everything until the control plane has answered, then call [`Plugin::answered`]. In `access`, `request`,
    /// `request_body`, `response`, `response_body` and `answered`; elsewhere it equals [`Verdict::Pass`]. The body that was
    /// handed over stays: steps behind get it after the answer.
    Ask(Ask),
    /// Put another body in place of the one that was just handed over, in `request_body`, `response_body`, and `answered` after a
    /// question in one of them; elsewhere it is ignored and logged. Later steps get the new body.
    ///
    /// The new body is not coded. What the old one made true is changed or removed: `content-length`, `content-encoding`,
    /// `content-digest`, `repr-digest`, `digest`, `content-md5`, and in a response `etag`, `last-modified` and `accept-ranges`. The
    /// type stays unless the plugin changes it. Signatures of clients over a digest (RFC 9421) are not valid any more.
    ///
    /// The exchange is refused with 500 where the body cannot be replaced: the step was given a part of it; the headers have gone
    /// on (gateways that do not hold them); or it is a part of a representation (a request with `content-range`,
    /// [`Response::is_part`](crate::Response::is_part)) and the new one has another length or the old one was coded. Responses to HEAD, 204 and 304 have no body.
    ReplaceBody(Vec<u8>),
    /// Go on, and skip steps behind this one for the rest of the exchange. Only before the request goes to the backend, and in
    /// place of a wait for its body; otherwise it equals [`Verdict::Pass`]. Ignored and logged without the right to it, see
    /// [`PluginDefinition::may_skip`].
    Skip(Skip),
    /// The decision was made and its event emitted: carry it out.
    Enforce {
        /// What was decided.
        decision: Decision,
        /// Hold the request that long first, in milliseconds.
        hold_millis: u32,
        /// Answer with this; `None` lets the request pass.
        reply: Option<Reply>,
    },
}

/// Whether a response of this status says that the request was not carried out.
#[must_use]
pub fn is_error(status: u16) -> bool {
    status >= 400
}

/// How much of a body a plugin wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyNeed {
    /// In bytes. Buffering stops there; what is there is handed over, and said to be a part of the body.
    pub limit: usize,
}

/// What a plugin remembers of one exchange between two phases.
#[derive(Default)]
pub struct Slot(Option<Box<dyn Any>>);

impl Slot {
    /// Puts a value in; what was there before is gone.
    pub fn put<T: Any>(&mut self, value: T) {
        self.0 = Some(Box::new(value));
    }

    /// The value, where one of that type is there.
    pub fn get<T: Any>(&mut self) -> Option<&mut T> {
        self.0.as_mut()?.downcast_mut()
    }

    /// Takes the value out, where one of that type is there.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        match self.0.take()?.downcast() {
            Ok(value) => Some(*value),
            Err(other) => {
                self.0 = Some(other);
                None
            }
        }
    }
}

/// How a plugin is made of its compiled configuration.
#[derive(Debug, Clone, Copy)]
pub struct PluginDefinition {
    /// The name that steps call it by.
    pub name: &'static str,
    /// Makes a plugin of a step's `config`.
    pub build: BuildPlugin,
    /// What it does in a chain, and with it what may skip it.
    pub role: Role,
    /// The most that it may skip by [`Verdict::Skip`].
    pub may_skip: SkipRight,
}

impl PluginDefinition {
    /// A plugin of this name, without a role and without the right to skip others.
    #[must_use]
    pub const fn new(name: &'static str, build: BuildPlugin) -> Self {
        Self { name, build, role: Role::Other, may_skip: SkipRight::None }
    }

    /// The same with a role.
    #[must_use]
    pub const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The same with the right to skip others.
    #[must_use]
    pub const fn may_skip(mut self, right: SkipRight) -> Self {
        self.may_skip = right;
        self
    }
}

/// Makes a plugin of its compiled configuration, or says why that cannot be.
pub type BuildPlugin = fn(&[u8], &mut Build<'_>) -> Result<Box<dyn Plugin>, String>;
