//! For serde's `with`: numbers of documents: written without a fraction where there is none, so that `50` comes back as `50`.

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a whole number up to 2^53 without a fraction.
///
/// # Errors
/// What the serializer reports.
pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: up to there every whole f64 is exactly one integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "a whole number within 2^53")]
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// Reads a number.
///
/// # Errors
/// It is no number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer)
}

/// [`serialize`] and [`deserialize`] for a number that may be null.
pub mod option {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes null where there is none.
    ///
    /// # Errors
    /// What the serializer reports.
    #[allow(clippy::ref_option, reason = "serde's `with` hands over a reference to the field")]
    pub fn serialize<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => super::serialize(number, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a number or null.
    ///
    /// # Errors
    /// It is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Option::deserialize(deserializer)
    }
}
