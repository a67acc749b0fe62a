//! Where an event is in the order of all: its time, and 20 bits that tell events of one millisecond apart.

use serde_json::Value;

use base::clock;

/// How much earlier than its arrival the time of an event may be: a gateway that was without a control plane sends what it kept. With
/// an earlier time, or one to come, the clock of the gateway is wrong, and the arrival counts.
pub const MAX_LATE_MILLIS: u64 = 24 * 3_600_000;

/// The bits that tell events of one millisecond apart.
const TIE_BITS: u32 = 20;

/// The place of an event of this time; `tie` is any number that follows from its id.
pub(super) fn of(at_millis: u64, tie: u64) -> u64 {
    first(at_millis) | (tie & ((1 << TIE_BITS) - 1))
}

/// The first place of this millisecond.
pub(super) fn first(at_millis: u64) -> u64 {
    at_millis.min((1 << (63 - TIE_BITS)) - 1) << TIE_BITS
}

/// The time of a place.
pub(super) fn millis(place: u64) -> u64 {
    place >> TIE_BITS
}

/// The time by which an event that arrives at `now_millis` is ordered, in milliseconds since 1970: its `@timestamp`, if that is not
/// more than [`MAX_LATE_MILLIS`] before, nor after it.
#[must_use]
pub fn time(event: &Value, now_millis: u64) -> u64 {
    let stated = match event.get("@timestamp") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => clock::rfc3339_millis(text),
        _ => None,
    };
    let earliest = now_millis.saturating_sub(MAX_LATE_MILLIS);
    stated.filter(|at| (earliest..=now_millis).contains(at)).unwrap_or(now_millis)
}
