//! The part of a body beyond its limit, if the limit does not refuse the body.
//!
//! No parser reads it. It is cut into overlapping windows, in each reading that applications have of it, and the
//! prefilter scans each window. A window is suspicious if it passes a prefilter that letters and digits do not pass, if a
//! rule looks at it after a transformation that changes it, or if no rule has a prefilter ([`super::suspicion`]).
//! Suspicious windows become arguments of the transaction, or, if there are many, of a transaction of their own
//! ([`Transaction::take_suspicious`]).

use super::body::{BodyLimits, Incoming};
use super::build::Engine;
use super::report::Intervention;
use super::rest::{Escapes, Parts, PartsStart, Stream, WINDOW};
use super::transaction::{ArgumentSource, Transaction};
use super::undeclared::boundary;
use super::uninspected::Uninspected;
use crate::body::RestOfBody;
use crate::body::multipart::base64_digit;
use crate::vocabulary::Variable;

pub(super) use super::rest::OVERLAP;

/// How many bytes of suspicious windows are collected before rules run on them.
const BATCH: usize = 64 * 1024;

/// The name of windows among the arguments.
pub const REST_OF_BODY: &[u8] = b"rest_of_body";

/// The format of a body that continues beyond its limit.
#[derive(Debug, Clone)]
pub(super) enum RestOf {
    /// A form, whose content is decoded.
    Form,
    Json,
    Xml,
    /// Parts, with the content of files between them.
    Multipart(PartsStart),
    Other,
}

enum Texts {
    Plain(Stream),
    Parts(Box<Parts>),
}

/// The rest of a body: the current window of each reading, and the suspicious windows until they are taken.
pub(super) struct Oversize {
    texts: Texts,
    found: Found,
}

/// The suspicious windows.
#[derive(Default)]
struct Found {
    /// Every window counts as suspicious.
    all: bool,
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
    /// How many windows were scanned.
    scanned: usize,
}

impl Oversize {
    pub(super) fn new(of: RestOf) -> Self {
        let texts = match of {
            RestOf::Form => Texts::Plain(Stream::new(Some(Escapes::Percent), &[])),
            RestOf::Json => Texts::Plain(Stream::new(None, &[Escapes::Json])),
            RestOf::Xml => Texts::Plain(Stream::new(None, &[Escapes::References])),
            RestOf::Other => Texts::Plain(Stream::new(None, &[Escapes::Json, Escapes::References])),
            RestOf::Multipart(start) => Texts::Parts(Box::new(Parts::new(start))),
        };
        Self { texts, found: Found::default() }
    }

    /// The rest of a body behind these bytes. Scans the last of them again, for what begins there.
    pub(super) fn behind(of: RestOf, seen: &[u8]) -> Self {
        let mut rest = Self::new(of);
        let tail = seen.get(seen.len().saturating_sub(OVERLAP)..).unwrap_or_default();
        // The tail is shorter than a window: no window is complete yet.
        match &mut rest.texts {
            Texts::Plain(stream) => {
                stream.feed(tail, &mut |_| ());
                stream.is_seen();
            }
            Texts::Parts(parts) => {
                parts.feed(tail, &mut |_| ());
                parts.is_seen();
            }
        }
        rest
    }

    /// Takes the next bytes; returns the number of windows scanned.
    pub(super) fn scan(&mut self, engine: &Engine, bytes: &[u8]) -> usize {
        let found = &mut self.found;
        let mut sink = |window: &[u8]| found.keep(engine, window);
        match &mut self.texts {
            Texts::Plain(stream) => stream.feed(bytes, &mut sink),
            Texts::Parts(parts) => parts.feed(bytes, &mut sink),
        }
        std::mem::take(&mut self.found.scanned)
    }

    /// Scans the pending bytes, as nothing follows for now. They stay in front of further bytes.
    pub(super) fn end(&mut self, engine: &Engine) {
        let found = &mut self.found;
        let mut sink = |window: &[u8]| found.keep(engine, window);
        match &mut self.texts {
            Texts::Plain(stream) => stream.end(&mut sink),
            Texts::Parts(parts) => parts.end(&mut sink),
        }
    }

    /// How many times each byte is read.
    fn readings(&self) -> usize {
        match &self.texts {
            Texts::Plain(stream) => stream.readings(),
            // One more pass finds the parts.
            Texts::Parts(parts) => parts.readings() + 1,
        }
    }

    /// The suspicious windows, once they have at least `least` bytes.
    pub(super) fn take(&mut self, least: usize) -> Vec<Vec<u8>> {
        if self.found.kept_bytes < least {
            return Vec::new();
        }
        self.found.kept_bytes = 0;
        std::mem::take(&mut self.found.kept)
    }
}

impl Found {
    fn keep(&mut self, engine: &Engine, text: &[u8]) {
        self.scanned += usize::from(!self.all);
        if self.all || engine.suspicion().of(&engine.scanner, text) {
            self.kept_bytes += text.len();
            self.kept.push(text.to_vec());
        }
    }
}

impl Transaction {
    /// The announced length of the body exceeds its limits.
    pub fn request_body_too_long(&mut self) {
        let limits = self.request_body_limits();
        self.note_oversize(&limits);
    }

    /// The body is not inspected beyond a limit that the caller sets: the name of the limit, and the limit; 0 if no
    /// byte is inspected.
    pub fn request_body_left_out(&mut self, limit: &'static str, most: u64) {
        self.left_out_beyond("REQUEST_BODY", limit, most);
    }

