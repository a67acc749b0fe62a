//! Operators at a login provider.

/// Who an operator is at a provider. The pair is the identity: names and addresses at the provider change, and are given to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The issuer identifier of the provider.
    pub issuer: String,
    /// The provider's own id of the person (`sub`).
    pub subject: String,
    /// When the operator was linked to it, in milliseconds since 1970.
    pub linked_at_millis: u64,
}
