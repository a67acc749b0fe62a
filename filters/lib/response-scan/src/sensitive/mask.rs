//! Masks: the length of a text stays, and what programs read of it stays readable to them.

use super::{Detector, Finding, byte, byte_before, is_word};
use crate::escapes::is_behind_quote;

/// The last characters of a number that stay readable, so that its owner recognizes it.
const SHOWN: usize = 4;
/// How far around a digit the rest of its number is looked for, in bytes, and the same for what stands beside it.
const AROUND: usize = 64;
/// The most backslashes side by side that are counted.
const BACKSLASHES: usize = 256;
/// The letters behind a backslash that make an escape of JSON.
const ESCAPES: &[u8] = b"\"\\/bfnrtu";

/// The syntax of a text, as far as numbers are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON: a number without quotes may have only digits.
    Json,
    /// A program in JavaScript: the same.
    Script,
    /// Another text, which may have JSON or scripts in it.
    Other,
}

/// Masks matches in place, which are sorted by their beginning: letters and digits become `*`; separators stay. Of cards and IBANs
/// the last four characters stay. In a number without quotes in JSON or a script digits become `9`, so that it stays one.
pub fn mask_all<'f>(text: &mut [u8], findings: impl IntoIterator<Item = &'f Finding>, form: Form) {
    let mut scripts = Scripts::default();
    for finding in findings {
        let inside = form == Form::Other && scripts.holds(text, finding.start);
        mask_as(text, finding, if inside { Form::Script } else { form });
    }
}

/// Masks one match of a text that is JSON, or is not.
pub fn mask(text: &mut [u8], finding: &Finding, json: bool) {
    mask_all(text, [finding], if json { Form::Json } else { Form::Other });
}

fn mask_as(text: &mut [u8], finding: &Finding, form: Form) {
    let shown = match finding.detector {
        Detector::Card | Detector::Iban => SHOWN,
        _ => 0,
    };
    let value = text.get(finding.start..finding.end).unwrap_or_default();
    let mut left = value.iter().filter(|byte| byte.is_ascii_alphanumeric()).count().saturating_sub(shown);
    let (mut escaped, mut code) = escape_state(text, finding.start);
    let mut number = Number::default();
    for at in finding.start..finding.end.min(text.len()) {
        let this = byte(text, at);
        let hides =
            this.is_ascii_alphanumeric() || (shown == 0 && (matches!(this, b'+' | b'_' | b'=' | b'@') || this >= 128));
        let in_escape = escaped && ESCAPES.contains(&this);
        escaped = this == b'\\' && !in_escape;
        if in_escape || (code > 0 && this.is_ascii_hexdigit()) {
            code = if in_escape && this == b'u' { 4 } else { code.saturating_sub(1) };
            left = left.saturating_sub(usize::from(this.is_ascii_alphanumeric()));
            continue;
        }
        code = 0;
        if this.is_ascii_digit() && at >= number.end {
            number = Number::around(text, at, form);
        }
        let bare = number.bare && at < number.end;
        if hides
            && left > 0
            && (!bare || this.is_ascii_digit())
            && let Some(place) = text.get_mut(at)
        {
            *place = if bare { b'9' } else { b'*' };
        }
        left = left.saturating_sub(usize::from(this.is_ascii_alphanumeric()));
    }
}

/// Whether a backslash that is not escaped itself is in front of a place, and how many digits of `\uXXXX` follow from there on.
fn escape_state(text: &[u8], start: usize) -> (bool, u8) {
    let is_escaped = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.iter().rev().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count() % 2 == 1
    };
    let digits = (0..4u8).find(|digits| {
        let from = start.saturating_sub(usize::from(*digits));
        let hex = text.get(from..start).unwrap_or_default().iter().all(u8::is_ascii_hexdigit);
        hex && byte_before(text, from) == b'u' && is_escaped(from - 1)
    });
    (is_escaped(start), digits.map_or(0, |digits| 4 - digits))
}

