//! The compiled configuration of a step.

use maze::MazeLimits;
use prost::Message;
use snapshot::Policy;

/// Configuration of a `threat-response` step.
#[derive(Clone, PartialEq, Message)]
pub struct ThreatResponseStep {
    /// The policy that it acts by.
    #[prost(message, optional, tag = "1")]
    pub policy: Option<Policy>,
    /// The pages of its tiers with the action `maze`; absent where none has it.
    #[prost(message, optional, tag = "2")]
    pub maze: Option<MazeLimits>,
}
