//! `@detectSQLi` and `@detectXSS`: what libinjection finds, over the whole of a value and in linear time.

mod html;
pub mod reference;
mod sql;

pub use sql::SQL_STEPS_PER_BYTE;

use super::captures::Captures;
use sql::Verdict;

/// Units of work for each value, for each step of reading it as SQL, and for each of its bytes as HTML.
const RUN: u64 = 1_500;
const SQL_STEP: u64 = 10;
const SCRIPT_BYTE: u64 = 40;

/// SQL injection; captures the fingerprint. Gives up where the value takes more steps than any text does, and where the work
/// that is left does not suffice.
pub(super) fn is_sql(value: &[u8], captures: &mut Captures) -> bool {
    let allowed = usize::try_from(captures.left() / SQL_STEP).unwrap_or(usize::MAX);
    let (verdict, steps) = sql::detect(value, allowed);
    charge(captures, steps, SQL_STEP);
    match verdict {
        Verdict::Harmless => false,
        Verdict::GaveUp => {
            captures.set_limit_exceeded();
            false
        }
        Verdict::Injection(fingerprint) => {
            captures.set(0, fingerprint.letters());
            true
        }
    }
}

/// Cross-site scripting; captures the value.
pub(super) fn is_script(value: &[u8], captures: &mut Captures) -> bool {
    charge(captures, value.len(), SCRIPT_BYTE);
    let found = html::detect(value);
    if found {
        captures.set(0, value);
    }
    found
}

fn charge(captures: &mut Captures, steps: usize, units: u64) {
    let steps = u64::try_from(steps).unwrap_or(u64::MAX);
    captures.charge(RUN.saturating_add(steps.saturating_mul(units)));
}

#[cfg(test)]
mod tests;
