//! Elements of XML whose name is that of a secret: all text and all attributes in them.

use super::{Edited, Mask, find};

const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";

impl Mask<'_> {
    /// Masks such elements. One that does not end goes on to the end of the text.
    pub(super) fn xml(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (mut edited, mut at) = (Edited::new(text), 0_usize);
        // The name of the secret element, and how many of that name are open.
        let mut secret: Option<(&[u8], usize)> = None;
        while let Some(open) = find(text, b'<', at) {
            if secret.is_some() {
                mask_text(text, at, open, &mut edited);
            }
            let rest = text.get(open..).unwrap_or_default();
            if rest.starts_with(CDATA) {
                let start = open.saturating_add(CDATA.len());
                let end = cdata_end(text, start);
                if secret.is_some() {
                    edited.mask(start, end);
                }
                at = end.saturating_add(CDATA_END.len());
                continue;
            }
            let end = find(text, b'>', open).unwrap_or(text.len());
            let inner = text.get(open.saturating_add(1)..end).unwrap_or_default();
            let closes = inner.strip_prefix(b"/");
            let name = closes.unwrap_or(inner);
            let length = name.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'/').count();
            let name = name.get(..length).unwrap_or_default();
            let opens = closes.is_none() && !inner.ends_with(b"/");
            let is_secret = secret.is_some() || (closes.is_none() && self.is_secret(name));
            if is_secret && closes.is_none() {
                mask_attributes(text, open, end, &mut edited);
            }
            secret = match secret {
                None => (is_secret && opens).then_some((name, 1)),
                Some((known, count)) if known == name => {
                    let count = if opens { count.saturating_add(1) } else { count };
                    let count = count.saturating_sub(usize::from(closes.is_some()));
                    (count > 0).then_some((known, count))
                }
                other => other,
            };
            at = end.saturating_add(1);
        }
        if secret.is_some() {
            mask_text(text, at, text.len(), &mut edited);
        }
        edited.finish()
    }
}

/// Masks text between two tags, unless it is white space.
fn mask_text(text: &[u8], start: usize, end: usize, edited: &mut Edited<'_>) {
    if text.get(start..end).is_some_and(|node| !node.trim_ascii().is_empty()) {
        edited.mask(start, end);
    }
}

fn mask_attributes(text: &[u8], start: usize, end: usize, edited: &mut Edited<'_>) {
    let mut at = start;
    while let Some(byte) = text.get(at).filter(|_| at < end) {
        at = at.saturating_add(1);
        if let quote @ (b'"' | b'\'') = byte {
            let close = find(text, *quote, at).unwrap_or(end).min(end);
            edited.mask(at, close);
            at = close.saturating_add(1);
        }
    }
}

fn cdata_end(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.windows(CDATA_END.len()).position(|end| end == CDATA_END).map_or(text.len(), |at| from.saturating_add(at))
}
