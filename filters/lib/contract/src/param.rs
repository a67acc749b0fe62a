//! Parameters: from text to a value, by style and `explode` (OpenAPI 3.1.1, style values), and the check of it.

use std::borrow::Cow;

use crate::compiled::Contract;
use crate::json::{Document, number_length, quote};
use crate::percent::decode;
use crate::record::{ParameterRecord, types};
use crate::schema::{Checked, check_request};

/// The work that the check of one value may take.
const BUDGET: u64 = 100_000;

/// What is wrong with JSON of requests in which parsers read different members.
pub(crate) const TWICE: &str = "a name comes twice in an object";

/// What the value of a parameter may be.
pub(crate) mod kind {
    /// A single value.
    pub(crate) const SINGLE: u32 = 1;
    /// A list.
    pub(crate) const LIST: u32 = 2;
    /// An object.
    pub(crate) const OBJECT: u32 = 4;
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Place {
    Path = 0,
    Query = 1,
    Header = 2,
    Cookie = 3,
}

impl Place {
    const ALL: [Self; 4] = [Self::Path, Self::Query, Self::Header, Self::Cookie];

    #[cfg(feature = "compile")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.name() == name)
    }

    pub(crate) fn numbered(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|place| *place as u32 == number)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Style {
    Simple = 0,
    Form = 1,
    Label = 2,
    Matrix = 3,
    SpaceDelimited = 4,
    PipeDelimited = 5,
    DeepObject = 6,
    /// A document of a media type.
    Content = 7,
}

impl Style {
    const ALL: [(&'static str, Self); 8] = [
        ("simple", Self::Simple),
        ("form", Self::Form),
        ("label", Self::Label),
        ("matrix", Self::Matrix),
        ("spaceDelimited", Self::SpaceDelimited),
        ("pipeDelimited", Self::PipeDelimited),
        ("deepObject", Self::DeepObject),
        ("(content)", Self::Content),
    ];

    #[cfg(feature = "compile")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, style)| *style)
    }

    pub(crate) fn numbered(number: u32) -> Option<Self> {
        Self::ALL.iter().map(|(_, style)| *style).find(|style| *style as u32 == number)
    }
}

/// What parts a list in a query or a path: most backends undo escapes first, and many clients escape the whole list.
const COMMAS: &[&[u8]] = &[b",", b"%2C", b"%2c"];

/// What is written of a parameter: raw pieces, not decoded yet.
#[derive(Debug, Default)]
pub(crate) struct Written<'a> {
    /// The single values: of a query, each occurrence.
    pub(crate) singles: Vec<&'a [u8]>,
    /// The items of a list.
    pub(crate) items: Vec<&'a [u8]>,
    /// The properties of an object; names are decoded.
    pub(crate) fields: Vec<(Cow<'a, [u8]>, &'a [u8])>,
    /// In a query `+` is a space.
    pub(crate) query: bool,
    /// The value of a header has no escapes.
    pub(crate) header: bool,
    /// Some items are written as `name[]=item` or `name[0]=item`: it is a list, and nothing else.
    pub(crate) indexed: bool,
    /// A field has fields of its own, and is no object; or something stands behind its brackets.
    pub(crate) deeper: bool,
}

