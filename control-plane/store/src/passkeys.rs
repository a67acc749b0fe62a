//! Passkeys of operators.

use accounts::{Operator, Passkey};

use super::Pending;

/// Passkeys of operators. [`AccessChange`](super::AccessChange) adds and removes them.
pub trait PasskeyStore {
    /// The passkeys of an operator, in the order in which they were added.
    fn passkeys(&self, operator: &str) -> Pending<'_, Vec<Passkey>>;

    /// The passkey with this credential, and whose it is.
    fn passkey(&self, credential: &[u8]) -> Pending<'_, Option<(Passkey, Operator)>>;

    /// Notes that a passkey was used at `now_millis`; false, and nothing is noted, where it is gone or does not accept the count
    /// ([`Passkey::accepts_count`]).
    fn passkey_use(&self, credential: &[u8], sign_count: u32, now_millis: u64) -> Pending<'_, bool>;
}
