//! The names of a query: those that are not declared, and those that backends take for declared ones.

use std::borrow::Cow;

use crate::check::{MAX_MISMATCHES, Mismatch, Violation};
use crate::compiled::Contract;
use crate::param::{Place, Style, kind};
use crate::percent::decode;
use crate::record::{OperationRecord, ParameterRecord, types};

/// A name, decoded, and its raw value.
pub(crate) type Pair<'q> = (Cow<'q, [u8]>, &'q [u8]);

/// A query as backends read it that part it at `;` as well as at `&`. Without a `;` it is empty.
#[derive(Default)]
pub(crate) struct Parted<'q> {
    pub(crate) all: Vec<Pair<'q>>,
    /// What is behind a `;` and has a `=`.
    pub(crate) behind: Vec<Pair<'q>>,
}

/// Takes a query apart at `&`.
pub(crate) fn pairs(query: &[u8]) -> Vec<Pair<'_>> {
    query.split(|byte| *byte == b'&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Takes a query apart at `;` as well.
pub(crate) fn parted(query: &[u8]) -> Parted<'_> {
    let mut parted = Parted::default();
    if !query.contains(&b';') {
        return parted;
    }
    for part in query.split(|byte| *byte == b'&') {
        for (place, part) in part.split(|byte| *byte == b';').enumerate().filter(|(_, part)| !part.is_empty()) {
            parted.all.push(pair(part));
            if place > 0 && part.contains(&b'=') {
                parted.behind.push(pair(part));
            }
        }
    }
    parted
}

pub(crate) fn pair(part: &[u8]) -> Pair<'_> {
    let at = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
    let name = part.get(..at).unwrap_or_default();
    let name = if name.contains(&b'+') {
        let spaced: Vec<u8> = name.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        Cow::Owned(decode(&spaced).into_owned())
    } else {
        decode(name)
    };
    (name, part.get(at + 1..).unwrap_or_default())
}

/// The names that are declared: a name with its parameter, or with the field of one that is an object.
#[derive(Clone, Copy)]
struct Declared<'c> {
    name: &'c [u8],
    record: &'c ParameterRecord,
    /// Of a field, whether it may have brackets.
    field: Option<bool>,
}

impl Contract {
    /// The items of a list that are written as `name[]=item` or `name[0]=item`, as many clients do it.
    pub(crate) fn indexed<'p>(
        &self,
        operation: &OperationRecord,
        record: &ParameterRecord,
        style: Style,
        pairs: &'p [Pair<'p>],
    ) -> Vec<&'p [u8]> {
        let list = record.kind & (kind::LIST | kind::OBJECT) == kind::LIST;
        if !list || matches!(style, Style::DeepObject | Style::Content) {
            return Vec::new();
        }
        let own = self.text(record.name);
        let items = pairs.iter().filter(|(name, _)| {
            name.strip_prefix(own).and_then(index).is_some_and(<[u8]>::is_empty) && !self.declares(operation, name)
        });
        items.map(|(_, value)| *value).collect()
    }

    /// The declared names of a query.
    fn declared<'c>(&'c self, operation: &'c OperationRecord) -> impl Iterator<Item = Declared<'c>> {
        let records = operation.parameters.iter().filter(|record| record.place == Place::Query as u32);
        records.flat_map(move |record| {
            let form = record.style == Style::Form as u32 && record.explode;
            let fields = record.fields.iter().filter(move |_| form).map(move |field| {
                let brackets = field.list || field.types & types::OBJECT != 0;
                Declared { name: self.text(field.name), record, field: Some(brackets) }
            });
            std::iter::once(Declared { name: self.text(record.name), record, field: None }).chain(fields)
        })
    }

    /// Whether a name is declared as it is.
    fn declares(&self, operation: &OperationRecord, name: &[u8]) -> bool {
        self.declared(operation).any(|declared| {
            let deep = declared.field.is_none() && declared.record.style == Style::DeepObject as u32;
            match name.strip_prefix(declared.name) {
                Some(b"") => true,
                Some(rest) => deep && rest.starts_with(b"["),
                None => false,
            }
        })
    }

    /// Adds what is wrong with the names that are not declared; of those behind a `;` only the spelling counts.
    pub(crate) fn other_names(
        &self,
        operation: &OperationRecord,
        (pairs, behind): (&[Pair<'_>], &[Pair<'_>]),
        reject_unknown: bool,
        found: &mut Vec<Violation>,
    ) {
        let reject_unknown = reject_unknown && !operation.open_query;
        let first = pairs.iter().map(|(name, _)| (name, reject_unknown));
        for (name, reject_unknown) in first.chain(behind.iter().map(|(name, _)| (name, false))) {
            if found.len() >= MAX_MISMATCHES {
                return;
            }
            if self.declares(operation, name) {
                continue;
            }
            let readings = readings(name);
            if let Some(own) =
                self.declared(operation).find_map(|declared| spelled(operation, declared, name, &readings))
            {
                let place = format!("query:{}", String::from_utf8_lossy(own));
                let wrong = Violation::new(Mismatch::InvalidParameter, place, "the name is written in another way");
                if !found.contains(&wrong) {
                    found.push(wrong);
                }
            } else if reject_unknown {
                let shown: String =
                    String::from_utf8_lossy(name).chars().filter(|shown| !shown.is_control()).take(64).collect();
                let place = format!("query:{shown}");
                found.push(Violation::new(Mismatch::UnknownParameter, place, "the parameter is not declared"));
            }
        }
    }
}