impl<'a> Written<'a> {
    /// Takes the one text of a parameter apart: of a path, or of a header.
    pub(crate) fn of_text(record: &ParameterRecord, style: Style, name: &[u8], text: &'a [u8]) -> Self {
        let header = record.place == Place::Header as u32;
        let mut written = Self { header, ..Self::default() };
        let text = match style {
            Style::Label => text.strip_prefix(b".").unwrap_or(text),
            Style::Matrix => text.strip_prefix(b";").unwrap_or(text),
            _ => text,
        };
        let separators: &[&[u8]] = match style {
            Style::Label if record.explode => &[b"."],
            Style::Matrix if record.explode => &[b";"],
            _ if header => &[b","],
            _ => COMMAS,
        };
        // `;name=value`
        let unnamed = |part: &'a [u8]| match style {
            Style::Matrix => match part.strip_prefix(name) {
                Some(b"") => Some(b"".as_slice()),
                Some(rest) => rest.strip_prefix(b"="),
                None => None,
            },
            _ => Some(part),
        };
        written.singles.push(unnamed(text).unwrap_or(text));
        let parts = |text: &'a [u8]| split(text, separators).map(<[u8]>::trim_ascii);
        if record.kind & kind::LIST != 0 {
            if style == Style::Matrix && record.explode {
                written.items.extend(parts(text).map(|part| unnamed(part).unwrap_or(part)));
            } else {
                let list = unnamed(text).unwrap_or(text);
                written.items.extend(parts(list).filter(|_| !list.is_empty()));
            }
        }
        if record.kind & kind::OBJECT != 0 {
            if record.explode {
                written.fields.extend(parts(text).map(|part| pair(part, header)));
            } else {
                written.alternate(parts(unnamed(text).unwrap_or(text)));
            }
        }
        written
    }

    /// Takes the occurrences of a query parameter apart; `pairs` is the query as a whole.
    pub(crate) fn of_query(
        contract: &Contract,
        record: &ParameterRecord,
        style: Style,
        name: &[u8],
        pairs: &'a [(Cow<'a, [u8]>, &'a [u8])],
    ) -> Self {
        let mut written = Self { query: true, ..Self::default() };
        written.singles.extend(pairs.iter().filter(|(own, _)| own.as_ref() == name).map(|(_, value)| *value));
        if style == Style::Content {
            return written;
        }
        if record.kind & kind::LIST != 0 {
            let brackets = [name, b"[]"].concat();
            for value in &written.singles {
                match style {
                    _ if record.explode && style == Style::Form => written.items.push(*value),
                    Style::SpaceDelimited => written.items.extend(split(value, &[b"%20", b"+", b" "])),
                    Style::PipeDelimited => written.items.extend(split(value, &[b"%7C", b"%7c", b"|"])),
                    _ => written.items.extend(split(value, COMMAS).filter(|_| !value.is_empty())),
                }
            }
            if style == Style::DeepObject {
                written.items.extend(pairs.iter().filter(|(own, _)| own.as_ref() == brackets).map(|(_, value)| *value));
            }
        }
        if record.kind & kind::OBJECT != 0 {
            match style {
                Style::DeepObject => {
                    for (own, value) in pairs {
                        let Some(rest) = own.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"[")) else {
                            continue;
                        };
                        // Some backends leave out what is behind the last bracket, and some do without that bracket.
                        let Some(inner) = rest.strip_suffix(b"]") else {
                            written.deeper = true;
                            continue;
                        };
                        match deeper(contract, record, inner) {
                            Deeper::Field => written.fields.push((Cow::Borrowed(inner), value)),
                            Deeper::Item(field) => written.fields.push((Cow::Borrowed(field), value)),
                            Deeper::Wrong => written.deeper = true,
                        }
                    }
                }
                _ if record.explode => {
                    let known = |own: &[u8]| record.fields.iter().any(|field| contract.text(field.name) == own);
                    let own = pairs.iter().filter(|(own, _)| known(own));
                    written.fields.extend(own.map(|(own, value)| (Cow::Borrowed(own.as_ref()), *value)));
                }
                _ => {
                    for value in written.singles.clone() {
                        written.alternate(split(value, COMMAS));
                    }
                }
            }
        }
        written
    }

    /// Names and values in turn.
    fn alternate(&mut self, mut parts: impl Iterator<Item = &'a [u8]>) {
        while let Some(name) = parts.next() {
            let name = if self.header { Cow::Borrowed(name) } else { decode(name) };
            self.fields.push((name, parts.next().unwrap_or_default()));
        }
    }

    /// A piece without its escapes; `plus` is whether a `+` of a query is a space.
    fn plain<'t>(&self, piece: &'t [u8], plus: bool) -> Cow<'t, [u8]> {
        if self.header { Cow::Borrowed(piece) } else { unescape(piece, self.query && plus) }
    }

    /// Whether nothing is there.
    pub(crate) fn is_absent(&self) -> bool {
        self.singles.is_empty() && self.items.is_empty() && self.fields.is_empty() && !self.deeper
    }
}

