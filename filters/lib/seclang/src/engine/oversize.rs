//! What of a body is over its limit, where that is no reason to refuse it.
//!
//! No parser reads it. It is cut into windows that overlap, and each one is scanned by the prefilter that tells which rules
//! may match a value. Where any rule may match that would not match letters and digits, the window is for the rules: among
//! the arguments of its transaction, or where many gather, in a transaction of their own ([`Transaction::take_suspicious`]).

use std::borrow::Cow;

use super::body::BodyLimits;
use super::build::Engine;
use super::transaction::{ArgumentSource, Intervention, Transaction};
use super::uninspected::Uninspected;
use crate::transform::decode_argument;
use crate::vocabulary::Variable;

/// How long a window is, and how much of the one before is in it, in bytes.
const WINDOW: usize = 4096;
pub(super) const OVERLAP: usize = 512;

/// How many bytes of windows gather before rules see them.
const BATCH: usize = 64 * 1024;

/// The shortest text in a multipart body that is looked at: every field has a longer header in front.
const SHORTEST_TEXT: usize = 16;

/// What windows of the rest of a body are called among the arguments.
pub const REST_OF_BODY: &[u8] = b"rest_of_body";

/// What a body is that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestOf {
    /// A form: windows are decoded.
    Form,
    /// Parts, with the content of files between them: windows are the texts in it.
    Multipart,
    Other,
}

/// The rest of a body. Holds a window, and the windows for the rules until they are taken.
pub(super) struct Oversize {
    of: RestOf,
    pending: Vec<u8>,
    /// What of the pending bytes was in a window already, or in what a parser has read.
    seen: usize,
    /// The gates that a harmless value passes; empty until it is known.
    harmless: Vec<u64>,
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
}

impl Oversize {
    /// What follows these bytes, of which the last are looked at once more: for what begins there.
    pub(super) fn behind(of: RestOf, seen: &[u8]) -> Self {
        let tail = seen.get(seen.len().saturating_sub(OVERLAP)..).unwrap_or_default().to_vec();
        Self { of, seen: tail.len(), pending: tail, harmless: Vec::new(), kept: Vec::new(), kept_bytes: 0 }
    }

    /// Takes the next bytes; returns how many windows it has scanned for them.
    pub(super) fn scan(&mut self, engine: &Engine, bytes: &[u8]) -> usize {
        self.pending.extend_from_slice(bytes);
        let (mut start, mut windows) = (0, 0);
        while let Some(window) = self.pending.get(start..start + WINDOW).map(<[u8]>::to_vec) {
            self.window(engine, &window);
            start += WINDOW - OVERLAP;
            self.seen = OVERLAP;
            windows += 1;
        }
        self.pending.drain(..start.min(self.pending.len()));
        windows
    }

    /// Scans what is left, as nothing follows for now. It stays in front of what may follow later.
    pub(super) fn end(&mut self, engine: &Engine) {
        if self.pending.len() > self.seen {
            let window = std::mem::take(&mut self.pending);
            self.window(engine, &window);
            self.pending = window.get(window.len().saturating_sub(OVERLAP)..).unwrap_or_default().to_vec();
            self.seen = self.pending.len();
        }
    }

    /// The windows for the rules, once there are at least so many bytes of them.
    pub(super) fn take(&mut self, least: usize) -> Vec<Vec<u8>> {
        if self.kept_bytes < least {
            return Vec::new();
        }
        self.kept_bytes = 0;
        std::mem::take(&mut self.kept)
    }

    fn window(&mut self, engine: &Engine, window: &[u8]) {
        match self.of {
            RestOf::Form => self.keep(engine, decode_argument(window).0),
            RestOf::Other => self.keep(engine, Cow::Borrowed(window)),
            RestOf::Multipart => {
                let is_noise = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\r' | '\n');
                let texts = window.utf8_chunks().flat_map(|chunk| chunk.valid().split(is_noise));
                for text in texts.filter(|text| text.len() >= SHORTEST_TEXT) {
                    // Lines are one text, as the header of a part is none of a message.
                    self.keep(engine, Cow::Owned(text.replace(['\r', '\n'], " ").into_bytes()));
                }
            }
        }
    }

    fn keep(&mut self, engine: &Engine, text: Cow<'_, [u8]>) {
        let words = engine.scanner.words();
        if self.harmless.len() < words {
            self.harmless = vec![0; words];
            let letters: Vec<u8> = (b'a'..=b'z').chain(b'0'..=b'9').cycle().take(WINDOW).collect();
            engine.scanner.scan(&letters, &mut self.harmless);
        }
        let mut open = vec![0; words];
        engine.scanner.scan(&text, &mut open);
        if words == 0 || open.iter().zip(&self.harmless).any(|(open, harmless)| open & !harmless != 0) {
            self.kept_bytes += text.len();
            self.kept.push(text.into_owned());
        }
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

    pub(super) fn rest_of(&mut self) -> RestOf {
        let processor = self.scalar(Variable::ReqbodyProcessor);
        match self.arena.get(processor) {
            b"URLENCODED" => RestOf::Form,
            b"MULTIPART" => RestOf::Multipart,
            _ => RestOf::Other,
        }
    }

    /// Scans bytes of the rest of the body, for which the budget grows and is charged.
    pub(super) fn scan_rest(&mut self, bytes: &[u8]) {
        let Some(rest) = &mut self.incoming.oversize else { return };
        self.arena.budget.bring(bytes.len());
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
