//! The scanner: each byte is looked at once, strings eight bytes at a time.

use super::{COUNT, Item, Kind, MAX_DEPTH, NotJson, hex};

/// The text and where the scanner is in it.
struct Scanner<'t, 'i> {
    text: &'t [u8],
    at: usize,
    items: &'i mut Vec<Item>,
    /// The array or object that is open, where it is one; [`NO_HOLDER`] at the top.
    holder: usize,
    object: bool,
    /// What it holds so far.
    count: u32,
    depth: usize,
}

const NO_HOLDER: usize = u32::MAX as usize;

/// Adds the items of a text, which is UTF-8.
pub(super) fn scan(text: &[u8], items: &mut Vec<Item>) -> Result<(), NotJson> {
    let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut scanner = Scanner { text, at, items, holder: NO_HOLDER, object: false, count: 0, depth: 0 };
    loop {
        // A value is due.
        let first = scanner.due();
        if matches!(first, Some(b'{' | b'[')) {
            scanner.open(first == Some(b'{'))?;
            let closing = if scanner.object { b'}' } else { b']' };
            if scanner.due() == Some(closing) {
                scanner.close();
            } else {
                scanner.count = 1;
                if scanner.object {
                    scanner.name()?;
                }
                continue;
            }
        } else {
            scanner.scalar(first)?;
        }
        // A value has ended: close what ends with it.
        loop {
            if scanner.depth == 0 {
                return match scanner.due() {
                    None => Ok(()),
                    Some(_) => Err(scanner.error("there is more behind the value")),
                };
            }
            match scanner.due() {
                Some(b',') => {
                    scanner.at += 1;
                    scanner.count += 1;
                    if scanner.object {
                        scanner.name()?;
                    }
                    break;
                }
                Some(b'}') if scanner.object => scanner.close(),
                Some(b']') if !scanner.object => scanner.close(),
                _ => {
                    let expected = if scanner.object { "expected `,` or `}`" } else { "expected `,` or `]`" };
                    return Err(scanner.error(expected));
                }
            }
        }
    }
}

impl Scanner<'_, '_> {
    /// The next byte that is no space.
    #[inline]
    fn due(&mut self) -> Option<u8> {
        let mut byte = self.text.get(self.at).copied();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = byte {
            self.at += 1;
            byte = self.text.get(self.at).copied();
        }
        byte
    }

