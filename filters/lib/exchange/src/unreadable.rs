//! Headers and trailers that the gateway does not hand to filters, as there are too many of them.

use crate::decision::Refusal;
use crate::run::Stage;
use crate::{Category, Flow, Host, Run, Signal};

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

    fn unreadable(&mut self, what: &str, host: &dyn Host) -> Flow {
        let reason = format!("the request has more {what} than the gateway hands to filters");
        self.exchange.score.add(Signal {
            source: "http".into(),
            kind: "http".into(),
            weight: UNREADABLE_WEIGHT,
            confidence: 1.0,
            tag: format!("http:too_many_{what}").into(),
            detail: reason.clone(),
            at: host.now(),
        });
        let (status, category) = (HEADERS_TOO_LARGE, Category::Threat);
        self.refuse(&Refusal { status, category, reason, scored: true, headers: Vec::new() }, "gateway", host)
    }
}
