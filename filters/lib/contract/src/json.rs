//! JSON (RFC 8259) as a flat list of items over its text: one pass, nothing copied, a bounded depth. Names that come twice in an object
//! are both kept, so both are checked, whichever of them the backend reads.

use std::borrow::Cow;

use crate::number::Number;

/// The deepest nesting.
pub(crate) const MAX_DEPTH: usize = 96;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// A value, or the name of a member, which is in front of its value.
#[derive(Clone, Copy, Debug)]
struct Item {
    kind: Kind,
    /// A string with escapes.
    escaped: bool,
    /// The text: of a string without its quotes.
    start: u32,
    end: u32,
    /// The item behind it and all that it holds.
    next: u32,
    /// The elements or members that it holds.
    count: u32,
}

/// Why a text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson {
    /// The byte where it is not.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) what: &'static str,
}

/// A text as items.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    text: Cow<'a, [u8]>,
    items: Vec<Item>,
}

impl<'a> Document<'a> {
    /// Reads a text.
    pub(crate) fn read(text: impl Into<Cow<'a, [u8]>>) -> Result<Self, NotJson> {
        let text = text.into();
        let error = |at, what| NotJson { at, what };
        if u32::try_from(text.len()).is_err() {
            return Err(error(0, "the text has 4 GiB or more"));
        }
        if let Err(utf8) = std::str::from_utf8(&text) {
            return Err(error(utf8.valid_up_to(), "the text is not UTF-8"));
        }
        let items =
            Scanner { text: &text, at: 0, items: Vec::with_capacity(text.len() / 12), open: Vec::new() }.scan()?;
        Ok(Self { text, items })
    }

    /// The value as a whole.
    pub(crate) fn root(&self) -> Value<'_> {
        Value { items: &self.items, text: &self.text, at: 0 }
    }

    /// Where an item is, as a JSON pointer (RFC 6901) of at most 128 bytes.
    pub(crate) fn pointer(&self, item: usize) -> String {
        let mut pointer = String::new();
        let mut value = self.root();
        while value.at != item && pointer.len() < 128 {
            let inside = |child: &Value<'_>| child.at <= item && item < child.next();
            if value.kind() == Kind::Object {
                // The item may be a name itself.
                let found = value.members().find(|(name, child)| name.at == item || inside(child));
                let Some((name, child)) = found else { break };
                let name = String::from_utf8_lossy(&name.string()).replace('~', "~0").replace('/', "~1");
                pointer.push('/');
                pointer.extend(name.chars().take(64));
                if item < child.at {
                    break;
                }
                value = child;
            } else {
                let Some((place, child)) = value.elements().enumerate().find(|(_, child)| inside(child)) else { break };
                pointer.push('/');
                pointer.push_str(&place.to_string());
                value = child;
            }
        }
        pointer
    }
}

/// A value in a document.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    items: &'a [Item],
    text: &'a [u8],
    /// The number of its item.
    pub(crate) at: usize,
}

impl<'a> Value<'a> {
    fn item(self) -> Item {
        let none = Item { kind: Kind::Null, escaped: false, start: 0, end: 0, next: u32::MAX, count: 0 };
        self.items.get(self.at).copied().unwrap_or(none)
    }

    fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    fn next(self) -> usize {
        usize::try_from(self.item().next).unwrap_or(usize::MAX)
    }

    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        self.item().kind
    }

    /// The elements or members that it holds.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.item().count).unwrap_or(usize::MAX)
    }

    /// Its text: of a string without its quotes, and with its escapes.
    pub(crate) fn raw(self) -> &'a [u8] {
        let item = self.item();
        let range = usize::try_from(item.start).unwrap_or(0)..usize::try_from(item.end).unwrap_or(0);
        self.text.get(range).unwrap_or_default()
    }

    /// A string without its escapes.
    pub(crate) fn string(self) -> Cow<'a, [u8]> {
        if self.item().escaped { Cow::Owned(unescape(self.raw())) } else { Cow::Borrowed(self.raw()) }
    }

    /// A number.
    pub(crate) fn number(self) -> Option<Number> {
        if self.kind() == Kind::Number { Number::read(self.raw()) } else { None }
    }

    /// The elements of an array.
    pub(crate) fn elements(self) -> impl Iterator<Item = Value<'a>> {
        let mut at = self.at + 1;
        let count = if self.kind() == Kind::Array { self.count() } else { 0 };
        (0..count).map(move |_| {
            let value = self.at(at);
            at = value.next();
            value
        })
    }

    /// The members of an object: names and values.
    pub(crate) fn members(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let mut at = self.at + 1;
        let count = if self.kind() == Kind::Object { self.count() } else { 0 };
        (0..count).map(move |_| {
            let name = self.at(at);
            let value = self.at(at + 1);
            at = value.next();
            (name, value)
        })
    }

    /// The first member of a name.
    pub(crate) fn member(self, name: &[u8]) -> Option<Value<'a>> {
        self.members().find(|(own, _)| own.string().as_ref() == name).map(|(_, value)| value)
    }

    /// Whether a member has a name.
    pub(crate) fn has(self, name: &[u8]) -> bool {
        self.member(name).is_some()
    }

    /// The same value, whatever the order of members and the spelling of numbers and strings. `budget` counts down per item.
    pub(crate) fn equals(self, other: Value<'_>, budget: &mut u64) -> bool {
        if *budget == 0 || self.kind() != other.kind() {
            return false;
        }
        *budget -= 1;
        match self.kind() {
            Kind::Null | Kind::False | Kind::True => true,
            Kind::Number => match (self.number(), other.number()) {
                (Some(one), Some(two)) => one.equals(two),
                _ => self.raw() == other.raw(),
            },
            Kind::String => self.string() == other.string(),
            Kind::Array => {
                self.count() == other.count()
                    && self.elements().zip(other.elements()).all(|(one, two)| one.equals(two, budget))
            }
            Kind::Object => {
                self.count() == other.count()
                    && self.members().all(|(name, value)| {
                        *budget = budget.saturating_sub(u64::try_from(other.count()).unwrap_or(u64::MAX));
                        other.member(&name.string()).is_some_and(|found| value.equals(found, budget))
                    })
            }
        }
    }
}

/// Takes the escapes out of a string that the scanner has checked.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((kind, behind)) = rest.split_first() else { break };
        rest = behind;
        match kind {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let mut unit = hex(rest).unwrap_or(0xfffd);
                rest = rest.get(4..).unwrap_or_default();
                if (0xd800..0xdc00).contains(&unit) {
                    let low = rest.strip_prefix(b"\\u").and_then(hex).filter(|low| (0xdc00..0xe000).contains(low));
                    if let Some(low) = low {
                        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        rest = rest.get(6..).unwrap_or_default();
                    }
                }
                let mut utf8 = [0; 4];
                out.extend(char::from_u32(unit).unwrap_or('\u{fffd}').encode_utf8(&mut utf8).as_bytes());
            }
            other => out.push(*other),
        }
    }
    out
}

fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    items: Vec<Item>,
    /// The arrays and objects that are open.
    open: Vec<usize>,
}

