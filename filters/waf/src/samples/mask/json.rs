//! Members of JSON documents, in any text that has some.

use super::{Edited, MASK, Mask, QUOTED_MASK, find};
use crate::samples::names::{json_escaped, json_unescaped};

/// The longest word that is a name without quotes, in bytes, with the white space behind it.
const MAX_WORD: usize = 64;

impl Mask<'_> {
    /// The strings and numbers of members, whatever is around them. A quote that ends a text which is no name may begin the next one: so
    /// the reading finds its way again behind anything that is no JSON.
    pub(super) fn json(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let (mut edited, mut at) = (Edited::new(text), 0_usize);
        while let Some(open) = find(text, b'"', at) {
            let start = open.saturating_add(1);
            let Some(close) = string_end(text, start) else { break };
            let colon = behind_space(text, close.saturating_add(1));
            if text.get(colon) != Some(&b':') {
                at = close;
                if self.depth > 0 && self.is_secret(word_before(text, open)) {
                    // `login(password: "x")`: a language within a string.
                    edited.mask(start, close);
                    at = close.saturating_add(1);
                } else if let Some(masked) = self.document_in_string(b"", text.get(start..close).unwrap_or_default()) {
                    edited.replace(start, close, &masked);
                }
                continue;
            }
            let name = json_unescaped(text.get(start..close).unwrap_or_default());
            let value = behind_space(text, colon.saturating_add(1));
            at = value;
            if self.is_secret(&name) {
                at = mask_value(text, value, &mut edited);
            } else if text.get(value) == Some(&b'"')
                && let Some(end) = string_end(text, value.saturating_add(1))
            {
                let content = text.get(value.saturating_add(1)..end).unwrap_or_default();
                if let Some(masked) = self.document_in_string(&name, content) {
                    edited.replace(value.saturating_add(1), end, &masked);
                }
                at = end;
            }
        }
        edited.finish()
    }

    /// A string that is a document itself: its quotes are escaped.
    fn document_in_string(&mut self, name: &[u8], content: &[u8]) -> Option<Vec<u8>> {
        if !content.windows(2).any(|pair| pair == b"\\\"") {
            return None;
        }
        let masked = self.text(&json_unescaped(content), true)?;
        if self.target.is_member(name) {
            self.changed = Some(masked.clone());
        }
        Some(json_escaped(&masked))
    }
}

/// Masks the value of a member, however deep it is. Where it ends.
fn mask_value(text: &[u8], start: usize, edited: &mut Edited<'_>) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                depth = depth.saturating_add(1);
                at = at.saturating_add(1);
            }
            b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth > 0 => {
                depth = depth.saturating_sub(usize::from(matches!(byte, b'}' | b']')));
                at = at.saturating_add(1);
            }
            b'"' | b'\'' => {
                let begin = at.saturating_add(1);
                let close = if *byte == b'"' { string_end(text, begin) } else { find(text, b'\'', begin) };
                let end = close.unwrap_or(text.len());
                at = end.saturating_add(1);
                let is_name = depth > 0 && text.get(behind_space(text, at)) == Some(&b':');
                if !is_name {
                    edited.mask(begin, end);
                }
            }
            _ => {
                let rest = text.get(at..).unwrap_or_default();
                let is_part = |byte: &&u8| !byte.is_ascii_whitespace() && !b",}]\"".contains(byte);
                let end = at.saturating_add(rest.iter().take_while(is_part).count());
                let word = text.get(at..end).unwrap_or_default();
                if !matches!(word, b"" | b"true" | b"false" | b"null") && !word.starts_with(MASK) {
                    edited.replace(at, end, QUOTED_MASK);
                }
                // What is no value at all ends here.
                at = end.max(at.saturating_add(usize::from(depth > 0)));
            }
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// The word in front of the colon in front of a place; empty if there is none.
fn word_before(text: &[u8], at: usize) -> &[u8] {
    let before = text.get(at.saturating_sub(MAX_WORD)..at).unwrap_or_default().trim_ascii_end();
    let before = before.strip_suffix(b":").unwrap_or_default().trim_ascii_end();
    before.rsplit(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').next().unwrap_or_default()
}

/// Where the string ends whose content begins at a place.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at = at.saturating_add(2),
            _ => at = at.saturating_add(1),
        }
    }
}

fn behind_space(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from.saturating_add(rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count())
}
