//! Masks: the length of a text stays, and what programs read of it stays readable to them.

use super::{Detector, Finding, byte, byte_before, is_word};
use crate::escapes::{Escape, escape_at, is_behind_quote};

/// The last characters of a number that stay readable, so that its owner recognizes it.
const SHOWN: usize = 4;
/// How far around a digit the rest of its number is looked for, in bytes, and the same for what stands beside it.
const AROUND: usize = 64;
/// The most bytes of an escape: a reference with seven digits.
const LONGEST_ESCAPE: usize = 11;

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

/// Masks matches in place, which are sorted by their beginning: letters and digits become `*`; separators stay, and escapes stay
/// escapes. Of cards and IBANs the last four characters stay. In a number without quotes in JSON or a script digits become `9`, so
/// that it stays one.
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
    let end = finding.end.min(text.len());
    let first = first_character(text, finding.start, form);
    let mut left = count_hidden(text, first, end).saturating_sub(shown);
    let (mut at, mut number) = (first, Number::default());
    while at < end {
        if let Some(escape) = escape(text, at) {
            if is_hidden(escape) && left > 0 {
                hide_escape(text.get_mut(at..at + escape.length).unwrap_or_default());
            }
            left = left.saturating_sub(usize::from(is_hidden(escape)));
            at += escape.length;
            continue;
        }
        let this = byte(text, at);
        let hides =
            this.is_ascii_alphanumeric() || (shown == 0 && (matches!(this, b'+' | b'_' | b'=' | b'@') || this >= 128));
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
        at += 1;
    }
}

/// The escape at a place. Of backslashes side by side the last one begins it: a string may be within a string.
fn escape(text: &[u8], at: usize) -> Option<Escape> {
    let doubled = byte(text, at) == b'\\' && byte(text, at + 1) == b'\\';
    escape_at(text, at).filter(|_| !doubled)
}

/// Whether an escape is a letter or a digit.
fn is_hidden(escape: Escape) -> bool {
    escape.ascii().is_some_and(|character| character.is_ascii_alphanumeric())
}

/// How many letters and digits a match has, escaped ones among them.
fn count_hidden(text: &[u8], first: usize, end: usize) -> usize {
    let (mut at, mut count) = (first, 0);
    while at < end {
        let escape = escape(text, at);
        count += usize::from(escape.map_or_else(|| byte(text, at).is_ascii_alphanumeric(), is_hidden));
        at += escape.map_or(1, |escape| escape.length);
    }
    count
}

/// Where the first character of a match begins: an escape may begin in front of it. Behind the percent sign of a program stands a
/// number.
fn first_character(text: &[u8], start: usize, form: Form) -> usize {
    let covers = |back: &usize| {
        let escape = start.checked_sub(*back).and_then(|from| escape(text, from));
        escape.is_some_and(|escape| escape.length > *back)
    };
    let bare = || byte(text, start).is_ascii_digit() && Number::around(text, start, form).bare;
    start - (1..LONGEST_ESCAPE).find(covers).filter(|_| !bare()).unwrap_or(0)
}

/// Makes the escape of a letter or a digit that of `*`, in its own length.
fn hide_escape(escape: &mut [u8]) {
    let (digits, star) = match escape {
        [b'&', b'#', b'x' | b'X', digits @ .., b';'] => (digits, b"2a"),
        [b'&', b'#', digits @ .., b';'] => (digits, b"42"),
        [b'%', digits @ ..] | [b'\\', b'u' | b'x', digits @ ..] => (digits, b"2a"),
        _ => return,
    };
    digits.fill(b'0');
    if let Some(last) = digits.last_chunk_mut() {
        *last = *star;
    }
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