/// What the brackets of a field lead to.
enum Deeper<'a> {
    /// A field.
    Field,
    /// An item of a field.
    Item(&'a [u8]),
    /// Something below a field that has nothing below it.
    Wrong,
}

/// Looks at a field, which is in brackets, for brackets behind it: `price][$gt`. What is below an object is not looked at.
fn deeper<'a>(contract: &Contract, record: &ParameterRecord, inner: &'a [u8]) -> Deeper<'a> {
    let Some(at) = inner.iter().position(|byte| *byte == b']') else { return Deeper::Field };
    let (name, rest) = (inner.get(..at).unwrap_or_default(), inner.get(at + 1..).unwrap_or_default());
    let Some(field) = record.fields.iter().find(|field| contract.text(field.name).eq_ignore_ascii_case(name)) else {
        // Another one may be anything, unless its type is told.
        let schema = record.schema.and_then(|schema| contract.schema(schema));
        let others = schema.and_then(|schema| contract.schema(schema.record.additional_properties?));
        let types = others.map_or(0, |others| others.record.types);
        return if types == 0 || types & (types::OBJECT | types::ARRAY) != 0 { Deeper::Field } else { Deeper::Wrong };
    };
    let index = rest.strip_prefix(b"[").is_some_and(|index| index.iter().all(u8::is_ascii_digit));
    match field.types & types::OBJECT != 0 {
        true => Deeper::Field,
        false if field.list && index => Deeper::Item(name),
        false => Deeper::Wrong,
    }
}

/// `name=value`
fn pair(text: &[u8], header: bool) -> (Cow<'_, [u8]>, &[u8]) {
    let (name, value) = match text.iter().position(|byte| *byte == b'=') {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
        None => (text, b"".as_slice()),
    };
    (if header { Cow::Borrowed(name) } else { decode(name) }, value)
}

fn split<'a>(text: &'a [u8], separators: &'static [&'static [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = (0..text.len()).find_map(|at| {
            let here = text.get(at..)?;
            separators.iter().find(|separator| here.starts_with(separator)).map(|separator| (at, separator.len()))
        });
        match found {
            Some((at, length)) => {
                rest = text.get(at + length..);
                text.get(..at)
            }
            None => rest.take(),
        }
    })
}

