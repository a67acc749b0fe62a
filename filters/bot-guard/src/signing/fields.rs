//! Structured fields (RFC 9651), read from bytes and written in their canonical form: dictionaries whose members are items or inner
//! lists. Display strings are not read.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Members of a dictionary, items of an inner list and parameters of one of them, at most.
const MAX_MEMBERS: usize = 16;
const MAX_ITEMS: usize = 32;
const MAX_PARAMETERS: usize = 16;
/// Digits of an integer, and of a decimal in front of its point and behind it, at most (section 3.3).
const INTEGER_DIGITS: usize = 15;
const DECIMAL_DIGITS: usize = 12;
const FRACTION_DIGITS: usize = 3;

/// Base64 of byte sequences; padding may be left out (section 4.2.7).
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A value without parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bare<'a> {
    Integer(i64),
    /// In thousandths.
    Decimal(i64),
    /// Without quotes and escapes.
    Text(Cow<'a, [u8]>),
    Token(&'a [u8]),
    Bytes(Vec<u8>),
    Boolean(bool),
    /// Seconds since 1970.
    Date(i64),
}

/// Parameters in their order, each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parameters<'a>(Vec<(&'a [u8], Bare<'a>)>);

/// A value with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) value: Bare<'a>,
    pub(crate) parameters: Parameters<'a>,
}

/// An inner list with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerList<'a> {
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) parameters: Parameters<'a>,
}

/// A member of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Member<'a> {
    Item(Item<'a>),
    List(InnerList<'a>),
}

/// A dictionary: members in their order, each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dictionary<'a>(Vec<(&'a [u8], Member<'a>)>);

// === impl Dictionary ===

impl<'a> Dictionary<'a> {
    /// Reads a field; `None` for one that is none, or is over a limit.
    pub(crate) fn read(field: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(trim(field));
        let mut members: Vec<(&[u8], Member<'_>)> = Vec::new();
        if reader.0.is_empty() {
            return Some(Self(members));
        }
        loop {
            let key = reader.key()?;
            let member = match reader.take(b'=') {
                true => reader.member()?,
                false => Member::Item(Item { value: Bare::Boolean(true), parameters: reader.parameters()? }),
            };
            put(&mut members, key, member, MAX_MEMBERS)?;
            reader.white_space();
            if reader.0.is_empty() {
                return Some(Self(members));
            }
            if !reader.take(b',') {
                return None;
            }
            reader.white_space();
        }
    }

    /// The member of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Member<'a>> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, member)| member)
    }

    /// Keys and members, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], &Member<'a>)> {
        self.0.iter().map(|(key, member)| (*key, member))
    }
}

// === impl Member ===

impl Member<'_> {
    /// Writes it as a field would have it.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Member::Item(item) => item.write(to),
            Member::List(list) => list.write(to),
        }
    }
}

// === impl InnerList ===

impl InnerList<'_> {
    /// Writes it as a field would have it.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.push(b'(');
        for (place, item) in self.items.iter().enumerate() {
            if place > 0 {
                to.push(b' ');
            }
            item.write(to);
        }
        to.push(b')');
        self.parameters.write(to);
    }
}

// === impl Item ===

impl<'a> Item<'a> {
    /// Reads a field that is one item; `None` for one that is none, or is over a limit.
    pub(crate) fn read(field: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(trim(field));
        let item = reader.item()?;
        reader.0.is_empty().then_some(item)
    }

    /// Writes it as a field would have it.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        self.value.write(to);
        self.parameters.write(to);
    }
}

// === impl Parameters ===

impl<'a> Parameters<'a> {
    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Bare<'a>> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// The text under a key; `None` without one, or with something else.
    pub(crate) fn text(&self, key: &[u8]) -> Option<&[u8]> {
        match self.get(key)? {
            Bare::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Keys and values, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], &Bare<'a>)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    fn write(&self, to: &mut Vec<u8>) {
        for (key, value) in &self.0 {
            to.push(b';');
            to.extend_from_slice(key);
            if *value != Bare::Boolean(true) {
                to.push(b'=');
                value.write(to);
            }
        }
    }
}

// === impl Bare ===

impl Bare<'_> {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Bare::Integer(number) => to.extend_from_slice(number.to_string().as_bytes()),
            Bare::Decimal(thousandths) => write_decimal(*thousandths, to),
            Bare::Text(text) => {
                to.push(b'"');
                for byte in text.iter() {
                    if matches!(byte, b'"' | b'\\') {
                        to.push(b'\\');
                    }
                    to.push(*byte);
                }
                to.push(b'"');
            }
            Bare::Token(token) => to.extend_from_slice(token),
            Bare::Bytes(bytes) => write_bytes(bytes, to),
            Bare::Boolean(truth) => to.extend_from_slice(if *truth { b"?1" } else { b"?0" }),
            Bare::Date(seconds) => {
                to.push(b'@');
                to.extend_from_slice(seconds.to_string().as_bytes());
            }
        }
    }
}

/// Writes a byte sequence as a field would have it.
pub(crate) fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    to.push(b':');
    to.extend_from_slice(BASE64.encode(bytes).as_bytes());
    to.push(b':');
}

