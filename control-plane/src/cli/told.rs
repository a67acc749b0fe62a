//! What commands leave behind for the events of the control plane.

use base::clock;
use events::{Audit, AuditAction};

/// The event of a change that this command makes to `reference`, by the user of the operating system.
pub(super) fn note(action: AuditAction, reference: String, detail: &str) -> String {
    let user = rustix::process::getuid().as_raw();
    let by = format!("on the command line, by user {user} of the operating system");
    let detail = if detail.is_empty() { by } else { format!("{detail}; {by}") };
    Audit::new(action).of(reference).detail(detail).note(clock::now_millis())
}