impl Scanner<'_> {
    fn scan(mut self) -> Result<Vec<Item>, NotJson> {
        if self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        loop {
            // A value is due.
            self.space();
            if self.value()? && self.begins()? {
                continue;
            }
            // A value has ended: close what ends with it.
            loop {
                let Some(holder) = self.open.last().copied() else {
                    self.space();
                    return if self.at == self.text.len() {
                        Ok(self.items)
                    } else {
                        Err(self.error("there is more behind the value"))
                    };
                };
                let object = self.items.get(holder).is_some_and(|item| item.kind == Kind::Object);
                self.space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.count(holder);
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    Some(b'}') if object => self.close(holder),
                    Some(b']') if !object => self.close(holder),
                    _ => return Err(self.error(if object { "expected `,` or `}`" } else { "expected `,` or `]`" })),
                }
            }
        }
    }

    /// Begins to read what an array or object holds that was just opened; false where it is empty, and closed.
    fn begins(&mut self) -> Result<bool, NotJson> {
        let Some(holder) = self.open.last().copied() else { return Ok(false) };
        let object = self.items.get(holder).is_some_and(|item| item.kind == Kind::Object);
        self.space();
        if self.peek() == Some(if object { b'}' } else { b']' }) {
            self.close(holder);
            return Ok(false);
        }
        self.count(holder);
        if object {
            self.name()?;
        }
        Ok(true)
    }

    /// Reads a value; true where it is an array or an object that is open now.
    fn value(&mut self) -> Result<bool, NotJson> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'{' | b'[') => {
                if self.open.len() >= MAX_DEPTH {
                    return Err(self.error("it is nested too deep"));
                }
                let kind = if self.peek() == Some(b'{') { Kind::Object } else { Kind::Array };
                self.open.push(self.items.len());
                self.push(kind, false, start, start);
                self.at += 1;
                return Ok(true);
            }
            Some(b't') => self.word(b"true", Kind::True)?,
            Some(b'f') => self.word(b"false", Kind::False)?,
            Some(b'n') => self.word(b"null", Kind::Null)?,
            Some(b'-' | b'0'..=b'9') => {
                let rest = self.text.get(start..).unwrap_or_default();
                let length = number_length(rest).ok_or_else(|| self.error("this is no number"))?;
                self.at += length;
                self.push(Kind::Number, false, start, self.at);
            }
            _ => return Err(self.error("expected a value")),
        }
        Ok(false)
    }

    fn name(&mut self) -> Result<(), NotJson> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(self.error("expected the name of a member"));
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.error("expected `:`"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), NotJson> {
        let start = self.at + 1;
        let mut escaped = false;
        self.at = start;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(plain) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') else {
                return Err(self.error("a string does not end"));
            };
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    let behind = self.text.get(self.at + 1..).unwrap_or_default();
                    self.at += match behind.split_first() {
                        Some((b'u', digits)) if hex(digits).is_some() => 6,
                        Some((byte, _)) if b"\"\\/bfnrt".contains(byte) => 2,
                        _ => return Err(self.error("this is no escape")),
                    };
                }
                _ => return Err(self.error("a control character is in a string")),
            }
        }
        self.push(Kind::String, escaped, start, self.at);
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), NotJson> {
        let start = self.at;
        if !self.text.get(start..).unwrap_or_default().starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        self.push(kind, false, start, self.at);
        Ok(())
    }

    fn push(&mut self, kind: Kind, escaped: bool, start: usize, end: usize) {
        let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let next = short(self.items.len() + 1);
        self.items.push(Item { kind, escaped, start: short(start), end: short(end), next, count: 0 });
    }

    fn count(&mut self, holder: usize) {
        if let Some(item) = self.items.get_mut(holder) {
            item.count += 1;
        }
    }

    fn close(&mut self, holder: usize) {
        self.at += 1;
        self.open.pop();
        let next = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        if let Some(item) = self.items.get_mut(holder) {
            item.next = next;
            item.end = u32::try_from(self.at).unwrap_or(u32::MAX);
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn error(&self, what: &'static str) -> NotJson {
        NotJson { at: self.at, what }
    }
}

/// The bytes of the number that a text begins with.
pub(crate) fn number_length(text: &[u8]) -> Option<usize> {
    let digits =
        |from: usize| text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
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

/// Appends a text as a JSON string.
pub(crate) fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' | '\\' => {
                out.push(b'\\');
                out.push(if character == '"' { b'"' } else { b'\\' });
            }
            '\0'..='\u{1f}' => out.extend(format!("\\u{:04x}", u32::from(character)).bytes()),
            other => out.extend(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
