//! What of a body is over its limit, where that is no reason to refuse it.
//!
//! No parser reads it. It is cut into windows that overlap, in each reading that applications have of it, and each one is
//! scanned by the prefilter that tells which rules may match a value. Where any rule may match that would not match letters
//! and digits, the window is for the rules: among the arguments of its transaction, or where many gather, in a transaction of
//! their own ([`Transaction::take_suspicious`]).

use super::body::{BodyLimits, Incoming};
use super::build::Engine;
use super::rest::{Escapes, Parts, PartsStart, Stream, WINDOW, base64_digit};
use super::transaction::{ArgumentSource, Intervention, Transaction};
use super::undeclared::boundary;
use super::uninspected::Uninspected;
use crate::vocabulary::Variable;

pub(super) use super::rest::OVERLAP;

/// How many bytes of windows gather before rules see them.
const BATCH: usize = 64 * 1024;

/// What windows of the rest of a body are called among the arguments.
pub const REST_OF_BODY: &[u8] = b"rest_of_body";

/// What a body is that goes on.
#[derive(Debug, Clone)]
pub(super) enum RestOf {
    /// A form: what is in it is decoded.
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

/// The rest of a body. Holds a window of each reading, and the windows for the rules until they are taken.
pub(super) struct Oversize {
    texts: Texts,
    found: Found,
}

/// The windows for the rules.
#[derive(Default)]
struct Found {
    /// Every window is for the rules.
    all: bool,
    /// The gates that a harmless value passes; empty until it is known.
    harmless: Vec<u64>,
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

    /// What follows these bytes, of which the last are looked at once more: for what begins there.
    pub(super) fn behind(of: RestOf, seen: &[u8]) -> Self {
        let mut rest = Self::new(of);
        let tail = seen.get(seen.len().saturating_sub(OVERLAP)..).unwrap_or_default();
        // It is shorter than a window.
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

    /// Takes the next bytes; returns how many windows it has scanned for them.
    pub(super) fn scan(&mut self, engine: &Engine, bytes: &[u8]) -> usize {
        let found = &mut self.found;
        let mut sink = |window: &[u8]| found.keep(engine, window);
        match &mut self.texts {
            Texts::Plain(stream) => stream.feed(bytes, &mut sink),
            Texts::Parts(parts) => parts.feed(bytes, &mut sink),
        }
        std::mem::take(&mut self.found.scanned)
    }

    /// Scans what is left, as nothing follows for now. It stays in front of what may follow later.
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
            // The parts are told apart as well.
            Texts::Parts(parts) => parts.readings() + 1,
        }
    }

    /// The windows for the rules, once there are at least so many bytes of them.
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
        if self.all || self.is_suspicious(engine, text) {
            self.kept_bytes += text.len();
            self.kept.push(text.to_vec());
        }
    }

    /// Whether a rule may match that would not match letters and digits.
    fn is_suspicious(&mut self, engine: &Engine, text: &[u8]) -> bool {
        let words = engine.scanner.words();
        if self.harmless.len() < words {
            self.harmless = vec![0; words];
            let letters: Vec<u8> = (b'a'..=b'z').chain(b'0'..=b'9').cycle().take(WINDOW).collect();
            engine.scanner.scan(&letters, &mut self.harmless);
        }
        let mut open = vec![0; words];
        engine.scanner.scan(text, &mut open);
        self.scanned += 1;
        words == 0 || open.iter().zip(&self.harmless).any(|(open, harmless)| open & !harmless != 0)
    }
}

impl Transaction {
    /// The body is longer than its limits allow, as its announced length says already.
    pub fn request_body_too_long(&mut self) {
        let limits = self.request_body_limits();
        self.note_oversize(&limits);
    }

    /// The body cannot be decoded beyond a limit: what the limit is of, and the limit; 0 if nothing of it can be.
    pub fn request_body_undecoded(&mut self, limit: &'static str, most: u64) {
        let found = Uninspected { collection: "REQUEST_BODY", limit, most, tolerated: false };
        if !self.uninspected.contains(&found) {
            self.uninspected.push(found);
        }
    }

    /// Notes that the body is over a limit. What is inspected of it then is what the limits ask for.
    pub(super) fn note_oversize(&mut self, limits: &BodyLimits) {
        // Of a body that ends at another limit already, no more is left out at this one.
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

    /// What the body is that goes on behind what came of it.
    pub(super) fn rest_of(&mut self, incoming: &Incoming) -> RestOf {
        if let Some(reader) = &incoming.multipart {
            let mut start = PartsStart { boundary: reader.boundary().to_vec(), ..PartsStart::default() };
            if let Some(open) = reader.open_part() {
                let digits = |bytes: &[u8]| bytes.iter().filter(|byte| base64_digit(**byte).is_some()).count();
                start.file = open.file;
                start.encoding = open.encoding.to_vec();
                // The last bytes come again. Where they are more than the content, the head of the part is among them.
                let content: usize = open.content.into_iter().map(digits).sum();
                start.digits = content.wrapping_sub(digits(&incoming.tail)) % 4;
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

    /// Puts text in front of the rules that a parser has left unread, where it stopped or where the body was cut: in windows, in
    /// each reading.
    pub(super) fn scan_unread(&mut self, of: RestOf, bytes: &[u8]) {
        let mut rest = Oversize::new(of);
        rest.found.all = true;
        self.arena.budget.charge_decoding(bytes.len().saturating_mul(rest.readings()), 0);
        let engine = std::sync::Arc::clone(&self.engine);
        rest.scan(&engine, bytes);
        rest.end(&engine);
        rest.take(0).iter().for_each(|window| self.add_window(window));
    }

    /// Scans bytes of the rest of the body, for which the budget grows and is charged.
    pub(super) fn scan_rest(&mut self, bytes: &[u8]) {
        let Some(rest) = &mut self.incoming.oversize else { return };
        self.arena.budget.bring(bytes.len());
        self.arena.budget.charge_decoding(bytes.len().saturating_mul(rest.readings()), 0);
        for _ in 0..rest.scan(&self.engine, bytes) {
            self.arena.budget.charge_scan(WINDOW);
        }
    }

    /// The windows of the rest of the body that rules may match, once some 64 KiB of them have gathered; else none. They are
    /// for [`Transaction::judge_suspicious`] of a transaction of their own, so that no more than these are held. Those that
    /// no rule takes are among the arguments of this transaction.
    pub fn take_suspicious(&mut self) -> Vec<Vec<u8>> {
        self.incoming.oversize.as_mut().map(|rest| rest.take(BATCH)).unwrap_or_default()
    }

    /// Whether the body went on behind what [`Transaction::request_body`] was given, and the rest is to be scanned.
    pub fn scans_rest(&self) -> bool {
        self.body_seen && self.incoming.oversize.is_some()
    }

    /// Scans a piece of the body behind what [`Transaction::request_body`] was given, as it passes; `end` if nothing
    /// follows. Returns windows as [`Transaction::take_suspicious`] does, at the end all that are left.
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
    pub fn judge_suspicious(&mut self, windows: &[Vec<u8>]) -> Option<Intervention> {
        if !self.runs() {
            return None;
        }
        self.meet_familiar();
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
