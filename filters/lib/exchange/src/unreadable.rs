//! Messages that the gateway does not hand to filters, or does not take from them: too many headers or trailers, bodies that cannot
//! be replaced.

use crate::run::Stage;
use crate::{Category, Flow, Host, Level, Refusal, Run, Signal};

/// The status of an exchange whose body was to be replaced and could not be.
const NOT_REPLACED: u16 = 500;

/// The status of a request whose headers or trailers cannot be read (RFC 6585).
const HEADERS_TOO_LARGE: u16 = 431;
/// What such a request weighs: as much as a match of the WAF.
const UNREADABLE_WEIGHT: f64 = 20.0;

impl Run {
    /// The request's headers are more than the gateway hands to filters: nothing of the request can be checked.
    pub fn unreadable_headers(&mut self, host: &dyn Host) -> Flow {
        if self.stage != Stage::Ready {
            return Flow::Continue;
        }
        self.unreadable("headers", host)
    }

    /// The same for the request's trailers, behind what was checked before them.
    pub fn unreadable_trailers(&mut self, host: &dyn Host) -> Flow {
        if self.stage != Stage::Sent {
            return Flow::Continue;
        }
        self.unreadable("trailers", host)
    }

    /// The body that a step has put in place of another cannot take its place. What the step wanted to hide does not go on.
    pub(crate) fn body_not_replaced(&mut self, reason: &str, by: &str, host: &dyn Host) -> Flow {
        host.log(Level::Error, &format!("palisade: the step {by} has replaced a body, which was refused: {reason}"));
        self.refuse(&Refusal::new(NOT_REPLACED, Category::Dependency, reason), "gateway", host)
    }

    /// The gateway has not taken the body from [`Run::take_replaced_body`]. The headers do not go on either: they have the length of
    /// that body.
    pub fn replacement_refused(&mut self, host: &dyn Host) -> Flow {
        self.body_not_replaced("the gateway has taken no other body", "gateway", host)
    }

    fn unreadable(&mut self, what: &str, host: &dyn Host) -> Flow {
        let reason = format!("the request has more {what} than the gateway hands to filters");
        self.exchange.score.turn_of("gateway");
        self.exchange.score.add(Signal {
            source: "http".into(),
            kind: "http".into(),
            weight: UNREADABLE_WEIGHT,
            confidence: 1.0,
            tag: format!("http:too_many_{what}").into(),
            detail: reason.clone(),
            at: host.now(),
        });
        self.refuse(&Refusal::new(HEADERS_TOO_LARGE, Category::Threat, reason).scored(), "gateway", host)
    }
}
