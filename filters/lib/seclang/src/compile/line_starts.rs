//! Where the lines of a source begin.

/// The byte after each line feed. Counting lines from the start for each rule would take the square of the text.
#[derive(Debug)]
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(super) fn of(text: &[u8]) -> Self {
        Self(text.iter().zip(1..).filter(|(byte, _)| **byte == b'\n').map(|(_, next)| next).collect())
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, offset: usize) -> u32 {
        let before = self.0.partition_point(|start| *start <= offset);
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Diagnostic, Source};

    #[test]
    fn lines_are_those_of_diagnostics() {
        for text in ["", "\n", "a\nbc\n\n\nd", "a\r\nb\r\n"] {
            let (source, starts) = (Source::new("x", text), LineStarts::of(text.as_bytes()));
            for offset in 0..text.len() + 2 {
                assert_eq!(starts.line(offset), Diagnostic::at(&source, offset, "").line, "{text:?} {offset}");
            }
        }
    }
}
