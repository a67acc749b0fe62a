//! Numbers as messages have them.

use serde_json::Value;

/// A whole number without a fraction, so that `50` is not written `50.0`.
#[allow(clippy::cast_possible_truncation, reason = "whole and small")]
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { Value::from(value as i64) } else { Value::from(value) }
}