/// Checks what is written of a parameter; the words for what is wrong, with its place in the value.
pub(crate) fn check_written(
    contract: &Contract,
    record: &ParameterRecord,
    style: Style,
    written: &Written<'_>,
) -> Result<(), String> {
    let Some(schema) = record.schema else { return Ok(()) };
    if written.deeper {
        return Err("expected fields in brackets, and nothing below a field that is no object".to_owned());
    }
    let empty =
        written.singles.iter().all(|single| single.is_empty()) && written.items.iter().all(|item| item.is_empty());
    if record.allow_empty && empty && written.fields.is_empty() {
        return Ok(());
    }
    let judge = |text: Vec<u8>| match Document::read(text) {
        Ok(document) if style == Style::Content && document.twice().is_some() => Err(TWICE.to_owned()),
        Ok(document) => match check_request(contract, schema, &document, BUDGET) {
            Checked::Valid | Checked::Unjudged => Ok(()),
            Checked::TooCostly => Err("checking it takes too much work".to_owned()),
            // Of a parameter the first thing is told: the next one is often told in other words.
            Checked::Invalid(found) => Err(match found.into_iter().next() {
                Some((pointer, expected)) if !pointer.is_empty() => format!("{pointer}: expected {expected}"),
                Some((_, expected)) => format!("expected {expected}"),
                None => "expected a value that matches the schema".to_owned(),
            }),
        },
        Err(wrong) => Err(format!("byte {}: {}", wrong.at, wrong.what)),
    };
    if style == Style::Content {
        return written.singles.iter().try_for_each(|single| judge(written.plain(single, true).into_owned()));
    }
    let mut first = None;
    let mut attempt = |result: Result<(), String>| match result {
        Ok(()) => true,
        Err(words) => {
            first.get_or_insert(words);
            false
        }
    };
    // What may be a text or a number is tried as both, and `+` as what the standard says and as itself.
    for (plus, typed) in [(true, true), (true, false), (false, true), (false, false)] {
        if !plus && !written.query {
            break;
        }
        let text = |raw: &[u8], types: u32, out: &mut Vec<u8>| value(&written.plain(raw, plus), types, typed, out);
        if record.kind & kind::LIST != 0 {
            let mut out = vec![b'['];
            list(written.items.iter().copied(), record.items, &text, &mut out);
            out.push(b']');
            if attempt(judge(out)) {
                return Ok(());
            }
        }
        if record.kind & kind::OBJECT != 0 && (!written.fields.is_empty() || record.kind == kind::OBJECT) {
            let out = object(contract, record, written, &text);
            if attempt(judge(out)) {
                return Ok(());
            }
        }
        if record.kind & kind::SINGLE != 0 && !written.singles.is_empty() && !written.indexed {
            let single = |raw: &&[u8]| {
                let mut out = Vec::with_capacity(raw.len() + 2);
                text(raw, record.types, &mut out);
                judge(out)
            };
            if attempt(written.singles.iter().try_for_each(single)) {
                return Ok(());
            }
        }
    }
    first.map_or(Ok(()), Err)
}

fn list<'i>(
    items: impl Iterator<Item = &'i [u8]>,
    types: u32,
    text: &impl Fn(&[u8], u32, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        text(item, types, out);
    }
}

fn object(
    contract: &Contract,
    record: &ParameterRecord,
    written: &Written<'_>,
    text: &impl Fn(&[u8], u32, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = vec![b'{'];
    let mut done: Vec<&[u8]> = Vec::new();
    for (name, raw) in &written.fields {
        let known = record.fields.iter().find(|field| contract.text(field.name) == name.as_ref());
        let is_list = known.is_some_and(|field| field.list);
        if is_list && done.contains(&name.as_ref()) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        quote(name, &mut out);
        out.push(b':');
        let types = known.map_or(types::NULL | types::BOOLEAN | types::NUMBER | types::STRING, |field| field.types);
        if is_list {
            done.push(name.as_ref());
            out.push(b'[');
            let same = written.fields.iter().filter(|(other, _)| other == name).map(|(_, raw)| *raw);
            list(same, types, text, &mut out);
            out.push(b']');
        } else {
            text(raw, types, &mut out);
        }
    }
    out.push(b'}');
    out
}

/// Appends a text as a value of one of the types: the first that it can be, if `typed`, and otherwise as a text where it may be one.
fn value(text: &[u8], allowed: u32, typed: bool, out: &mut Vec<u8>) {
    let is_text = allowed & types::STRING != 0;
    let as_others = typed || !is_text;
    let number = allowed & (types::NUMBER | types::INTEGER) != 0;
    let as_number = number && number_length(text) == Some(text.len());
    let as_boolean = allowed & types::BOOLEAN != 0 && (text == b"true" || text == b"false");
    if as_others && (as_number || as_boolean) {
        out.extend(text);
    } else if as_others && allowed & types::NULL != 0 && (text == b"null" || (text.is_empty() && !is_text)) {
        out.extend(b"null");
    } else {
        quote(text, out);
    }
}

pub(crate) fn unescape(text: &[u8], query: bool) -> Cow<'_, [u8]> {
    if query && text.contains(&b'+') {
        let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        return Cow::Owned(decode(&spaced).into_owned());
    }
    decode(text)
}
