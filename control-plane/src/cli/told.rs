//! What commands leave behind for the events of the control plane.

use base::clock;
use events::{Audit, AuditAction};

/// The event of a change that this command makes to `reference`, by the user of the operating system.
pub(super) fn note(action: AuditAction, reference: String, detail: &str) -> String {
    let by = format!("on the command line, {}", user());
    let detail = if detail.is_empty() { by } else { format!("{detail}; {by}") };
    Audit::new(action).of(reference).detail(detail).note(clock::now_millis())
}

/// Who runs this command, for people.
pub(super) fn user() -> String {
    format!("by user {} of the operating system", rustix::process::getuid().as_raw())
}
