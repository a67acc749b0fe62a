//! SQL injection: the fingerprints of libinjection, over the whole of a value.
//!
//! libinjection reads a value three times (as it is, and as if it went on after a `'` or a `"`), folds each reading to
//! five tokens, and looks those up in a list. What is behind five tokens is unseen. Here windows are read besides: one
//! from each further quote on, as an injection has to leave a string there, and one from each `UNION SELECT`. What
//! libinjection has seen with an operator in front of it, as in paths, is left to it. All of it together costs no more
//! than a fixed number of steps for each byte.

mod fold;
mod marks;
mod meter;
mod prose;
mod reading;
mod seen;
mod token;
mod tokens;
mod windows;
mod words;

use memchr::memchr;

use meter::Meter;
pub(super) use reading::Fingerprint;
use reading::{Reader, Reading, Start};
use seen::Seen;
pub(super) use tokens::Dialect;

/// How many steps a byte of a value may cost in readings from its beginning, and half as many in windows. A step is a byte
/// that is read; a token costs 32. Text and code take 15 in all.
pub const SQL_STEPS_PER_BYTE: usize = 48;

/// How many steps any value may cost, however short.
const MIN_STEPS: usize = 32 * 1024;

fn limit(value: &[u8], steps_per_byte: usize, allowed: usize) -> Meter {
    Meter::new(value.len().saturating_mul(steps_per_byte).saturating_add(MIN_STEPS).min(allowed))
}

/// What was found out about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Harmless,
    Injection(Fingerprint),
    /// The limit of steps was reached before all was read, and there was no injection until then.
    GaveUp,
}

/// Whether a value is an SQL injection, and how many steps it cost to know; at most about `allowed`.
pub(super) fn detect(value: &[u8], allowed: usize) -> (Verdict, usize) {
    if value.is_empty() || prose::is_one_word(value) || prose::is_prose(value) {
        return (Verdict::Harmless, value.len());
    }
    let mut reader = Reader::new(value, limit(value, SQL_STEPS_PER_BYTE, allowed));
    let mut seen = Seen::default();
    let mut found = whole(&mut reader, &mut seen);
    let mut steps = reader.meter.spent();
    if found.is_none() && !reader.meter.is_empty() {
        reader.meter = limit(value, SQL_STEPS_PER_BYTE / 2, allowed.saturating_sub(steps));
        found = windows::find(&mut reader, &seen);
        steps += reader.meter.spent();
    }
    let verdict = match found {
        Some(fingerprint) => Verdict::Injection(fingerprint),
        None if reader.meter.is_empty() => Verdict::GaveUp,
        None => Verdict::Harmless,
    };
    (verdict, steps)
}

/// What libinjection finds: the value as it is, and as if a string had begun before it. Takes note of what it has seen.
fn whole(reader: &mut Reader<'_>, seen: &mut Seen) -> Option<Fingerprint> {
    [None, Some(b'\''), Some(b'"')]
        .into_iter()
        .filter(|inside| inside.is_none_or(|quote| memchr(quote, reader.value).is_some()))
        .find_map(|inside| {
            let readings = |start| {
                let reading = reader.read(start, |_| false);
                seen.note(&reading);
                reading
            };
            in_dialects_with(Start { inside, ..Start::default() }, readings)
        })
        .map(|reading| reading.fingerprint)
}

/// Reads from a place on; again as MySQL does, and again as version 3 of libinjection does, where that makes a difference.
/// Double quotes are those of MySQL: other databases have names there. Returns the first reading that is an injection.
fn in_dialects_with(start: Start, mut read: impl FnMut(Start) -> Reading) -> Option<Reading> {
    for version_3 in [false, true] {
        let mut version_matters = false;
        let mut mysql = start.inside == Some(b'"');
        loop {
            let reading = read(Start { dialect: Dialect { mysql, version_3 }, ..start });
            if reading.is_injection {
                return Some(reading);
            }
            version_matters |= reading.met.version_matters;
            if mysql || !reading.met.mysql_comment {
                break;
            }
            mysql = true;
        }
        if !version_matters {
            break;
        }
    }
    None
}

/// One reading of a value from its beginning, as libinjection makes it: `inside` is the quote of the string that it
/// begins in. For comparisons with other implementations.
pub(super) fn reading(value: &[u8], inside: Option<u8>, dialect: Dialect) -> (Fingerprint, bool) {
    let reading =
        Reader::new(value, Meter::new(usize::MAX)).read(Start { inside, dialect, ..Start::default() }, |_| false);
    (reading.fingerprint, reading.is_injection)
}

/// Whether libinjection takes the value for an injection.
pub(super) fn is_injection_to_libinjection(value: &[u8]) -> bool {
    whole(&mut Reader::new(value, Meter::new(usize::MAX)), &mut Seen::default()).is_some()
}

/// Fails unless windows are read as readings are that look for the end of each token themselves.
#[cfg(test)]
pub(super) fn assert_marks_agree(value: &[u8]) {
    for at in memchr::memchr2_iter(b'\'', b'"', value).filter(|at| !marks::is_escaped(value, *at)) {
        for mysql in [false, true] {
            let dialect = Dialect { mysql, version_3: false };
            let start = Start { at, inside: value.get(at).copied(), dialect, ..Start::default() };
            let mut reader = Reader::new(value, Meter::new(usize::MAX));
            let plain = reader.read(start, |_| false).fingerprint;
            reader.mark();
            let marked = reader.read(start, |_| false).fingerprint;
            assert_eq!(plain, marked, "{} from {at}", value.escape_ascii());
        }
    }
}