/// A number of a text, by its end.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    end: usize,
    /// It has no quotes, and the syntax of the text allows no other characters in it.
    bare: bool,
}

impl Number {
    fn around(text: &[u8], at: usize, form: Form) -> Self {
        let is_number = |byte: &&u8| byte.is_ascii_digit() || b".+-eE".contains(byte);
        let before = text.get(..at).unwrap_or_default().iter().rev().take(AROUND).take_while(is_number).count();
        let behind = text.get(at..).unwrap_or_default().iter().take(AROUND).take_while(is_number).count();
        let (start, end) = (at - before, at + behind);
        // Of a longer number the ends are not seen; nine is right in a string as well.
        if before == AROUND || behind == AROUND {
            return Self { end, bare: form != Form::Other };
        }
        let begins = byte(text, start).is_ascii_digit() || matches!(byte(text, start), b'-' | b'.' | b'+');
        Self { end, bare: begins && is_bare(text, start, end, form) }
    }
}

/// Whether what stands beside a number makes it one of a program.
fn is_bare(text: &[u8], start: usize, end: usize, form: Form) -> bool {
    let blanks = |byte: &&u8| byte.is_ascii_whitespace();
    let front = text.get(..start).unwrap_or_default();
    let passed = front.iter().rev().take(AROUND).take_while(blanks).count();
    let front = start - passed;
    let rest = text.get(end..).unwrap_or_default();
    let skipped = rest.iter().take(AROUND).take_while(blanks).count();
    let line = rest.get(..skipped).unwrap_or_default().contains(&b'\n');
    // Beyond many blanks nothing is looked for.
    let before = front.checked_sub(1).map(|at| byte(text, at)).filter(|_| passed < AROUND);
    let after = rest.get(skipped).copied().filter(|_| skipped < AROUND);
    let closes = matches!(after, None | Some(b',' | b']' | b'}'));
    match form {
        Form::Json => closes && matches!(before, None | Some(b':' | b'[' | b',')),
        Form::Script => {
            let word = text.get(front.saturating_sub(6)..front).unwrap_or_default();
            let operator = before.is_none_or(|before| b":[,(=?{;}&|+-*/%<>!~^".contains(&before));
            let opens = operator || word.ends_with(b"return") || word.ends_with(b"case");
            opens && (closes || line || after.is_none_or(|after| b";):?&|+-*/%<>=!^".contains(&after)))
        }
        Form::Other => match before {
            Some(b':') => closes && is_key(text, front - 1),
            Some(b'[') => matches!(after, Some(b',' | b']')),
            _ => false,
        },
    }
}

/// Whether a key of an object is in front of a colon: in quotes, or a name right behind a brace or a comma.
fn is_key(text: &[u8], colon: usize) -> bool {
    let front = text.get(..colon).unwrap_or_default();
    let end = colon - front.iter().rev().take(AROUND).take_while(|byte| byte.is_ascii_whitespace()).count();
    let name = front.iter().rev().take(AROUND).take_while(|byte| is_word(**byte) || **byte == b'$').count();
    is_behind_quote(text, end) || (name > 0 && matches!(byte_before(text, colon - name), b'{' | b','))
}

/// The scripts of a page, read as far as was asked.
#[derive(Debug, Default)]
struct Scripts {
    at: usize,
    inside: bool,
}

impl Scripts {
    /// Whether a place is within one. Places are asked for in their order.
    fn holds(&mut self, text: &[u8], place: usize) -> bool {
        let starts = |at: usize, tag: &[u8]| {
            text.get(at..at.saturating_add(tag.len())).is_some_and(|start| start.eq_ignore_ascii_case(tag))
                && !is_word(byte(text, at + tag.len()))
        };
        while let Some(next) = text.get(self.at..place).and_then(|rest| memchr::memchr(b'<', rest)) {
            let tag = self.at + next;
            self.inside = if self.inside { !starts(tag, b"</script") } else { starts(tag, b"<script") };
            self.at = tag + 1;
        }
        self.at = self.at.max(place);
        self.inside
    }
}
