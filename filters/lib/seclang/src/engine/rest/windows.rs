//! Windows of a text that goes on.

use super::Sink;

/// How long a window is, and how much of the one before is in it, in bytes.
pub(in crate::engine) const WINDOW: usize = 4096;
pub(in crate::engine) const OVERLAP: usize = 512;

/// Cuts a text into windows.
pub(super) struct Windows {
    /// All windows count; otherwise those alone in which something was changed.
    always: bool,
    pending: Vec<u8>,
    /// What of the pending bytes was in a window already, or in what a parser has read.
    seen: usize,
    /// Where the last change among the pending bytes ends; 0 if there is none.
    changed: usize,
}

impl Windows {
    pub(super) fn new(always: bool) -> Self {
        Self { always, pending: Vec::new(), seen: 0, changed: 0 }
    }

    pub(super) fn push(&mut self, text: &[u8], changed: bool, sink: Sink<'_>) {
        self.pending.extend_from_slice(text);
        if changed {
            self.changed = self.pending.len();
        }
        let mut start = 0;
        while let Some(window) = self.pending.get(start..start + WINDOW) {
            if self.always || self.changed > start {
                sink(window);
            }
            start += WINDOW - OVERLAP;
            self.seen = OVERLAP;
        }
        self.drop(start);
    }

    /// Whether no window is to be given unless something is changed.
    pub(super) fn is_unchanged(&self) -> bool {
        !self.always && self.changed == 0
    }

    /// Takes text that is in no window but for what may be in front of a change.
    pub(super) fn skip(&mut self, text: &[u8]) {
        self.pending.extend_from_slice(text.get(text.len().saturating_sub(OVERLAP)..).unwrap_or_default());
        self.drop(self.pending.len().saturating_sub(OVERLAP));
        self.seen = self.pending.len();
    }

    pub(super) fn is_seen(&mut self) {
        self.seen = self.pending.len();
    }

    /// Gives what is left. It stays in front of what may follow later.
    pub(super) fn end(&mut self, sink: Sink<'_>) {
        if self.pending.len() > self.seen && (self.always || self.changed > 0) {
            sink(&self.pending);
        }
        self.drop(self.pending.len().saturating_sub(OVERLAP));
        self.seen = self.pending.len();
    }

    fn drop(&mut self, bytes: usize) {
        self.pending.drain(..bytes.min(self.pending.len()));
        self.changed = self.changed.saturating_sub(bytes);
    }
}
