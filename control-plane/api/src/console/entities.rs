//! `entities/…`: the collections for operators. The handlers are those that admin keys call, so that both have the same
//! answers to the same requests.

use super::guard::protect;
use super::state::Console;
use crate::openapi::Routes;
use crate::rest::{self, AppState};

/// The endpoints of this module, for those with a session of `console`: every operator may read, admins may write, and analysts may have a
/// batch of changes checked.
pub fn router(console: &Console, state: &AppState) -> Routes {
    protect(rest::for_sessions(state), console.clone())
}
