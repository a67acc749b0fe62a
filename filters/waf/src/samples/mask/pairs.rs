//! Names and values joined by `=`: queries, forms, parameters of paths, and addresses within other text.

use std::borrow::Cow;

use super::{Edited, MASK, Mask, Reading};
use crate::samples::names::{percent_decoded, percent_encoded};

impl Mask<'_> {
    /// A query or a form. With `lines` a pair may also end with its line.
    pub(super) fn form(&mut self, text: &[u8], lines: bool) -> Option<Vec<u8>> {
        let ends = |byte: &u8| *byte == b'&' || (lines && matches!(byte, b'\r' | b'\n'));
        let (mut edited, mut start) = (Edited::new(text), 0_usize);
        for pair in text.split(ends) {
            let end = start.saturating_add(pair.len());
            if let Some(masked) = self.pair(pair) {
                edited.replace(start, end, &masked);
            }
            start = end.saturating_add(1);
        }
        edited.finish()
    }

    /// One pair. Some applications also separate pairs by `;`, and an address in a value brings pairs of its own.
    fn pair(&mut self, pair: &[u8]) -> Option<Vec<u8>> {
        let (mut start, mut first) = (Some(0), None::<(usize, bool)>);
        for (at, byte) in pair.iter().enumerate() {
            match byte {
                b'=' => {
                    let Some(name) = start.and_then(|start| pair.get(start..at)).map(percent_decoded) else { continue };
                    if self.is_secret(&name) {
                        let behind = at.saturating_add(1);
                        if behind == pair.len() {
                            return None;
                        }
                        let masked = [pair.get(..behind).unwrap_or_default(), MASK].concat();
                        if let Some((equals, true)) = first {
                            let value = masked.get(equals.saturating_add(1)..).unwrap_or_default();
                            self.changed = Some(percent_decoded(value).into_owned());
                        }
                        return Some(masked);
                    }
                    // What matched may hold anything; only pairs of other readings are looked for in it.
                    let matched = self.target.is_argument(&name);
                    start = (!matched).then_some(at.saturating_add(1));
                    first.get_or_insert((at, matched));
                }
                b';' => start = Some(at.saturating_add(1)),
                b'?' | b'#' if first.is_none_or(|(_, matched)| !matched) => start = Some(at.saturating_add(1)),
                _ => {}
            }
        }
        let (at, matched) = first?;
        let (name, value) = pair.split_at_checked(at.saturating_add(1))?;
        let plain = percent_decoded(value);
        let masked = self.text(&plain, matched)?;
        let value = if matches!(plain, Cow::Borrowed(_)) { masked.clone() } else { percent_encoded(&masked) };
        if matched {
            self.changed = Some(masked);
        }
        Some([name, &value].concat())
    }

    /// Parameters of a path: `/cart;session=1`.
    pub(super) fn path_parameters(&self, path: &[u8]) -> Vec<u8> {
        let (mut edited, mut name, mut at) = (Edited::new(path), None, 0_usize);
        while let Some(byte) = path.get(at) {
            at = at.saturating_add(1);
            match byte {
                b';' => name = Some(at),
                b'/' => name = None,
                b'=' => {
                    let text = name.take().and_then(|name| path.get(name..at.saturating_sub(1)));
                    if text.is_some_and(|text| self.is_secret(&percent_decoded(text))) {
                        let rest = path.get(at..).unwrap_or_default();
                        let length = rest.iter().take_while(|byte| !b";/".contains(byte)).count();
                        let end = at.saturating_add(length);
                        edited.mask(at, end);
                        at = end;
                    }
                }
                _ => {}
            }
        }
        edited.finish().unwrap_or_else(|| path.to_vec())
    }

    /// Names and values within other text: behind what separates words, or behind what separates the parameters of an address.
    pub(super) fn pairs(&self, text: &[u8], reading: Reading) -> Option<Vec<u8>> {
        let (mut edited, mut at) = (Edited::new(text), 0_usize);
        let words = reading == Reading::Words;
        // Where the name starts, and whether a line starts with it: then the value ends with the line.
        let (mut name, mut line) = (words.then_some(0_usize), true);
        while let Some(byte) = text.get(at) {
            at = at.saturating_add(1);
            match byte {
                b'=' => {
                    let known = name.and_then(|name| text.get(name..at.saturating_sub(1)));
                    if known.is_some_and(|known| self.is_secret(&percent_decoded(known))) {
                        let (start, end) = value(text, at, line);
                        edited.mask(start, end);
                        at = end;
                    }
                    (name, line) = (name.map(|_| at), false);
                }
                b'\r' | b'\n' => (name, line) = (Some(at), true),
                b'?' | b'&' | b'#' => (name, line) = (Some(at), false),
                b';' | b',' | b'"' | b'\'' | b'<' | b'>' | b'(' | b'{' => (name, line) = (words.then_some(at), false),
                b' ' | b'\t' if line => {}
                byte if byte.is_ascii_whitespace() => (name, line) = (words.then_some(at), false),
                _ => {}
            }
        }
        edited.finish()
    }
}

/// Where the value that begins at a place starts and ends, its quotes aside. One without quotes ends at white space, or with its
/// `line`.
fn value(text: &[u8], at: usize, line: bool) -> (usize, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let (opening, quote) = match rest {
        [quote @ (b'"' | b'\''), ..] => (1, Some(*quote)),
        [b'\\', quote @ (b'"' | b'\''), ..] => (2, Some(*quote)),
        _ => (0, None),
    };
    let start = at.saturating_add(opening);
    let rest = text.get(start..).unwrap_or_default();
    let mut escaped = false;
    let length = rest.iter().take_while(|byte| {
        let byte = **byte;
        let was_escaped = escaped;
        escaped = byte == b'\\' && !was_escaped;
        match quote {
            // An escaped quote is closed by one: neither is within the value.
            Some(quote) if opening == 2 => byte != quote && byte != b'\\',
            Some(quote) => byte != quote || was_escaped,
            None if line => !b"&\r\n".contains(&byte),
            None => !byte.is_ascii_whitespace() && !b"&\"'<>\\".contains(&byte),
        }
    });
    let length = length.count();
    (start, start.saturating_add(length))
}