    /// Records that the body exceeds a limit. The limits decide which part of it is inspected.
    pub(super) fn note_oversize(&mut self, limits: &BodyLimits) {
        // A body that is cut at another limit loses no more at this one.
        if self.uninspected.iter().any(|found| found.collection == "REQUEST_BODY" && !found.tolerated) {
            return;
        }
        let (limit, most) = match limits.without_files < limits.total {
            true => ("bytes without files", limits.without_files),
            false => ("bytes", limits.total),
        };
        let found = Uninspected { collection: "REQUEST_BODY", limit, most, tolerated: !limits.reject };
        if !self.uninspected.contains(&found) {
            self.uninspected.push(found);
        }
    }

    /// The format of the rest of the body.
    pub(super) fn rest_of(&mut self, incoming: &Incoming) -> RestOf {
        if let Some(reader) = &incoming.multipart {
            let mut start = PartsStart { boundary: reader.boundary().to_vec(), ..PartsStart::default() };
            if let Some(open) = reader.open_part() {
                start.file = open.file;
                start.encoding = open.encoding.to_vec();
                // The last bytes are scanned again. If they are more than the content, they include the head of the
                // part.
                start.digits = [false, true].map(|both_alphabets| {
                    let is_digit = |byte: &&u8| base64_digit(**byte, both_alphabets).is_some();
                    let digits = |bytes: &[u8]| bytes.iter().filter(is_digit).count();
                    let content: usize = open.content.into_iter().map(digits).sum();
                    content.wrapping_sub(digits(&incoming.tail)) % 4
                });
                self.arena.budget.charge_search(open.content.into_iter().map(<[u8]>::len).sum());
            }
            return RestOf::Multipart(start);
        }
        if let Some(boundary) = boundary(self.arena.get(self.content_type)) {
            return RestOf::Multipart(PartsStart { boundary, any: true, ..PartsStart::default() });
        }
        let processor = self.scalar(Variable::ReqbodyProcessor);
        match self.arena.get(processor) {
            b"URLENCODED" => RestOf::Form,
            b"JSON" => RestOf::Json,
            b"XML" => RestOf::Xml,
            _ => RestOf::Other,
        }
    }

    /// Makes text that a parser left unread, where it stopped or where the body was cut, available to rules: in
    /// windows, in each reading.
    pub(super) fn scan_unread(&mut self, of: RestOf, bytes: &[u8]) {
        let mut rest = Oversize::new(of);
        rest.found.all = true;
        self.arena.budget.charge_decoding(bytes.len().saturating_mul(rest.readings()), 0);
        let engine = std::sync::Arc::clone(&self.engine);
        rest.scan(&engine, bytes);
        rest.end(&engine);
        rest.take(0).iter().for_each(|window| self.add_window(window));
    }

    /// Scans bytes of the rest of the body. The budget of this transaction is for the bytes before: it grows by the
    /// cost of the scan.
    pub(super) fn scan_rest(&mut self, bytes: &[u8]) {
        let Some(rest) = &mut self.incoming.oversize else { return };
        let (readings, windows) = (rest.readings(), rest.scan(&self.engine, bytes));
        self.rest.bytes = self.rest.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.arena.budget.add_paid(|budget| {
            budget.charge_decoding(bytes.len().saturating_mul(readings), 0);
            (0..windows).for_each(|_| budget.charge_scan(WINDOW, 0));
        });
    }

    /// The state of the rest of the body, for the accounting of the caller.
    pub fn rest_of_body(&mut self) -> &mut RestOfBody {
        &mut self.rest
    }

    /// The suspicious windows of the rest of the body, once about 64 KiB of them are collected; else none. Run
    /// [`Transaction::evaluate_suspicious`] of another transaction on them, so that this one does not hold more.
    /// Windows that are not taken become arguments of this transaction.
    pub fn take_suspicious(&mut self) -> Vec<Vec<u8>> {
        self.incoming.oversize.as_mut().map(|rest| rest.take(BATCH)).unwrap_or_default()
    }

    /// Whether the body continued behind the input of [`Transaction::request_body`], and the rest is to be scanned.
    pub fn scans_rest(&self) -> bool {
        self.body_seen && self.incoming.oversize.is_some()
    }

    /// Scans a piece of the body behind the input of [`Transaction::request_body`]; `end` if it is the last. Returns
    /// windows as [`Transaction::take_suspicious`] does, at the end all that are left.
    pub fn request_body_rest(&mut self, bytes: &[u8], end: bool) -> Vec<Vec<u8>> {
        if !self.scans_rest() {
            return Vec::new();
        }
        self.scan_rest(bytes);
        let Some(rest) = self.incoming.oversize.as_mut().filter(|_| end) else {
            return self.take_suspicious();
        };
        rest.end(&self.engine);
        let windows = rest.take(0);
        self.incoming.oversize = None;
        windows
    }

    /// Runs phase 2 on windows of another transaction's body, in place of [`Transaction::request_body`].
    pub fn evaluate_suspicious(&mut self, windows: &[Vec<u8>]) -> Option<Intervention> {
        if !self.runs() {
            return None;
        }
        self.borrow_hot_cache();
        let length = windows.iter().map(Vec::len).sum();
        self.arena.budget.bring(length);
        self.arena.budget.charge_copy(length);
        windows.iter().for_each(|window| self.add_window(window));
        self.body_seen = true;
        self.run_phase(2)
    }

    pub(super) fn add_window(&mut self, window: &[u8]) {
        self.arguments_to_add().add_named(ArgumentSource::Form, REST_OF_BODY, window);
    }
}