/// Trailing zeros are left out, but for one behind the point.
fn write_decimal(thousandths: i64, to: &mut Vec<u8>) {
    let sign = if thousandths < 0 { "-" } else { "" };
    let (whole, fraction) = (thousandths.unsigned_abs() / 1000, thousandths.unsigned_abs() % 1000);
    let digits = format!("{fraction:03}");
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    to.extend_from_slice(format!("{sign}{whole}.{digits}").as_bytes());
}

/// What is left of a field that is read.
struct Reader<'a>(&'a [u8]);

// === impl Reader ===

impl<'a> Reader<'a> {
    fn next_is(&self, byte: u8) -> bool {
        self.0.first() == Some(&byte)
    }

    /// Takes a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes all bytes up to the first one that is not of these.
    fn take_while(&mut self, of: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !of(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at_checked(end).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    fn white_space(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let first = *self.0.first()?;
        let key = self.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte));
        (first.is_ascii_lowercase() || first == b'*').then_some(key)
    }

    fn member(&mut self) -> Option<Member<'a>> {
        if !self.take(b'(') {
            return self.item().map(Member::Item);
        }
        let mut items = Vec::new();
        loop {
            self.take_while(|byte| byte == b' ');
            if self.take(b')') {
                return Some(Member::List(InnerList { items, parameters: self.parameters()? }));
            }
            if items.len() >= MAX_ITEMS {
                return None;
            }
            items.push(self.item()?);
            if !self.next_is(b' ') && !self.next_is(b')') {
                return None;
            }
        }
    }

    fn item(&mut self) -> Option<Item<'a>> {
        Some(Item { value: self.bare()?, parameters: self.parameters()? })
    }

    fn parameters(&mut self) -> Option<Parameters<'a>> {
        let mut parameters = Vec::new();
        while self.take(b';') {
            self.take_while(|byte| byte == b' ');
            let key = self.key()?;
            let value = if self.take(b'=') { self.bare()? } else { Bare::Boolean(true) };
            put(&mut parameters, key, value, MAX_PARAMETERS)?;
        }
        Some(Parameters(parameters))
    }

    fn bare(&mut self) -> Option<Bare<'a>> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.text(),
            b':' => self.bytes(),
            b'?' => {
                let (truth, rest) = self.0.split_at_checked(2)?;
                self.0 = rest;
                match truth {
                    b"?1" => Some(Bare::Boolean(true)),
                    b"?0" => Some(Bare::Boolean(false)),
                    _ => None,
                }
            }
            b'@' => {
                self.take(b'@');
                match self.number()? {
                    Bare::Integer(seconds) => Some(Bare::Date(seconds)),
                    _ => None,
                }
            }
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => Some(Bare::Token(
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)),
            )),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Bare<'a>> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if !self.take(b'.') {
            let number = digits(whole, INTEGER_DIGITS)?;
            return Some(Bare::Integer(number.checked_mul(sign)?));
        }
        let fraction = self.take_while(|byte| byte.is_ascii_digit());
        let (whole, mut thousandths) = (digits(whole, DECIMAL_DIGITS)?, digits(fraction, FRACTION_DIGITS)?);
        for _ in fraction.len()..FRACTION_DIGITS {
            thousandths = thousandths.checked_mul(10)?;
        }
        Some(Bare::Decimal(whole.checked_mul(1000)?.checked_add(thousandths)?.checked_mul(sign)?))
    }

    fn text(&mut self) -> Option<Bare<'a>> {
        self.take(b'"');
        let plain = self.take_while(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
        if self.take(b'"') {
            return Some(Bare::Text(Cow::Borrowed(plain)));
        }
        let mut text = plain.to_vec();
        loop {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            match first {
                b'"' => return Some(Bare::Text(Cow::Owned(text))),
                b'\\' => {
                    let (escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    if !matches!(escaped, b'"' | b'\\') {
                        return None;
                    }
                    text.push(*escaped);
                }
                b' '..=b'~' => text.push(*first),
                _ => return None,
            }
        }
    }

    fn bytes(&mut self) -> Option<Bare<'a>> {
        self.take(b':');
        let encoded = self.take_while(|byte| byte != b':');
        let bytes = BASE64.decode(encoded).ok()?;
        self.take(b':').then_some(Bare::Bytes(bytes))
    }
}

/// A number of 1 to `most` digits.
fn digits(digits: &[u8], most: usize) -> Option<i64> {
    if !(1..=most).contains(&digits.len()) {
        return None;
    }
    digits
        .iter()
        .try_fold(0_i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit.checked_sub(b'0')?)))
}

/// Gives a key a value, at the end; one that is there keeps its place (section 4.2.2). `None` where there are too many.
fn put<'a, V>(values: &mut Vec<(&'a [u8], V)>, key: &'a [u8], value: V, most: usize) -> Option<()> {
    let full = values.len() >= most;
    match values.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None if full => return None,
        None => values.push((key, value)),
    }
    Some(())
}

/// A field without the spaces around it.
fn trim(field: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| *byte != b' ' && *byte != b'\t';
    let start = field.iter().position(is_space).unwrap_or(field.len());
    let end = field.iter().rposition(is_space).map_or(start, |last| last.saturating_add(1));
    field.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
