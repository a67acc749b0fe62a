//! What is kept of a bouncer in the store: its decisions, so that they are in force again when the control plane starts.

use std::io::{Read as _, Write as _};
use std::net::IpAddr;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::super::DecisionScope;
use super::decisions::{Decisions, Key, Kind, MAX_DECISIONS, Subject};

/// The first line.
const VERSION: &str = "decisions 1";
/// The bytes that are read, unpacked.
const MAX_BYTES: u64 = 256 << 20;

/// What is kept of the decisions of a service, and where they came from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) source: String,
    pub(super) last_sync: u64,
    pub(super) decisions: Decisions,
}

/// The name of the document of a bouncer.
pub(super) fn name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// What names of documents of bouncers begin with.
pub(super) const PREFIX: &str = "svc-bouncers/";

/// The bytes to keep: compressed lines, one for each decision. It may take a second.
pub(super) fn encode(source: &str, last_sync: u64, decisions: &Decisions) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory has no way to fail.
    let _ = writeln!(out, "{VERSION}\n{source}\n{last_sync}\n{}", u8::from(decisions.has_several()));
    for (Key { scope, subject, kind }, id, until) in decisions.iter() {
        let kind = match kind {
            Kind::Ban => "ban",
            Kind::Other(kind) => kind,
        };
        let _ = match subject {
            Subject::Range(first, last) if first == last => {
                writeln!(out, "{id} {until} {} {kind} {first}", scope.word())
            }
            Subject::Range(first, last) => writeln!(out, "{id} {until} {} {kind} {first}-{last}", scope.word()),
            Subject::Named(name) => writeln!(out, "{id} {until} {} {kind} {name}", scope.word()),
        };
    }
    out.finish().unwrap_or_default()
}

/// What [`encode`] has made; `None` for all other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<Kept> {
    let mut text = String::new();
    GzDecoder::new(bytes).take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next()? != VERSION {
        return None;
    }
    let (source, last_sync) = (lines.next()?.to_owned(), lines.next()?.parse().ok()?);
    // Whether keys have several decisions, which releases before looked at: the decisions say it.
    lines.next()?;
    let mut decisions = Decisions::default();
    for line in lines.take(2 * MAX_DECISIONS) {
        let mut parts = line.split(' ');
        let (id, until) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let scope = scope(parts.next()?)?;
        let kind = parts.next()?;
        let kind = if kind == "ban" { Kind::Ban } else { Kind::Other(kind.into()) };
        let subject = subject(scope, parts.next()?)?;
        decisions.insert_listed(Key { scope, subject, kind }, id, until);
    }
    Some(Kept { source, last_sync, decisions })
}

fn scope(word: &str) -> Option<DecisionScope> {
    use DecisionScope::{As, Country, Ip, Range};
    [Ip, Range, Country, As].into_iter().find(|scope| scope.word() == word)
}

fn subject(scope: DecisionScope, text: &str) -> Option<Subject> {
    if matches!(scope, DecisionScope::Country | DecisionScope::As) {
        return Some(Subject::Named(text.into()));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && first.is_ipv4() == last.is_ipv4()).then_some(Subject::Range(first, last))
}
