//! The compiled configuration of a step.

use prost::Message;

/// Configuration of a `geo-block` step.
#[derive(Clone, PartialEq, Message)]
pub struct GeoBlockStep {
    /// The countries whose callers are refused, as two capital letters (ISO 3166-1).
    #[prost(string, repeated, tag = "1")]
    pub countries: Vec<String>,
    /// The status of a refusal.
    #[prost(uint32, tag = "2")]
    pub status: u32,
    /// Nothing is refused: a caller adds `weight` to the score.
    #[prost(bool, tag = "3")]
    pub monitor: bool,
    /// The weight of the signal, 0 to 100.
    #[prost(double, tag = "4")]
    pub weight: f64,
}
