//! Parts of forms with files.

use super::{MASK, Mask};
use crate::samples::names::percent_decoded;

/// The most boundaries of one body: its own, and those of parts with parts.
const MAX_BOUNDARIES: usize = 8;
const DISPOSITION: &[u8] = b"content-disposition";

/// The part that is being read.
#[derive(Default)]
struct Part<'t> {
    /// What is read are its headers.
    head: bool,
    /// The last header line was, or went on with, its disposition.
    disposition: bool,
    secret: bool,
    matched: bool,
    /// The lines of its content.
    content: &'t [u8],
}

impl Mask<'_> {
    /// The content of parts whose name is that of a secret, and the secrets in the content of others. A line with two dashes in front of
    /// a header of a part is a boundary, whatever the type of the body says.
    pub(super) fn multipart(&mut self, text: &[u8], boundary: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut boundaries: Vec<&[u8]> = boundary.into_iter().filter(|boundary| !boundary.is_empty()).collect();
        let (mut out, mut changed, mut found) = (Vec::with_capacity(text.len()), false, false);
        let mut part = Part::default();
        let (mut at, mut content_start) = (0_usize, 0_usize);
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let start = at;
            at = at.saturating_add(line.len());
            let bare = line.trim_ascii_end();
            let dashed = bare.strip_prefix(b"--");
            let heads = |line: &&[u8]| line.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"content-"));
            let heads = lines.peek().is_some_and(heads);
            let known = dashed.is_some_and(|dashed| boundaries.contains(&dashed.strip_suffix(b"--").unwrap_or(dashed)));
            if let Some(dashed) = dashed.filter(|_| known || heads) {
                if !known && boundaries.len() < MAX_BOUNDARIES && !dashed.is_empty() {
                    boundaries.push(dashed);
                }
                part.content = text.get(content_start..start).unwrap_or_default();
                changed |= self.content(&part, true, &mut out);
                out.extend_from_slice(line);
                part = Part { head: true, ..Part::default() };
                (content_start, found) = (at, true);
            } else if part.head {
                out.extend_from_slice(line);
                content_start = at;
                part.head = !bare.is_empty();
                self.header_of_part(line, &mut part);
            }
        }
        part.content = text.get(content_start..).unwrap_or_default();
        if !found {
            return None;
        }
        changed |= self.content(&part, false, &mut out);
        changed.then_some(out)
    }

    fn header_of_part(&self, line: &[u8], part: &mut Part<'_>) {
        let name = line.get(..DISPOSITION.len()).unwrap_or_default();
        let goes_on = matches!(line.first(), Some(b' ' | b'\t'));
        part.disposition = name.eq_ignore_ascii_case(DISPOSITION) || (goes_on && part.disposition);
        if part.disposition {
            // Whatever way of writing the name an application reads, it is somewhere in the line.
            let text = percent_decoded(line);
            let name = parameter(&text);
            part.secret |= self.is_secret(&text) || name.is_some_and(|name| self.is_secret(name));
            part.matched |= name.is_some_and(|name| self.target.is_argument(name));
        }
    }

    /// Writes the content of a part; whether anything was masked. If a boundary follows, the end of the last line belongs to that.
    fn content(&mut self, part: &Part<'_>, bounded: bool, out: &mut Vec<u8>) -> bool {
        let whole = part.content;
        let content = match whole {
            [content @ .., b'\r', b'\n'] | [content @ .., b'\n'] if bounded => content,
            _ => whole,
        };
        let end = whole.get(content.len()..).unwrap_or_default();
        let masked = match part.secret {
            _ if content.is_empty() => None,
            true => Some(MASK.to_vec()),
            false => self.text(content, part.matched),
        };
        if part.matched && masked.is_some() {
            self.changed.clone_from(&masked);
        }
        out.extend_from_slice(masked.as_deref().unwrap_or(content));
        out.extend_from_slice(end);
        masked.is_some()
    }
}

/// The boundary that a content type names; empty if it names none.
pub(super) fn boundary(content_type: &[u8]) -> &[u8] {
    let at = content_type.windows(9).position(|word| word.eq_ignore_ascii_case(b"boundary="));
    let value = at.and_then(|at| content_type.get(at.saturating_add(9)..)).unwrap_or_default();
    token(value)
}

/// The parameter `name` of a disposition.
fn parameter(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(6).position(|word| {
        let (before, name) = word.split_first().unwrap_or((&0, &[]));
        !before.is_ascii_alphanumeric() && name.eq_ignore_ascii_case(b"name=")
    })?;
    line.get(at.saturating_add(6)..).map(token)
}

/// A value in quotes, or up to the next `;` or white space.
fn token(text: &[u8]) -> &[u8] {
    let (text, quoted) = match text.strip_prefix(b"\"") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let ends = |byte: &u8| if quoted { *byte == b'"' } else { byte.is_ascii_whitespace() || b";,".contains(byte) };
    text.split(ends).next().unwrap_or_default()
}
