//! What of a body is over its limit, where that is no reason to refuse it.
//!
//! No parser reads it. It is cut into windows that overlap, and each one is scanned by the prefilter that tells which rules
//! may match a value. Where any rule may match that would not match letters and digits, the window becomes an argument.

use std::borrow::Cow;

use super::body::BodyLimits;
use super::build::Engine;
use super::transaction::Transaction;
use super::uninspected::Uninspected;
use crate::transform::decode_argument;

/// How long a window is, and how much of the one before is in it, in bytes.
const WINDOW: usize = 4096;
const OVERLAP: usize = 512;

/// How many bytes of windows are kept for the rules.
const KEPT: usize = 256 * 1024;

/// What the windows are called among the arguments.
const NAME: &[u8] = b"rest_of_body";

/// The rest of a body.
pub(super) struct Oversize {
    /// It is the rest of a form.
    form: bool,
    pending: Vec<u8>,
    /// What of the pending bytes was in a window already.
    seen: usize,
    /// The gates that a harmless value passes; empty until it is known.
    harmless: Vec<u64>,
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
}

impl Oversize {
    pub(super) fn new(form: bool) -> Self {
        Self { form, pending: Vec::new(), seen: 0, harmless: Vec::new(), kept: Vec::new(), kept_bytes: 0 }
    }

    /// Takes the next bytes.
    pub(super) fn scan(&mut self, engine: &Engine, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(window) = self.pending.get(start..start + WINDOW).map(<[u8]>::to_vec) {
            self.window(engine, &window);
            start += WINDOW - OVERLAP;
            self.seen = OVERLAP;
        }
        self.pending.drain(..start.min(self.pending.len()));
    }

    /// The windows that rules are to see, each with the name that it has among the arguments.
    pub(super) fn finish(mut self, engine: &Engine) -> Vec<(&'static [u8], Vec<u8>)> {
        if self.pending.len() > self.seen {
            let window = std::mem::take(&mut self.pending);
            self.window(engine, &window);
        }
        self.kept.into_iter().map(|window| (NAME, window)).collect()
    }

    fn window(&mut self, engine: &Engine, window: &[u8]) {
        let text = if self.form { decode_argument(window).0 } else { Cow::Borrowed(window) };
        if self.kept_bytes + text.len() > KEPT {
            return;
        }
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
    /// Notes that the body is over a limit. What is inspected of it then is what the limits ask for.
    pub(super) fn note_oversize(&mut self, limits: &BodyLimits) {
        let (limit, most) = match limits.without_files < limits.total {
            true => ("bytes without files", limits.without_files),
            false => ("bytes", limits.total),
        };
        let found = Uninspected { collection: "REQUEST_BODY", limit, most, tolerated: !limits.reject };
        if !self.uninspected.contains(&found) {
            self.uninspected.push(found);
        }
    }
}
