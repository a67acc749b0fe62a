//! Detects SQL injection: the fingerprints of libinjection, over the whole of a value.
//!
//! libinjection tokenizes a value three times (as it is, and as if it continued after a `'` or a `"`), folds each
//! reading to five tokens, and looks those up in a list. It does not see what follows five tokens. Here windows are
//! read besides: one from each further quote on, as an injection has to leave a string there, and one from each `UNION
//! SELECT`. Tokens that libinjection has read behind an operator, as in paths, are left to it. All readings together
//! cost at most a fixed number of steps for each byte.

mod covered;
mod fold;
mod marks;
mod meter;
mod prose;
mod reading;
mod token;
mod tokens;
mod windows;
mod words;

use memchr::memchr;

use covered::CoveredTokens;
use meter::Meter;
pub(super) use reading::Fingerprint;
use reading::{Reader, Reading, Start};
pub(super) use tokens::Dialect;

/// The most steps for each byte of a value in readings from its beginning, and half as many in windows. A step is a
/// byte that is read; a token costs 32. Text and code take 15 in all.
pub const SQL_STEPS_PER_BYTE: usize = 48;

/// The steps that every value may cost, however short.
const MIN_STEPS: usize = 32 * 1024;

/// Units of work for each byte of the first check whether a value is harmless.
const GLANCE_UNITS: usize = 3;

/// The cost of the detection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Bytes and tokens that were read; see [`SQL_STEPS_PER_BYTE`].
    pub(super) steps: usize,
    /// Units of work.
    pub(super) units: u64,
}

impl Cost {
    fn add(&mut self, meter: &Meter) {
        self.steps += meter.spent();
        self.units = self.units.saturating_add(meter.units());
    }
}

fn limit(value: &[u8], steps_per_byte: usize, units: u64) -> Meter {
    Meter::new(value.len().saturating_mul(steps_per_byte).saturating_add(MIN_STEPS), units)
}

/// The result of the detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Harmless,
    Injection(Fingerprint),
    /// A limit was reached without an injection before the end of the value.
    GaveUp,
}

/// Detects an SQL injection in a value, for at most about `units` units of work.
pub(super) fn detect(value: &[u8], allowed: u64) -> (Verdict, Cost) {
    let units = u64::try_from(value.len().saturating_mul(GLANCE_UNITS)).unwrap_or(u64::MAX);
    let mut cost = Cost { steps: 0, units };
    if value.is_empty() || prose::is_one_word(value) || prose::is_prose(value) {
        return (Verdict::Harmless, cost);
    }
    let mut reader = Reader::new(value, limit(value, SQL_STEPS_PER_BYTE, allowed.saturating_sub(units)));
    let mut covered = CoveredTokens::default();
    let mut found = whole(&mut reader, &mut covered);
    cost.add(&reader.meter);
    if found.is_none() && !reader.meter.is_empty() {
        reader.meter = limit(value, SQL_STEPS_PER_BYTE / 2, allowed.saturating_sub(cost.units)).with_states();
        found = windows::find(&mut reader, &covered);
        cost.add(&reader.meter);
    }
    let verdict = match found {
        Some(fingerprint) => Verdict::Injection(fingerprint),
        None if reader.meter.is_empty() => Verdict::GaveUp,
        None => Verdict::Harmless,
    };
    (verdict, cost)
}

/// The result of libinjection: for the value as it is, and as if a string had begun before it. Records the tokens that
/// windows may skip.
fn whole(reader: &mut Reader<'_>, covered: &mut CoveredTokens) -> Option<Fingerprint> {
    [None, Some(b'\''), Some(b'"')]
        .into_iter()
        .filter(|inside| inside.is_none_or(|quote| memchr(quote, reader.value).is_some()))
        .find_map(|inside| {
            let readings = |start| {
                let reading = reader.read(start, |_| false);
                covered.note(&reading);
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
            version_matters |= reading.hints.version_matters;
            if mysql || !reading.hints.mysql_comment {
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
    let reading = Reader::new(value, Meter::endless()).read(Start { inside, dialect, ..Start::default() }, |_| false);
    (reading.fingerprint, reading.is_injection)
}

/// Whether libinjection takes the value for an injection.
pub(super) fn is_injection_to_libinjection(value: &[u8]) -> bool {
    whole(&mut Reader::new(value, Meter::endless()), &mut CoveredTokens::default()).is_some()
}

/// Fails unless windows have the results of readings that search the end of each token themselves.
#[cfg(test)]
pub(super) fn assert_marks_agree(value: &[u8]) {
    for at in memchr::memchr2_iter(b'\'', b'"', value).filter(|at| !marks::is_escaped(value, *at)) {
        for mysql in [false, true] {
            let dialect = Dialect { mysql, version_3: false };
            let start = Start { at, inside: value.get(at).copied(), dialect, ..Start::default() };
            let mut reader = Reader::new(value, Meter::endless());
            let plain = reader.read(start, |_| false).fingerprint;
            reader.mark();
            let marked = reader.read(start, |_| false).fingerprint;
            assert_eq!(plain, marked, "{} from {at}", value.escape_ascii());
        }
    }
}
