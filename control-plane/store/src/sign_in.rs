//! What logins of operators need beside passwords: tickets, second factors, ceremonies, identities at providers, and lists of sessions.

use accounts::{Ceremony, CeremonyKind, Operator, Proof, SecondFactor, Session, Ticket, TicketKind};

use super::Pending;

/// Tickets, second factors, ceremonies, identities and lists of sessions. Every change is one transaction: of two calls at once that use the same ticket or code, one
/// succeeds.
pub trait SignInStore {
    /// The sessions of an operator, or all of them; those last used first. Some may have ended by their limits.
    fn sessions(&self, operator: Option<&str>) -> Pending<'_, Vec<Session>>;

    /// Ends the sessions of an operator but for the one with the token of the SHA-256 `keep`, and returns how many.
    fn sessions_end(&self, operator: &str, keep: Option<[u8; 32]>) -> Pending<'_, u64>;

    /// Keeps a ticket of an operator whose password is still the one with this hash; false when it is not, or the operator is gone. Of an operator's tickets of one kind the ten that end last are kept, of login
    /// links one.
    fn ticket_put(&self, ticket: Ticket, password_hash: &str) -> Pending<'_, bool>;

    /// The ticket of this SHA-256 that has not ended at `now_millis`, and whose it is.
    fn ticket(&self, sha256: [u8; 32], now_millis: u64) -> Pending<'_, Option<(Ticket, Operator)>>;

    /// Uses the ticket of this SHA-256 and kind up: the operator whose it was, if it had not ended at `now_millis`. `None` ever after.
    fn ticket_take(&self, sha256: [u8; 32], kind: TicketKind, now_millis: u64) -> Pending<'_, Option<Operator>>;

    /// Counts a wrong code that came with a ticket; the ticket ends with the `limit`th.
    fn ticket_failed(&self, sha256: [u8; 32], limit: u32) -> Pending<'_, ()>;

    /// Forgets the tickets and ceremonies that ended at or before `now_millis`, and returns how many.
    fn tickets_sweep(&self, now_millis: u64) -> Pending<'_, u64>;

    /// Keeps a ceremony. There are at most 10,000 of each kind; of more, those that end last are kept, a fiftieth fewer: clients without a session begin some.
    fn ceremony_put(&self, ceremony: Ceremony) -> Pending<'_, ()>;

    /// Ends the ceremony of this SHA-256 and kind; `None` where it has ended at `now_millis`, and ever after.
    fn ceremony_take(&self, sha256: [u8; 32], kind: CeremonyKind, now_millis: u64) -> Pending<'_, Option<Ceremony>>;

    /// The operator who is linked to this identity.
    fn operator_of_identity(&self, issuer: &str, subject: &str) -> Pending<'_, Option<Operator>>;

    /// The second factor of an operator, confirmed or not.
    fn second_factor(&self, operator: &str) -> Pending<'_, Option<SecondFactor>>;

    /// Begins a second factor with this secret, in the place of one that was not confirmed; false when the operator is gone or has
    /// one. [`AccessChange::SecondFactorConfirm`](super::AccessChange::SecondFactorConfirm) confirms it.
    fn second_factor_begin(&self, operator: &str, secret: Vec<u8>) -> Pending<'_, bool>;

    /// Stores the secret of a second factor in another form, if it is stored as `from` still.
    fn second_factor_rewrite(&self, operator: &str, from: Vec<u8>, to: Vec<u8>) -> Pending<'_, bool>;

    /// Accepts a code of a confirmed second factor; false when it was accepted before, or a later one was, or there is no such recovery
    /// code.
    fn second_factor_use(&self, operator: &str, proof: Proof) -> Pending<'_, bool>;

    /// Counts a wrong code at `now_millis`.
    fn second_factor_failed(&self, operator: &str, now_millis: u64) -> Pending<'_, ()>;
}
