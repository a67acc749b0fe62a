//! The content of a file that some applications read as a field, because of what its head lacks.
//!
//! Honest clients send files with such heads. So only text is inspected, up to a length: what is no text is a file, and so is a long
//! text.

/// The longest content of one part that is kept, in bytes.
const LONGEST: usize = 128 * 1024;
/// How many bytes are kept for all parts of a body.
pub(super) const ROOM: usize = 1024 * 1024;

/// The content so far.
#[derive(Debug, Default)]
pub(super) struct Loose {
    text: Vec<u8>,
    /// It is no text, or too long.
    is_file: bool,
}

impl Loose {
    /// Takes a piece; `room` is how many bytes may still be kept of all parts.
    pub(super) fn take(&mut self, piece: &[u8], room: &mut usize) {
        if self.is_file {
            return;
        }
        let fits = self.text.len() + piece.len() <= LONGEST && piece.len() <= *room;
        if fits && piece.iter().copied().all(may_be_text) {
            *room -= piece.len();
            self.text.extend_from_slice(piece);
        } else {
            self.is_file = true;
            self.text = Vec::new();
        }
    }

    /// The whole content, if there is any and it is text. The end of the line in front of the boundary is in it.
    pub(super) fn text(self) -> Option<Vec<u8>> {
        (!self.text.is_empty() && std::str::from_utf8(&self.text).is_ok()).then_some(self.text)
    }
}

/// Control characters are in no text but those that separate its words, lines and pages.
fn may_be_text(byte: u8) -> bool {
    !byte.is_ascii_control() || matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[&[u8]], mut room: usize) -> Option<Vec<u8>> {
        let mut loose = Loose::default();
        pieces.iter().for_each(|piece| loose.take(piece, &mut room));
        loose.text()
    }

    #[test]
    fn text_is_kept_and_what_is_none_or_too_long_is_not() {
        assert_eq!(text(&[b"a\xc3", b"\xa4\tb\r\n"], ROOM).unwrap(), b"a\xc3\xa4\tb\r\n");
        for binary in [&b"a\0b"[..], b"\x89PNG\r\n\x1a\n", b"\xff\xfe", b""] {
            assert_eq!(text(&[b"a", binary, b"b"], ROOM).is_some(), binary.is_empty(), "{}", binary.escape_ascii());
        }
        let long = vec![b'x'; LONGEST];
        assert_eq!(text(&[&long], ROOM).unwrap().len(), LONGEST);
        assert_eq!(text(&[&long, b"x"], ROOM), None);
        assert_eq!(text(&[b"ab", b"cd"], 3), None);
        assert_eq!(text(&[b"ab", b"c"], 3).unwrap(), b"abc");
    }
}
