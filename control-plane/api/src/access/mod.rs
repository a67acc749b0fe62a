//! Who may call the admin API: the check of admin keys in front of its routes, and the hosts that it answers for.

mod author;
mod basic;
mod guard;
mod host;

pub(crate) use author::Author;
pub use guard::{Access, Caller, guard};
pub use host::only_hosts;
