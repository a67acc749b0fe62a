//! What logins of operators need beside passwords: tickets, second factors, and lists of sessions.

use accounts::{Operator, Proof, SecondFactor, Session, Ticket, TicketKind};

use super::Pending;

/// Tickets, second factors and lists of sessions. Every change is one transaction: of two calls at once that use the same ticket or code, one
/// succeeds.
pub trait SignInStore {
    /// The sessions of an operator, or all of them; those last used first. Some may have ended by their limits.
    fn sessions(&self, operator: Option<&str>) -> Pending<'_, Vec<Session>>;

    /// Ends the sessions of an operator but for the one with the token of the SHA-256 `keep`, and returns how many.
    fn sessions_end(&self, operator: &str, keep: Option<[u8; 32]>) -> Pending<'_, u64>;

    /// Keeps a ticket; false when the operator is gone. Of an operator's tickets of one kind the ten that end last are kept, of login
    /// links one.
    fn ticket_put(&self, ticket: Ticket) -> Pending<'_, bool>;

    /// The ticket of this SHA-256 that has not ended at `now_millis`, and whose it is.
    fn ticket(&self, sha256: [u8; 32], now_millis: u64) -> Pending<'_, Option<(Ticket, Operator)>>;

    /// Uses the ticket of this SHA-256 and kind up: the operator whose it was, if it had not ended at `now_millis`. `None` ever after.
    fn ticket_take(&self, sha256: [u8; 32], kind: TicketKind, now_millis: u64) -> Pending<'_, Option<Operator>>;

    /// Counts a wrong code that came with a ticket; the ticket ends with the `limit`th.
    fn ticket_failed(&self, sha256: [u8; 32], limit: u32) -> Pending<'_, ()>;

    /// Forgets the tickets that ended at or before `now_millis`, and returns how many.
    fn tickets_sweep(&self, now_millis: u64) -> Pending<'_, u64>;

    /// The second factor of an operator, confirmed or not.
    fn second_factor(&self, operator: &str) -> Pending<'_, Option<SecondFactor>>;

    /// Begins a second factor with this secret, in the place of one that was not confirmed; false when the operator is gone or has
    /// one. [`AccessChange::SecondFactorConfirm`](super::AccessChange::SecondFactorConfirm) confirms it.
    fn second_factor_begin(&self, operator: &str, secret: Vec<u8>) -> Pending<'_, bool>;

    /// Accepts a code of a confirmed second factor; false when it was accepted before, or a later one was, or there is no such recovery
    /// code.
    fn second_factor_use(&self, operator: &str, proof: Proof) -> Pending<'_, bool>;

    /// Counts a wrong code at `now_millis`.
    fn second_factor_failed(&self, operator: &str, now_millis: u64) -> Pending<'_, ()>;
}
