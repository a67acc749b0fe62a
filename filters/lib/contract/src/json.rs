//! JSON (RFC 8259) as a flat list of items over its text: one pass, nothing copied, a bounded depth. Names that come twice in an object
//! are both kept and both checked. A request that has such names is refused: backends differ in which of the two they read.

mod scan;

use std::borrow::Cow;

use crate::number::Number;

pub(crate) use scan::number_length;

/// The deepest nesting.
pub(crate) const MAX_DEPTH: usize = 96;
/// The longest text, in bytes: 256 MiB. Counts of items fit into 28 bits then.
const MAX_TEXT: usize = 1 << 28;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Null = 0,
    False = 1,
    True = 2,
    Number = 3,
    String = 4,
    Array = 5,
    Object = 6,
}

/// A value, or the name of a member, which is in front of its value. 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The text: of a string without its quotes.
    start: u32,
    end: u32,
    /// The item behind it and all that it holds; of an array or object that is still open, the one that it is in.
    next: u32,
    /// The kind in the highest three bits, a flag, and the elements or members that it holds.
    info: u32,
}

/// A string with escapes, or a number with a fraction or an exponent.
const FLAG: u32 = 1 << 28;
const COUNT: u32 = FLAG - 1;

impl Item {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "texts have less than 256 MiB, and not more items than bytes")]
    fn new(kind: Kind, start: usize, end: usize, next: usize) -> Self {
        Self { start: start as u32, end: end as u32, next: next as u32, info: (kind as u32) << 29 }
    }

    fn flagged(mut self, flag: bool) -> Self {
        self.info |= if flag { FLAG } else { 0 };
        self
    }

    fn kind(self) -> Kind {
        match self.info >> 29 {
            1 => Kind::False,
            2 => Kind::True,
            3 => Kind::Number,
            4 => Kind::String,
            5 => Kind::Array,
            6 => Kind::Object,
            _ => Kind::Null,
        }
    }

    fn is_flagged(self) -> bool {
        self.info & FLAG != 0
    }

    fn count(self) -> u32 {
        self.info & COUNT
    }
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
        Self::read_with(text.into(), Vec::new())
    }

    /// Reads a text with the memory of another document: what is in `items` is dropped.
    pub(crate) fn read_with(text: Cow<'a, [u8]>, mut items: Vec<Item>) -> Result<Self, NotJson> {
        let error = |at, what| NotJson { at, what };
        if text.len() >= MAX_TEXT {
            return Err(error(0, "the text has 256 MiB or more"));
        }
        if let Err(utf8) = std::str::from_utf8(&text) {
            return Err(error(utf8.valid_up_to(), "the text is not UTF-8"));
        }
        items.clear();
        items.reserve(text.len() / 16);
        scan::scan(&text, &mut items)?;
        Ok(Self { text, items })
    }

    /// Its memory, for another document.
    pub(crate) fn into_items(self) -> Vec<Item> {
        self.items
    }

    /// The value as a whole.
    pub(crate) fn root(&self) -> Value<'_> {
        Value { items: &self.items, text: &self.text, at: 0 }
    }

    /// The item of a name that comes twice in its object.
    pub(crate) fn twice(&self) -> Option<usize> {
        let mut names = Vec::new();
        let objects = self.items.iter().enumerate().filter(|(_, item)| item.kind() == Kind::Object && item.count() > 1);
        objects.map(|(at, _)| self.root().at(at)).find_map(|object| object.twice(&mut names))
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
    #[inline]
    fn item(self) -> Item {
        const NONE: Item = Item { start: 0, end: 0, next: u32::MAX, info: 0 };
        self.items.get(self.at).copied().unwrap_or(NONE)
    }

    fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    fn next(self) -> usize {
        usize::try_from(self.item().next).unwrap_or(usize::MAX)
    }

    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        self.item().kind()
    }

    /// The elements or members that it holds.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.item().count()).unwrap_or(usize::MAX)
    }

    /// Its text: of a string without its quotes, and with its escapes.
    pub(crate) fn raw(self) -> &'a [u8] {
        let item = self.item();
        let range = usize::try_from(item.start).unwrap_or(0)..usize::try_from(item.end).unwrap_or(0);
        self.text.get(range).unwrap_or_default()
    }

    /// A string without its escapes.
    pub(crate) fn string(self) -> Cow<'a, [u8]> {
        if self.item().is_flagged() { Cow::Owned(unescape(self.raw())) } else { Cow::Borrowed(self.raw()) }
    }

    /// Whether it is a string without escapes.
    pub(crate) fn is_literal(self) -> bool {
        self.kind() == Kind::String && !self.item().is_flagged()
    }

    /// Whether it is a number that is written without a fraction and without an exponent.
    pub(crate) fn is_plain(self) -> bool {
        self.kind() == Kind::Number && !self.item().is_flagged()
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

    /// The item of a name that another member has as well. `names` is memory for it: lengths, names and items.
    fn twice(self, names: &mut Vec<(usize, Cow<'a, [u8]>, usize)>) -> Option<usize> {
        names.clear();
        names.extend(self.members().map(|(name, _)| {
            let text = name.string();
            (text.len(), text, name.at)
        }));
        names.sort_unstable();
        names.windows(2).find_map(|pair| match pair {
            [(_, one, _), (_, two, at)] if one == two => Some(*at),
            _ => None,
        })
    }

    /// The first member of a name.
    pub(crate) fn member(self, name: &[u8]) -> Option<Value<'a>> {
        let is = |own: Value<'a>| if own.is_literal() { own.raw() == name } else { own.string().as_ref() == name };
        self.members().find(|(own, _)| is(*own)).map(|(_, value)| value)
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

/// Four hexadecimal digits.
fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
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
