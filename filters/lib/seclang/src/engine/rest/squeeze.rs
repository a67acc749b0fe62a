//! Long white space, which parts what belongs together.

/// How much of a run of white space is left, in bytes.
const LONGEST: usize = 8;

/// Cuts runs of white space short, in a text that goes on.
#[derive(Default)]
pub(super) struct Squeeze {
    /// How long the run is at the end of the text so far.
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
