//! Long comments (`/* ... */`), which separate the parts of an attack.

/// How many bytes of a comment remain.
const LONGEST: usize = 64;
/// How many bytes remain before a comment within a comment.
const CONTEXT: usize = 128;

/// Shortens comments in a text that arrives in pieces.
pub(super) struct Comments {
    /// What begins a comment within one is in front of a comment: what was said to begin the first one was none.
    inner: bool,
    inside: bool,
    /// The length of the comment so far.
    length: usize,
    last: u8,
    /// The bytes that were left out last.
    left: Vec<u8>,
    cut: bool,
}

impl Comments {
    pub(super) fn new(inner: bool) -> Self {
        Self { inner, inside: false, length: 0, last: 0, left: Vec::new(), cut: false }
    }

    /// Whether there is no comment in the next bytes.
    pub(super) fn is_idle(&self, text: &[u8]) -> bool {
        !self.inside && self.last != b'/' && text.last() != Some(&b'/') && memchr::memmem::find(text, b"/*").is_none()
    }

    /// Whether a shortened comment ended.
    pub(super) fn apply(&mut self, text: &mut Vec<u8>) -> bool {
        if self.is_idle(text) {
            self.last = text.last().copied().unwrap_or(self.last);
            return false;
        }
        let (mut output, mut changed) = (Vec::with_capacity(text.len()), false);
        for &byte in text.iter() {
            match (std::mem::replace(&mut self.last, byte), byte) {
                (b'/', b'*') if !self.inside => {
                    (self.inside, self.length, self.cut) = (true, 0, false);
                    self.left.clear();
                    self.last = 0;
                    output.push(byte);
                }
                (b'/', b'*') if self.inner => {
                    self.context();
                    output.append(&mut self.left);
                    changed |= self.cut;
                    self.length = 0;
                    self.last = 0;
                    output.extend_from_slice(b"/*");
                }
                (b'*', b'/') if self.inside => {
                    self.inside = false;
                    changed |= self.cut;
                    self.last = 0;
                    output.extend_from_slice(if self.length > LONGEST { b"*/" } else { b"/" });
                }
                _ if !self.inside => output.push(byte),
                _ => {
                    self.length = self.length.saturating_add(1);
                    if self.length <= LONGEST {
                        output.push(byte);
                    } else {
                        self.cut = true;
                        self.left.push(byte);
                        if self.left.len() > 2 * CONTEXT {
                            self.context();
                        }
                    }
                }
            }
        }
        *text = output;
        changed
    }

    fn context(&mut self) {
        self.left.drain(..self.left.len().saturating_sub(CONTEXT));
    }
}
