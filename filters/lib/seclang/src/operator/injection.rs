//! `@detectSQLi` and `@detectXSS`: what libinjection finds, over the whole of a value and in linear time.

mod html;
pub mod reference;
mod sql;

pub use sql::SQL_STEPS_PER_BYTE;

use super::captures::Captures;
use sql::Verdict;

/// Units of work for each value; for each of its bytes as HTML, and for each token of one of its readings.
const RUN: u64 = 1_500;
const SCRIPT_BYTE: u64 = 10;
const SCRIPT_TOKEN: u64 = 50;

/// Fills the tables that both look words up in.
pub(super) fn prepare() {
    sql::detect(b"1 or 'a'='a", u64::MAX);
    html::detect(b"<a onx=b>");
}

/// SQL injection; captures the fingerprint. Gives up where the value takes more steps than any text does, and where the work
/// that is left does not suffice.
pub(super) fn is_sql(value: &[u8], captures: &mut Captures) -> bool {
    let (verdict, cost) = sql::detect(value, captures.left());
    captures.charge(RUN.saturating_add(cost.units));
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
    let length = u64::try_from(value.len()).unwrap_or(u64::MAX);
    let (found, tokens) = html::detect(value);
    let tokens = u64::try_from(tokens).unwrap_or(u64::MAX).saturating_mul(SCRIPT_TOKEN);
    captures.charge(RUN.saturating_add(length.saturating_mul(SCRIPT_BYTE)).saturating_add(tokens));
    if found {
        captures.set(0, value);
    }
    found
}

#[cfg(test)]
mod tests;
