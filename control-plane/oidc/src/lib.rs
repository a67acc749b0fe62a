//! Logins of operators at an OpenID Connect provider: the authorization code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect Core 1.0).
//!
//! [`Provider`] talks to the provider: its metadata, its keys, the exchange of a code, and what the ID token says about the person.
//! It keeps no login: [`Begun`] is for the caller's store.

mod backoff;
mod error;
mod flow;
mod keys;
mod logout;
mod metadata;
mod person;
mod provider;
mod settings;
mod token;

pub use error::{OidcError, OidcFault};
pub use flow::{Begun, Finished, Returned};
pub use person::{Person, ProviderRole};
pub use provider::{Clock, Provider};
pub use settings::{LogoutAt, SecondFactorAt, Settings, SettingsProblem, is_loopback_host};
