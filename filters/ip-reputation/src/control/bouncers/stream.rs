//! An answer of the service, read.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::DecisionScope;
use super::decisions::{Decision, Key, Kind, MAX_DECISIONS, Subject};
use super::duration;

/// Scopes of no use here that are named, at most.
const MAX_UNKNOWN: usize = 8;
/// The longest word of a service, in bytes.
const MAX_WORD: usize = 64;
/// The most addresses of IPv4 that one decision may cover: a network /8. A mistake must not refuse everyone.
const MAX_V4: u32 = 1 << 24;
/// Of IPv6, a network /20.
const MAX_V6: u128 = 1 << 108;

/// What an answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) new: Vec<Decision>,
    pub(super) deleted: Vec<Decision>,
    /// How many decisions cannot be used: no address, too wide, no duration.
    pub(super) rejected: usize,
    /// Scopes that mean nothing here.
    pub(super) unknown: BTreeSet<String>,
}

/// Which decisions are wanted. The service is asked for them alone, and need not do as it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) scopes: Vec<DecisionScope>,
    /// Empty for all.
    pub(super) origins: Vec<String>,
}

/// Reads an answer. Nothing of it is repeated in errors.
///
/// # Errors
/// It is no complete JSON document of this kind, or has too many decisions; for people.
pub(super) fn read(body: &[u8], wanted: &Wanted) -> Result<Answer, String> {
    let mut answer = Answer::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = Document { answer: &mut answer, wanted }.deserialize(&mut reader).and_then(|()| reader.end());
    match read {
        Ok(()) => Ok(answer),
        Err(_) if answer.new.len().max(answer.deleted.len()) >= MAX_DECISIONS => {
            Err(format!("the service has more than {MAX_DECISIONS} decisions"))
        }
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            Err(format!("the answer is no complete list of decisions: line {line}, column {column}"))
        }
    }
}

/// A decision as the service writes it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    id: Option<i64>,
    origin: Option<String>,
    scope: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    value: Option<String>,
    duration: Option<String>,
    simulated: Option<bool>,
}

struct Document<'a> {
    answer: &'a mut Answer,
    wanted: &'a Wanted,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `new` and `deleted`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0;
        while let Some(name) = map.next_key::<String>()? {
            let Answer { new, deleted, rejected, unknown } = &mut *self.answer;
            let list = match name.as_str() {
                "new" => new,
                "deleted" => deleted,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            seen += 1;
            map.next_value_seed(List { list, rejected, unknown, wanted: self.wanted })?;
        }
        // Such as a message on what went wrong, with the status of success.
        if seen == 0 { Err(A::Error::custom("neither `new` nor `deleted`")) } else { Ok(()) }
    }
}

struct List<'a> {
    list: &'a mut Vec<Decision>,
    rejected: &'a mut usize,
    unknown: &'a mut BTreeSet<String>,
    wanted: &'a Wanted,
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of decisions, or null")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<Raw>()? {
            if self.list.len() >= MAX_DECISIONS {
                return Err(A::Error::custom("too many"));
            }
            match raw.decision(self.wanted) {
                Ok(decision) => self.list.push(decision),
                Err(Odd::Unwanted) => {}
                Err(Odd::Rejected) => *self.rejected += 1,
                Err(Odd::Scope(scope)) if self.unknown.len() < MAX_UNKNOWN => drop(self.unknown.insert(scope)),
                Err(Odd::Scope(_)) => {}
            }
        }
        Ok(())
    }
}

/// Why a decision is not used.
enum Odd {
    Unwanted,
    Rejected,
    /// Its scope means nothing here.
    Scope(String),
}

impl Raw {
    fn decision(self, wanted: &Wanted) -> Result<Decision, Odd> {
        let scope = self.scope.unwrap_or_default().to_ascii_lowercase();
        let scope = match scope.as_str() {
            "ip" => DecisionScope::Ip,
            "range" => DecisionScope::Range,
            "country" => DecisionScope::Country,
            "as" => DecisionScope::As,
            _ => return Err(Odd::Scope(word(&scope).unwrap_or_else(|| "?".to_owned()))),
        };
        let origin = self.origin.unwrap_or_default();
        let of_others = !wanted.origins.is_empty() && !wanted.origins.contains(&origin);
        if !wanted.scopes.contains(&scope) || of_others || self.simulated == Some(true) {
            return Err(Odd::Unwanted);
        }
        let value = self.value.unwrap_or_default();
        let subject = match scope {
            DecisionScope::Ip | DecisionScope::Range => addresses(&value),
            DecisionScope::Country => country(&value),
            DecisionScope::As => network(&value),
        };
        let kind = word(&self.kind.unwrap_or_default().to_ascii_lowercase());
        let kind = kind.map(|kind| if kind == "ban" { Kind::Ban } else { Kind::Other(kind.into()) });
        let left = duration::millis(&self.duration.unwrap_or_default());
        match (subject, kind, left) {
            (Some(subject), Some(kind), Some(left_millis)) => {
                Ok(Decision { key: Key { scope, subject, kind }, id: self.id.unwrap_or(0), left_millis })
            }
            _ => Err(Odd::Rejected),
        }
    }
}

/// A word of the service that may be shown and kept.
fn word(text: &str) -> Option<String> {
    let sane = (1..=MAX_WORD).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    sane.then(|| text.to_owned())
}

/// Services keep values as they were given: with a length behind a single address, with bits behind the length, mapped to IPv6.
fn addresses(value: &str) -> Option<Subject> {
    let (first, last) = feeds::range(value)?;
    let fits = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => u32::from(last) - u32::from(first) < MAX_V4,
        (IpAddr::V6(first), IpAddr::V6(last)) => u128::from(last) - u128::from(first) < MAX_V6,
        _ => false,
    };
    fits.then_some(Subject::Range(first, last))
}

fn country(value: &str) -> Option<Subject> {
    let code = value.trim().to_ascii_lowercase();
    let sane = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_lowercase());
    sane.then(|| Subject::Named(code.into()))
}

fn network(value: &str) -> Option<Subject> {
    let value = value.trim();
    let number = value
        .get(..2)
        .filter(|prefix| prefix.eq_ignore_ascii_case("as"))
        .map_or(value, |_| value.get(2..).unwrap_or_default());
    let number: u32 = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some(Subject::Named(number.to_string().into()))
}
