//! Makes text that no parser reads available to rules: in pieces, in overlapping windows, in each reading that an
//! application may have of it.

mod comments;
mod parts;
mod squeeze;
mod texts;
mod undo;
mod windows;

pub(in crate::engine) use parts::{Parts, PartsStart};
pub(in crate::engine) use texts::{is_text, texts, without_noise};
pub(in crate::engine) use undo::{Escapes, Undo, undone};
pub(in crate::engine) use windows::{OVERLAP, WINDOW};

use comments::Comments;
use squeeze::Squeeze;
use windows::Windows;

/// How many bytes are read at once: changes among them count for all of them.
const STEP: usize = 1024;

/// Takes the windows of a text.
pub(in crate::engine) type Sink<'s> = &'s mut dyn FnMut(&[u8]);

/// One reading of a text.
struct Reading {
    undo: Option<Undo>,
    squeeze: Squeeze,
    comments: Option<Comments>,
    windows: Windows,
    /// A buffer.
    text: Vec<u8>,
}

impl Reading {
    fn new(escapes: Option<Escapes>, comments: Option<Comments>, always: bool) -> Self {
        Self {
            undo: escapes.map(Undo::new),
            squeeze: Squeeze::default(),
            comments,
            windows: Windows::new(always),
            text: Vec::new(),
        }
    }

    /// Whether the reading is not needed, and these bytes do not make it needed.
    fn changes_nothing(&self, bytes: &[u8]) -> bool {
        self.windows.is_unchanged()
            && self.undo.as_ref().is_none_or(|undo| undo.is_idle(bytes))
            && self.comments.as_ref().is_none_or(|comments| comments.is_idle(bytes))
    }

    fn feed(&mut self, bytes: &[u8], differs: bool, sink: Sink<'_>) {
        for step in bytes.chunks(STEP) {
            if self.changes_nothing(step) {
                self.windows.skip(step, differs);
                self.squeeze = Squeeze::default();
                continue;
            }
            self.text.clear();
            let mut changed = match &mut self.undo {
                Some(undo) => undo.feed(step, &mut self.text),
                None => {
                    self.text.extend_from_slice(step);
                    false
                }
            };
            // Elsewhere it is short in the first reading already.
            let undone = self.text.len() < step.len();
            changed |= self.squeeze.apply(&mut self.text) && undone;
            if let Some(comments) = &mut self.comments {
                changed = comments.apply(&mut self.text);
            }
            self.windows.push(&self.text, changed, differs, sink);
        }
    }
}

/// A text in pieces, and its readings: as it is (or decoded, if every application decodes it), and where these differ,
/// with escapes undone and without the content of long comments. Long white space is shortened in all of them.
pub(in crate::engine) struct Stream {
    readings: Vec<Reading>,
    /// There is a difference from another stream in front of the next byte.
    differs: bool,
}

impl Stream {
    /// A text of which all readings have `always` undone, and one more each of `also`.
    pub(in crate::engine) fn new(always: Option<Escapes>, also: &[Escapes]) -> Self {
        let mut readings = vec![Reading::new(always, None, true)];
        readings.extend(also.iter().map(|escapes| Reading::new(Some(*escapes), None, false)));
        readings.extend([false, true].map(|inner| Reading::new(always, Some(Comments::new(inner)), false)));
        Self { readings, differs: false }
    }

    /// How many times each byte is read.
    pub(in crate::engine) fn readings(&self) -> usize {
        self.readings.len()
    }

    pub(in crate::engine) fn feed(&mut self, bytes: &[u8], sink: Sink<'_>) {
        self.feed_other(bytes, true, sink);
    }

    /// Takes text that another stream takes as well, decoded in another way. Windows in which it does not differ are left
    /// out.
    fn feed_other(&mut self, bytes: &[u8], differs: bool, sink: Sink<'_>) {
        self.differs |= differs;
        if bytes.is_empty() {
            return;
        }
        let differs = std::mem::take(&mut self.differs);
        for reading in &mut self.readings {
            reading.feed(bytes, differs, sink);
        }
    }

    /// Rules have seen the input so far in another form: continue after it.
    pub(in crate::engine) fn is_seen(&mut self) {
        self.readings.iter_mut().for_each(|reading| reading.windows.is_seen());
    }

    /// Nothing follows for now.
    pub(in crate::engine) fn end(&mut self, sink: Sink<'_>) {
        self.readings.iter_mut().for_each(|reading| reading.windows.end(sink));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All windows of a text in pieces of each length.
    fn windows(also: &[Escapes], text: &str, piece: usize) -> Vec<String> {
        let (mut stream, mut found) = (Stream::new(None, also), Vec::new());
        let mut sink = |window: &[u8]| found.push(String::from_utf8_lossy(window).into_owned());
        text.as_bytes().chunks(piece).for_each(|piece| stream.feed(piece, &mut sink));
        stream.end(&mut sink);
        found
    }

    #[test]
    fn a_reading_is_there_where_it_differs() {
        let pad = "lorem ipsum ".repeat(1000);
        for piece in [1, 7, 4096, 100_000] {
            let plain = windows(&[Escapes::Json, Escapes::References], &pad, piece);
            assert!(plain.iter().all(|window| pad.contains(window.as_str())), "{piece}");
            let count = plain.len();
            for (text, expected) in [
                (r"\u0055NION \x53ELECT", "UNION SELECT"),
                ("&#85;NION&#x20;<![CDATA[SEL]]>ECT", "UNION SELECT"),
                ("UNION/*%*/SELECT", "*/SELECT"),
            ] {
                let text = format!("{pad}{}{pad}", text.replace('%', &"x".repeat(9000)));
                let found = windows(&[Escapes::Json, Escapes::References], &text, piece);
                assert!(found.iter().any(|window| window.contains(expected)), "{expected} {piece}");
                let closed = found.iter().any(|window| window.contains("UNION") && window.contains("SELECT"));
                assert!(closed && found.len() <= 2 * count + 12, "{expected} {piece} {}", found.len());
            }
        }
    }

    #[test]
    fn white_space_and_comments_do_not_part_an_attack() {
        let decoy = format!("\"a\": \"/*\", {}", "b ".repeat(3000));
        for before in ["", decoy.as_str()] {
            for inside in [" ".repeat(5000), " \t\r\n".repeat(5000), format!("/*{}*/", "a".repeat(5000))] {
                for piece in [1, 100, 100_000] {
                    let found = windows(&[], &format!("{before}1 and sleep{inside}(5)"), piece);
                    assert!(
                        found.iter().any(|window| window.contains("sleep") && window.contains("(5)")),
                        "{inside:.9} {piece}"
                    );
                }
            }
        }
        let nested = format!("1 union/*{}*/select", "a/*".repeat(2000));
        assert!(windows(&[], &nested, 100).iter().any(|window| window.contains("union") && window.contains("select")));
    }
}
