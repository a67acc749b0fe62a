//! The console: operators, their sessions, and the endpoints under [`NAMESPACE`](crate::names::NAMESPACE), which want a session and no admin key.
//!
//! `docs/console.md` is the reference for those who call it.

mod account;
mod body;
mod challenges;
mod describe;
mod enter;
mod entities;
mod events;
mod guard;
mod identities;
mod keys;
mod login;
mod oidc;
mod operations;
mod operators;
mod page;
mod passkeys;
mod replay;
mod reports;
pub(crate) mod roles;
mod rules;
mod second_factor;
mod security;
mod session;
mod state;
mod turns;
mod who;

use crate::openapi::Routes;

pub use entities::router as entities_router;
pub use events::{StoredEvents, router as events_router};
pub use guard::protect;
pub use page::page_router;
pub use replay::{Replaying, recorded_exchange, router as replay_router};
pub use reports::admin_router as report_router;
pub use rules::LoginRules;
pub use security::router as security_router;
pub use state::{Clock, Console};

/// The endpoints of this module and those of plugins: `session/…`, `utils/…` and the like. They bring their own access control.
pub fn router(console: &Console) -> Routes {
    let guarded = Routes::new()
        .merge(login::guarded())
        .merge(account::router())
        .merge(second_factor::router())
        .merge(operators::router())
        .merge(identities::router())
        .merge(passkeys::router())
        .merge(keys::router())
        .merge(operations::router())
        .merge(reports::router())
        .merge(challenges::router());
    let guarded = protect(guarded.with_state(console.clone()), console.clone());
    login::open().merge(oidc::open()).merge(passkeys::open()).with_state(console.clone()).merge(guarded)
}
