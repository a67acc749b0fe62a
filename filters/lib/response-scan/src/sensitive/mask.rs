//! Masks: the length of a text stays, and JSON stays JSON.

use super::{Detector, Finding};

/// The last characters of a number that stay readable, so that its owner recognizes it.
const SHOWN: usize = 4;

/// Masks a match in place. Letters and digits become `*`; separators stay. Of cards and IBANs the last four characters stay. In a
/// bare number of JSON, which may have only digits, they become `9`.
pub fn mask(text: &mut [u8], finding: &Finding, json: bool) {
    let bare = json && is_bare_number(text, finding);
    let shown = match finding.detector {
        Detector::Card | Detector::Iban => SHOWN,
        _ => 0,
    };
    let Some(value) = text.get_mut(finding.start..finding.end) else { return };
    let count = value.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    let mut left = count.saturating_sub(shown);
    // Of an escape of JSON: a backslash was read; digits of `\uXXXX` that follow.
    let (mut escaped, mut code) = (false, 0u8);
    for byte in value {
        let hides =
            byte.is_ascii_alphanumeric() || (shown == 0 && (matches!(byte, b'+' | b'_' | b'=' | b'@') || *byte >= 128));
        let in_escape = escaped;
        escaped = *byte == b'\\' && !in_escape;
        if in_escape || (code > 0 && byte.is_ascii_hexdigit()) {
            code = if in_escape && *byte == b'u' { 4 } else { code.saturating_sub(1) };
            left = left.saturating_sub(usize::from(byte.is_ascii_alphanumeric()));
            continue;
        }
        code = 0;
        if hides && left > 0 {
            left -= usize::from(byte.is_ascii_alphanumeric());
            *byte = if bare && byte.is_ascii_digit() { b'9' } else { b'*' };
        }
    }
}

/// Whether a match is a number of JSON without quotes.
fn is_bare_number(text: &[u8], finding: &Finding) -> bool {
    let digits = text.get(finding.start..finding.end).unwrap_or_default().iter().all(u8::is_ascii_digit);
    let before = text.get(..finding.start).unwrap_or_default().iter().rev().take(64);
    let before = before.copied().find(|byte| !byte.is_ascii_whitespace());
    let after = text.get(finding.end..).unwrap_or_default().iter().take(64);
    let after = after.copied().find(|byte| !byte.is_ascii_whitespace());
    digits
        && matches!(before, None | Some(b':' | b'[' | b',' | b'-'))
        && matches!(after, None | Some(b',' | b']' | b'}'))
}
