//! Who has access to the control plane: admin keys with their scopes, and the operators of the console with their roles,
//! passwords, second factors, login links, passkeys, identities at a provider and sessions. The store keeps them.

mod admin_key;
mod ceremony;
mod factor_keys;
mod identity;
mod operator;
mod passkey;
mod password;
mod role;
mod second_factor;
mod session;
mod ticket;

pub use admin_key::{AdminKey, IssuedKey, Refusal, Scope, ScopeError};
pub use ceremony::{Ceremony, CeremonyKind, OIDC_MILLIS};
pub use factor_keys::{FACTOR_KEYS, FactorKeys, FactorKeysProblem, StoredSecret};
pub use identity::Identity;
pub use operator::{InvalidOperator, Operator, normal_name};
pub use passkey::{
    Assertion, MAX_PASSKEY_NAME, NewCredential, PASSKEY_ALGORITHMS, PASSKEY_MILLIS, PASSKEYS, Passkey, PasskeyProblem,
    Registration, RelyingParty, challenge_of, user_handle,
};
pub use password::{
    Checked, HashFailed, MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARS, Passwords, hash_password, password_problem,
};
pub use role::{Role, RoleError};
pub use second_factor::{
    CODE_FAILURES, CODE_PAUSE_MILLIS, Proof, RECOVERY_CODES, RecoveryCodes, SECRET_BYTES, SecondFactor, is_app_code,
    new_secret,
};
pub use session::{MAX_AGENT_CHARS, Session, SessionLimits, SessionOrigin, Via};
pub use ticket::{CODE_TICKET_MILLIS, LOGIN_LINK_MILLIS, Ticket, TicketKind, TicketSecret, login_link};

/// Bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
