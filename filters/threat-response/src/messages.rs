//! The compiled configuration of a step.

use prost::Message;
use snapshot::Policy;

/// Configuration of a `threat-response` step.
#[derive(Clone, PartialEq, Message)]
pub struct ThreatResponseStep {
    /// The policy that it acts by.
    #[prost(message, optional, tag = "1")]
    pub policy: Option<Policy>,
}
