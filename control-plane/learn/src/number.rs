//! What is known of numbers.

use serde_json::{Map, Value, json};

use crate::tally::{Ends, Tally, piles_up};

/// 2^53: up to here a `f64` has every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;
const INT32: f64 = 2_147_483_647.0;
const INT64: f64 = 9_223_372_036_854_774_784.0;

/// Numbers that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) count: u64,
    /// Those with a fraction.
    fractions: u64,
    ends: Option<Ends>,
    /// Bits of the values.
    values: Tally<u64, 32>,
}

impl Numbers {
    pub(crate) fn observe(&mut self, value: f64, times: u64) {
        self.count += times;
        if value.fract() != 0.0 {
            self.fractions += times;
        }
        self.values.add(&value.to_bits(), times);
        let one = Ends::of(value, times);
        match &mut self.ends {
            Some(ends) => ends.merge(one),
            None => self.ends = Some(one),
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.fractions += other.fractions;
        self.values.merge(other.values);
        match (&mut self.ends, other.ends) {
            (Some(ends), Some(others)) => ends.merge(others),
            (None, others) => self.ends = others,
            (Some(_), None) => {}
        }
    }

    pub(crate) fn are_integers(&self) -> bool {
        self.fractions == 0
    }

    /// Adds the keywords of a schema: format, and the range with enough evidence.
    pub(crate) fn describe(&self, schema: &mut Map<String, Value>, evidence: u64, sensitive: bool) {
        let Some(ends) = self.ends.filter(|_| self.count >= evidence) else { return };
        let complete = self.values.is_complete(evidence.saturating_mul(3));
        let limit = |seen| complete || piles_up(seen, self.count);
        let far = self.count >= evidence.saturating_mul(5);
        let high = if limit(ends.high_seen) { Some(ends.high) } else { far.then(|| beyond(ends.high, ends.low)) };
        let low = if limit(ends.low_seen) {
            Some(ends.low)
        } else if ends.low >= 1.0 && self.are_integers() && far && limit_is_likely(ends.low, ends.low_seen) {
            Some(1.0)
        } else if ends.low >= 0.0 && far {
            Some(0.0)
        } else {
            far.then(|| -beyond(-ends.low, ends.high.abs()))
        };
        if self.are_integers() {
            let (top, bottom) = (high.unwrap_or(INT64), low.unwrap_or(-INT64));
            if top <= INT32 && bottom >= -INT32 - 1.0 && far {
                schema.insert("format".to_owned(), json!("int32"));
            } else if ends.high <= INT64 && ends.low >= -INT64 && far && top <= INT64 && bottom >= -INT64 {
                schema.insert("format".to_owned(), json!("int64"));
            }
        }
        if sensitive {
            return;
        }
        let mut put = |key: &str, bound: Option<f64>| {
            if let Some(bound) = bound.filter(|bound| bound.abs() < EXACT) {
                schema.insert(key.to_owned(), number(bound));
            }
        };
        put("minimum", low);
        put("maximum", high);
    }
}

/// Whether a lowest value of 1, or a little more, was seen often enough to be a beginning.
fn limit_is_likely(low: f64, seen: u64) -> bool {
    low <= 1.0 && seen >= 2
}

/// A round number well beyond the highest value: at least ten times as high, or as far as the values spread.
fn beyond(high: f64, other: f64) -> f64 {
    let size = high.abs().max(other.abs()).max(10.0);
    10_f64.powf((size * 10.0).log10().ceil())
}

/// A number as JSON, without a fraction where it has none.
pub(crate) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "below 2^53 and whole")]
        return json!(value as i64);
    }
    json!(value)
}