    #[inline]
    fn open(&mut self, object: bool) -> Result<(), NotJson> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("it is nested too deep"));
        }
        let kind = if object { Kind::Object } else { Kind::Array };
        // What it is in goes on where it is closed.
        if let Some(holder) = self.items.get_mut(self.holder) {
            holder.info = holder.info & !COUNT | self.count & COUNT;
        }
        let own = self.items.len();
        self.items.push(Item::new(kind, self.at, self.at, self.holder));
        (self.holder, self.object, self.count) = (own, object, 0);
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
        let next = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let mut outer = u32::MAX;
        if let Some(item) = self.items.get_mut(self.holder) {
            outer = std::mem::replace(&mut item.next, next);
            item.end = u32::try_from(self.at).unwrap_or(u32::MAX);
            item.info = item.info & !COUNT | self.count & COUNT;
        }
        self.holder = usize::try_from(outer).unwrap_or(NO_HOLDER);
        if let Some(item) = self.items.get(self.holder) {
            (self.object, self.count) = (item.kind() == Kind::Object, item.count());
        }
    }

    /// A name and the colon behind it.
    #[inline]
    fn name(&mut self) -> Result<(), NotJson> {
        if self.due() != Some(b'"') {
            return Err(self.error("expected the name of a member"));
        }
        self.string()?;
        if self.due() != Some(b':') {
            return Err(self.error("expected `:`"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn scalar(&mut self, first: Option<u8>) -> Result<(), NotJson> {
        match first {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Kind::True),
            Some(b'f') => self.word(b"false", Kind::False),
            Some(b'n') => self.word(b"null", Kind::Null),
            _ => Err(self.error("expected a value")),
        }
    }

    #[inline]
    fn string(&mut self) -> Result<(), NotJson> {
        let start = self.at + 1;
        let end = plain_until(self.text, start);
        if self.text.get(end) != Some(&b'"') {
            return self.string_with_escapes(start, end);
        }
        let next = self.items.len() + 1;
        self.items.push(Item::new(Kind::String, start, end, next));
        self.at = end + 1;
        Ok(())
    }

    /// A string that has something else than plain bytes at a place.
    #[inline(never)]
    fn string_with_escapes(&mut self, start: usize, mut at: usize) -> Result<(), NotJson> {
        loop {
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let behind = self.text.get(at + 1..).unwrap_or_default();
                    at += match behind.split_first() {
                        Some((b'u', digits)) if hex(digits).is_some() => 6,
                        Some((b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', _)) => 2,
                        _ => {
                            self.at = at;
                            return Err(self.error("this is no escape"));
                        }
                    };
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.error("a control character is in a string"));
                }
                None => return Err(self.error("a string does not end")),
            }
            at = plain_until(self.text, at);
        }
        let next = self.items.len() + 1;
        self.items.push(Item::new(Kind::String, start, at, next).flagged(true));
        self.at = at + 1;
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), NotJson> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let whole = digits(rest);
        // Most are a few digits; a leading zero, a sign, a fraction or an exponent is looked at more closely.
        let short = whole > 0 && rest.first() != Some(&b'0') && !matches!(rest.get(whole), Some(b'.' | b'e' | b'E'));
        let (length, plain) = if short {
            (whole, true)
        } else {
            let length = number_length(rest).ok_or_else(|| self.error("this is no number"))?;
            (length, !rest.iter().take(length).any(|byte| matches!(byte, b'.' | b'e' | b'E')))
        };
        let next = self.items.len() + 1;
        self.items.push(Item::new(Kind::Number, self.at, self.at + length, next).flagged(!plain));
        self.at += length;
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), NotJson> {
        if !self.text.get(self.at..).unwrap_or_default().starts_with(word) {
            return Err(self.error("expected a value"));
        }
        let next = self.items.len() + 1;
        self.items.push(Item::new(kind, self.at, self.at + word.len(), next));
        self.at += word.len();
        Ok(())
    }

    #[cold]
    fn error(&self, what: &'static str) -> NotJson {
        NotJson { at: self.at, what }
    }
}

/// The place of the first byte from a place on that is a quote, a backslash or a control character; the length if there is none.
#[inline]
fn plain_until(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let (words, last) = rest.as_chunks::<8>();
    for (place, bytes) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*bytes));
        if found != 0 {
            return from + 8 * place + usize::try_from(found.trailing_zeros() / 8).unwrap_or(0);
        }
    }
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    from + 8 * words.len() + last.iter().take_while(|byte| plain(byte)).count()
}

/// The highest bit of each byte that is a quote, a backslash or a control character. Bytes behind the first of them may be marked
/// wrongly, as subtraction borrows from them.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * 0x22));
    let backslash = zero(word ^ (ONES * 0x5c));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES * 0x80)
}

/// The digits that a text begins with.
#[inline]
fn digits(text: &[u8]) -> usize {
    match text.first_chunk().map(|bytes| no_digit(u64::from_le_bytes(*bytes))) {
        Some(found) if found != 0 => usize::try_from(found.trailing_zeros() / 8).unwrap_or(0),
        _ => text.iter().take_while(|byte| byte.is_ascii_digit()).count(),
    }
}

/// The highest bit of each byte that is no digit. Bytes behind the first of them may be marked wrongly, as addition carries into them.
#[inline]
fn no_digit(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let value = word ^ (ONES * 0x30);
    (value.wrapping_add(ONES * 0x76) | value) & (ONES * 0x80)
}

/// The bytes of the number that a text begins with.
pub(crate) fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| digits(text.get(from..).unwrap_or_default());
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text.get(at) == Some(&b'0')) {
        return None;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_as_one_by_one() {
        let mut seed = 1_u64;
        let kinds = b"0123456789/:-.eE, \x00\x7f\x80\xb0\xff";
        for _ in 0..100_000 {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(seed >> 40).unwrap()
            };
            let (digits_first, length) = (next() % 12, next() % 20);
            let any = |place: usize, random: usize| {
                kinds[if place < digits_first { random % 10 } else { random % kinds.len() }]
            };
            let text: Vec<u8> = (0..length).map(|place| any(place, next())).collect();
            let expected = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            assert_eq!(digits(&text), expected, "{}", text.escape_ascii());
        }
    }
}