/// A name as backends read it: all leave out blanks in front, and some what is behind a NUL. Rack and qs leave out brackets in front of
/// the name and those that end its first part; PHP takes a bracket without an end for a `_`.
fn readings(name: &[u8]) -> [Vec<u8>; 3] {
    let blanks = name.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let plain = name.get(blanks..).and_then(|name| name.split(|byte| *byte == 0).next()).unwrap_or_default();
    let is_bracket = |byte: &u8| matches!(byte, b'[' | b']');
    let front = plain.iter().take_while(|byte| is_bracket(byte)).count();
    let bare = plain.get(front..).unwrap_or_default();
    let length = bare.iter().take_while(|byte| !is_bracket(byte)).count();
    let (first, rest) = bare.split_at_checked(length).unwrap_or_default();
    let closing = rest.iter().take_while(|byte| **byte == b']').count();
    let rest = rest.get(closing..).unwrap_or_default();
    // To Rack, what follows there is below the first part.
    let below = closing > 0 && rest.first().is_some_and(|byte| *byte != b'[');
    let opening: &[u8] = if below { b"[" } else { b"" };
    let bare = [first, opening, rest].concat();
    let mut closed = plain.to_vec();
    if let Some(at) = closed.iter().position(|byte| *byte == b'[') {
        let tail = closed.get_mut(at..).unwrap_or_default();
        if !tail.contains(&b']') {
            tail.iter_mut().filter(|byte| **byte == b'[').for_each(|byte| *byte = b'_');
        }
    }
    [plain.to_vec(), bare, closed]
}

/// Whether backends take two bytes of names for the same: in any case, and PHP a `.` and a blank in front of brackets for a `_`.
fn is_same(one: u8, two: u8, in_first: bool) -> bool {
    let plain = |byte: u8| match byte {
        b'.' | b' ' if in_first => b'_',
        other => other.to_ascii_lowercase(),
    };
    plain(one) == plain(two)
}

/// What is behind a declared name in a reading of another one.
fn behind<'r>(reading: &'r [u8], own: &[u8]) -> Option<&'r [u8]> {
    let (start, rest) = reading.split_at_checked(own.len())?;
    let brackets = own.iter().position(|byte| *byte == b'[').unwrap_or(own.len());
    let mut bytes = start.iter().zip(own).enumerate();
    bytes.all(|(at, (one, two))| is_same(*one, *two, at < brackets)).then_some(rest)
}

/// The declared name, if a name that is not declared is another spelling of it, by one of its [`readings`]; or has brackets behind it
/// where the value is neither an object nor a list.
fn spelled<'c>(
    operation: &OperationRecord,
    declared: Declared<'c>,
    name: &[u8],
    readings: &[Vec<u8>],
) -> Option<&'c [u8]> {
    let own = declared.name;
    if declared.field.is_some() && operation.open_query {
        return None;
    }
    let record = declared.record;
    let takes = |rest: &[u8]| {
        declared.field.unwrap_or_else(|| match record.kind {
            _ if record.style == Style::Content as u32 => false,
            kind if kind & kind::OBJECT != 0 => true,
            kind if kind & kind::LIST != 0 => {
                // `ids[0]`, and where items may be objects `ids[0][name]`.
                let is_below =
                    |behind: &[u8]| record.items & types::OBJECT != 0 && matches!(behind.first(), Some(b'[' | b'.'));
                index(rest).is_some_and(|behind| behind.is_empty() || is_below(behind))
            }
            _ => false,
        })
    };
    // Brackets that belong to an object or a list are no other spelling.
    let exact = name.strip_prefix(own).filter(|rest| rest.starts_with(b"[") && !rest.contains(&0)).is_some_and(takes);
    let mut rests = readings.iter().filter_map(|reading| behind(reading, own));
    let other = rests.any(|rest| rest.is_empty() || rest.starts_with(b"["));
    (other && !exact).then_some(own)
}

/// What is behind a `[]` or a `[0]`.
fn index(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"[")?;
    let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
    inside.get(digits..)?.strip_prefix(b"]")
}
