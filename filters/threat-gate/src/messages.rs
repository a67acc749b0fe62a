//! The compiled configuration of a step.

use prost::Message;
use snapshot::Policy;

/// Configuration of a `threat-gate` step.
#[derive(Clone, PartialEq, Message)]
pub struct ThreatGateStep {
    /// The policy whose exemptions and dry run apply.
    #[prost(message, optional, tag = "1")]
    pub policy: Option<Policy>,
}
