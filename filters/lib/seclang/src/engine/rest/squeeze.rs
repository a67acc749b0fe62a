//! Long white space, which separates the parts of an attack.

/// How many bytes of a run of white space remain.
const LONGEST: usize = 8;

/// Shortens runs of white space in a text that arrives in pieces.
#[derive(Default)]
pub(super) struct Squeeze {
    /// The length of the run at the end of the text so far.
    run: usize,
}

impl Squeeze {
    /// Whether anything was left out.
    pub(super) fn apply(&mut self, text: &mut Vec<u8>) -> bool {
        let before = text.len();
        text.retain(|byte| {
            self.run = if matches!(byte, b' ' | b'\t'..=b'\r') { self.run.saturating_add(1) } else { 0 };
            self.run <= LONGEST
        });
        text.len() < before
    }
}
