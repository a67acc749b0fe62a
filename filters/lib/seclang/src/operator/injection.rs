//! `@detectSQLi` and `@detectXSS`, by a port of libinjection.

use super::captures::Captures;

/// How many bytes of a value are looked at: 64 KiB. The detectors decide on the first tokens; a longer value is cut.
pub const INJECTION_INPUT_LIMIT: usize = 64 * 1024;

/// SQL injection; captures the fingerprint.
pub(super) fn is_sql(value: &[u8], captures: &mut Captures) -> bool {
    if value.is_empty() {
        return false;
    }
    let found = libinjectionrs::detect_sqli(value.get(..INJECTION_INPUT_LIMIT).unwrap_or(value));
    if !found.is_injection() {
        return false;
    }
    if let Some(fingerprint) = found.fingerprint.filter(|_| captures.is_wanted()) {
        let bytes = fingerprint.as_bytes();
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        captures.set(0, bytes.get(..end).unwrap_or(bytes));
    }
    true
}

/// Cross-site scripting; captures the value.
pub(super) fn is_script(value: &[u8], captures: &mut Captures) -> bool {
    if value.is_empty() {
        return false;
    }
    let found = libinjectionrs::detect_xss(value.get(..INJECTION_INPUT_LIMIT).unwrap_or(value)).is_injection();
    if found {
        captures.set(0, value);
    }
    found
}
