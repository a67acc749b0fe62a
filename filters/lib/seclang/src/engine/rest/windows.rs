//! Windows of a text that arrives in pieces.

use super::Sink;

/// The length of a window and its overlap with the one before, in bytes.
pub(in crate::engine) const WINDOW: usize = 4096;
pub(in crate::engine) const OVERLAP: usize = 512;

/// Cuts a text into windows.
pub(super) struct Windows {
    /// Whether all windows are returned, or only those with a change.
    always: bool,
    pending: Vec<u8>,
    /// How many of the pending bytes were in a window already, or read by a parser.
    seen: usize,
    /// The end of the last change among the pending bytes; 0 if nothing changed.
    changed: usize,
    /// The end of the last of the pending bytes that another text does not have alike; 0 if it has all of them. Windows
    /// without such a byte are not returned.
    differs: usize,
}

impl Windows {
    pub(super) fn new(always: bool) -> Self {
        Self { always, pending: Vec::new(), seen: 0, changed: 0, differs: 0 }
    }

    pub(super) fn push(&mut self, text: &[u8], changed: bool, differs: bool, sink: Sink<'_>) {
        self.pending.extend_from_slice(text);
        if changed {
            self.changed = self.pending.len();
        }
        if differs {
            self.differs = self.pending.len();
        }
        let mut start = 0;
        while let Some(window) = self.pending.get(start..start + WINDOW) {
            if self.is_returned(start) {
                sink(window);
            }
            start += WINDOW - OVERLAP;
            self.seen = OVERLAP;
        }
        self.drop(start);
    }

    /// Whether windows are returned only after a change, and nothing has changed.
    pub(super) fn is_unchanged(&self) -> bool {
        !self.always && self.changed == 0
    }

    /// Takes text without a change: it is only in a window if a change follows.
    pub(super) fn skip(&mut self, text: &[u8], differs: bool) {
        self.pending.extend_from_slice(text.get(text.len().saturating_sub(OVERLAP)..).unwrap_or_default());
        if differs {
            self.differs = self.pending.len();
        }
        self.drop(self.pending.len().saturating_sub(OVERLAP));
        self.seen = self.pending.len();
    }

    pub(super) fn is_seen(&mut self) {
        self.seen = self.pending.len();
    }

    /// Returns the pending bytes as a window. They stay in front of further bytes.
    pub(super) fn end(&mut self, sink: Sink<'_>) {
        if self.pending.len() > self.seen && self.is_returned(0) {
            sink(&self.pending);
        }
        self.drop(self.pending.len().saturating_sub(OVERLAP));
        self.seen = self.pending.len();
    }

    /// Whether the window that begins here is returned.
    fn is_returned(&self, start: usize) -> bool {
        (self.always || self.changed > start) && self.differs > start
    }

    fn drop(&mut self, bytes: usize) {
        self.pending.drain(..bytes.min(self.pending.len()));
        self.changed = self.changed.saturating_sub(bytes);
        self.differs = self.differs.saturating_sub(bytes);
    }
}
