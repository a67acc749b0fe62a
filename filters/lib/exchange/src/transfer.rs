//! What travels between the filters of one gateway when plugins run as separate filters.
//!
//! The signals of a request go from filter to filter in one filter state. Access logs may print any filter state raw, so
//! the bytes are written in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message;

use crate::{Exchange, Host, Score, Signal};

/// The filter state that carries the exchange.
pub const EXCHANGE_TOKEN: &str = "svc.exchange";

#[derive(Clone, PartialEq, Message)]
struct Carried {
    #[prost(message, repeated, tag = "1")]
    signals: Vec<CarriedSignal>,
    /// A filter has decided what is done about the request, and has emitted the event of that.
    #[prost(bool, tag = "2")]
    decided: bool,
}

#[derive(Clone, PartialEq, Message)]
struct CarriedSignal {
    #[prost(string, tag = "1")]
    source: String,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(double, tag = "3")]
    weight: f64,
    #[prost(double, tag = "4")]
    confidence: f64,
    #[prost(string, tag = "5")]
    tag: String,
    #[prost(string, tag = "6")]
    detail: String,
    #[prost(uint64, tag = "7")]
    at: u64,
}

/// Takes over the signals that other filters have left. Unreadable bytes count as none.
pub(crate) fn receive(exchange: &mut Exchange, host: &dyn Host) {
    let Some(carried) = carried(host) else {
        return;
    };
    exchange.decided_elsewhere = carried.decided;
    exchange.score = Score::default();
    for signal in carried.signals {
        exchange.score.add(Signal {
            source: signal.source.into(),
            kind: signal.kind.into(),
            weight: signal.weight,
            confidence: signal.confidence,
            tag: signal.tag.into(),
            detail: signal.detail,
            at: signal.at,
        });
    }
}

/// Takes over whether another filter has decided on the request, and leaves the signals as they are.
pub(crate) fn receive_decision(exchange: &mut Exchange, host: &dyn Host) {
    exchange.decided_elsewhere |= carried(host).is_some_and(|carried| carried.decided);
}

fn carried(host: &dyn Host) -> Option<Carried> {
    let bytes = STANDARD_NO_PAD.decode(host.filter_state(EXCHANGE_TOKEN)?).ok()?;
    Carried::decode(bytes.as_slice()).ok()
}

/// Leaves the signals for other filters, and whether anything was decided.
pub(crate) fn send(exchange: &Exchange, host: &dyn Host) {
    let decided = exchange.is_decided();
    if exchange.score.signals().is_empty() && !decided {
        return;
    }
    let signals = exchange.score.signals().iter().map(|signal| CarriedSignal {
        source: signal.source.clone().into_owned(),
        kind: signal.kind.clone().into_owned(),
        weight: signal.weight,
        confidence: signal.confidence,
        tag: signal.tag.clone().into_owned(),
        detail: signal.detail.clone(),
        at: signal.at,
    });
    let carried = Carried { signals: signals.collect(), decided };
    host.set_filter_state(EXCHANGE_TOKEN, STANDARD_NO_PAD.encode(carried.encode_to_vec()).as_bytes());
}
