//! `@detectSQLi` and `@detectXSS`: what libinjection finds, over the whole of a value and in linear time.

mod html;
pub mod reference;
mod sql;

pub use sql::SQL_STEPS_PER_BYTE;

use super::captures::Captures;
use sql::Verdict;

/// Units of work for each value; as HTML, for each byte that is looked at in one of its contexts, for each that is searched
/// for another one, and for each token.
const RUN: u64 = 1_500;
const SCRIPT_LOOK: u64 = 4;
const SCRIPT_SEARCH: u64 = 1;
const SCRIPT_TOKEN: u64 = 90;

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
    let (found, effort) = html::detect(value);
    let units = |count: usize, each: u64| u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(each);
    captures.charge(RUN + units(effort.tokens, SCRIPT_TOKEN));
    captures.charge(units(effort.looked_at, SCRIPT_LOOK) + units(effort.searched, SCRIPT_SEARCH));
    if found {
        captures.set(0, value);
    }
    found
}

#[cfg(test)]
mod tests;
