//! Shapes of values: a rule need not look at an input while its value is made of characters that no attack can do without.
//!
//! A token or an identifier looks like a part of an attack now and then, by chance. An exclusion for the input lets attacks pass there; one
//! that holds for its shape alone does not, because a value that is written in letters, digits and a few marks is no program.

use std::collections::BTreeSet;

use seclang::REST_OF_BODY;

use super::exclusion::{Exclusion, ExclusionKind, Place, condition, described};
use super::target::Target;
use crate::samples::messages::ValueShape;
use crate::samples::shape::{Alphabet, MAX_VALUE};

/// The marks that a shape may have. Attacks are written with blanks, quotes, brackets, semicolons, bars, backslashes, dollar signs, percent
/// signs; an application may read the last as escapes.
const MARKS: &[u8] = b"-_.~/=:,@&?";
/// One that a value may have whose escapes are undone; in others it may be a blank.
const PLUS: u8 = b'+';
/// Of so many parts of the callers, all but one have to send the shape.
const PARTS: usize = 4;
/// The longest value that a shape takes, in bytes.
const MAX_LENGTH: u32 = 512;

/// What the values at an input have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    alphabet: Alphabet,
    /// Bytes.
    least: u32,
    most: u32,
}

impl Shape {
    /// What enough callers send at an input, where nearly all of them do; `None` where that is anything, or nothing is known. `are_enough`
    /// says whether what these callers send is not the doing of a few.
    pub(super) fn of(
        shapes: &[ValueShape],
        target: &Target,
        are_enough: impl Fn(&BTreeSet<u64>) -> bool,
    ) -> Option<Self> {
        let known = |one: &&ValueShape| one.longest as usize <= MAX_VALUE && one.shortest > 0;
        let has = |byte: u8| {
            let of_byte = shapes.iter().filter(|one| Alphabet::read(one.alphabet).holds(byte));
            are_enough(&of_byte.map(|one| one.caller).collect())
        };
        let is_decoded = !["REQUEST_HEADERS", "REQUEST_COOKIES"].contains(&target.collection.as_str());
        let bytes = harmless().filter(|byte| has(*byte) && (is_decoded || *byte != PLUS));
        let bytes: Vec<u8> = bytes.collect();
        let alphabet = Alphabet::of(&bytes);
        let fits = |one: &&ValueShape| alphabet.bits() | Alphabet::read(one.alphabet).bits() == alphabet.bits();
        let fitting: Vec<&ValueShape> = shapes.iter().filter(known).filter(fits).collect();
        let callers: BTreeSet<u64> = fitting.iter().map(|one| one.caller).collect();
        let are_most = |count: usize| count.saturating_mul(PARTS) >= shapes.len().saturating_mul(PARTS - 1);
        if bytes.is_empty() || !are_most(callers.len()) || !are_enough(&callers) {
            return None;
        }
        // A bound that fewer have reached is theirs alone.
        let mut by_length = fitting.clone();
        by_length.sort_by_key(|one| one.shortest);
        let shortest = reached(&by_length, &are_enough)?.shortest;
        by_length.sort_by_key(|one| std::cmp::Reverse(one.longest));
        let longest = reached(&by_length, &are_enough)?.longest;
        let is_always = |one: &&&ValueShape| one.shortest == longest && one.longest == longest;
        let (least, most) = match are_most(fitting.iter().filter(is_always).count()) {
            true => (longest, longest),
            false => (shortest.min(longest).div_ceil(2), longest.max(shortest).saturating_mul(2)),
        };
        Some(Self { alphabet, least: least.max(1), most: most.min(MAX_LENGTH) })
    }

    /// Whether a value is made of its characters. Its length does not count: an attack of the same characters may have any.
    pub(super) fn holds(&self, value: &[u8]) -> bool {
        value.iter().all(|byte| self.alphabet.holds(*byte))
    }

    /// The characters, as a class of a pattern has them.
    fn class(&self) -> String {
        let mut class = String::new();
        for (byte, range) in [(b'a', "a-z"), (b'A', "A-Z"), (b'0', "0-9")] {
            if self.alphabet.holds(byte) {
                class.push_str(range);
            }
        }
        for mark in [PLUS].iter().chain(MARKS).filter(|mark| self.alphabet.holds(**mark)) {
            match *mark {
                // It would be a range.
                b'-' => class.push_str("\\-"),
                mark => class.push(char::from(mark)),
            }
        }
        class
    }

    /// A pattern for the values, whole, and for none.
    pub(super) fn pattern_or_empty(&self) -> String {
        format!("\\A(?:[{}]{{{},{}}})?\\z", self.class(), self.least, self.most)
    }

    /// Whether they are made of letters, digits, `-` and `_` alone, with which no program is written.
    pub(super) fn is_plain(&self) -> bool {
        let plain = Alphabet::of(b"aA0-_").bits();
        self.alphabet.bits() | plain == plain
    }

    /// Whether they are digits alone.
    pub(super) fn is_number(&self) -> bool {
        self.alphabet == Alphabet::of(b"0")
    }

    /// Whether they are letters alone.
    pub(super) fn is_word(&self) -> bool {
        self.alphabet.bits() | Alphabet::of(b"aA").bits() == Alphabet::of(b"aA").bits()
    }

    /// Whether the values of a caller have it.
    pub(super) fn fits(&self, values: &ValueShape) -> bool {
        let alphabet = Alphabet::read(values.alphabet).bits();
        self.alphabet.bits() | alphabet == self.alphabet.bits() && values.longest <= self.most
    }

    /// A pattern for the values, whole.
    pub(super) fn pattern(&self) -> String {
        let (class, least, most) = (self.class(), self.least, self.most);
        match least == most {
            true => format!("\\A[{class}]{{{least}}}\\z"),
            false => format!("\\A[{class}]{{{least},{most}}}\\z"),
        }
    }

    /// What it is, for people.
    pub(super) fn described(&self) -> String {
        let length = match self.least == self.most {
            true => self.least.to_string(),
            false => format!("{} to {}", self.least, self.most),
        };
        format!("{length} of the characters {}", self.class().replace("\\-", "-"))
    }
}

/// All bytes that a shape may have, one of each kind.
fn harmless() -> impl Iterator<Item = u8> {
    b"aA0".iter().chain(&[PLUS]).chain(MARKS).copied()
}

/// The first of them up to which they are enough.
fn reached<'s>(shapes: &[&'s ValueShape], are_enough: impl Fn(&BTreeSet<u64>) -> bool) -> Option<&'s ValueShape> {
    let mut callers = BTreeSet::new();
    shapes.iter().copied().find(|one| callers.insert(one.caller) && are_enough(&callers))
}

/// Under what an exclusion holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) shape: Shape,
    /// The phase of the rule that is excluded: the exclusion has to come before it, and behind the values.
    pub(super) phase: u32,
}

impl Condition {
    /// The rule that keeps another one from an input whose value has the shape, with a switch as of [`super::exclusion::switched`]. `None` for
    /// other kinds of exclusions, and where the name of the input or the path cannot be written, or the input has no values with names.
    pub(super) fn written(&self, kind: ExclusionKind, place: &Place, id: u64, switch: Option<&str>) -> Option<String> {
        let input = place.target.written()?;
        let is_named = place.target.member.as_deref().is_some_and(|name| name != REST_OF_BODY);
        let is_value = ["ARGS", "ARGS_GET", "ARGS_POST", "REQUEST_HEADERS", "REQUEST_COOKIES"]
            .contains(&place.target.collection.as_str());
        let path = match kind {
            ExclusionKind::ScopedShape => Some(format!("REQUEST_FILENAME \"{}\"", condition(&place.path)?)),
            ExclusionKind::Shape => None,
            _ => return None,
        };
        if !is_named || !is_value {
            return None;
        }
        let switch = switch.map(|switch| format!("UNIQUE_ID \"@contains {switch}\""));
        // The name has to stand there once: an application may take another value of it than the one that has the shape.
        let value = [format!("&{input} \"@eq 1\""), format!("{input} \"@rx {}\"", self.shape.pattern())];
        let links: Vec<String> = switch.into_iter().chain(path).chain(value).collect();
        let last = links.len().saturating_sub(1);
        let head = format!("id:{id},phase:{},pass,nolog,t:none", self.phase.clamp(1, 2));
        let control = format!("ctl:ruleRemoveTargetById={};{input}", place.rule_id);
        let link = |(at, link): (usize, &String)| {
            let first = if at == 0 { head.as_str() } else { "t:none" };
            let then = if at == last { control.as_str() } else { "chain" };
            format!("SecRule {link} \"{first},{then}\"")
        };
        Some(links.iter().enumerate().map(link).collect::<Vec<_>>().join("\n"))
    }

    /// The exclusion; `None` as of [`Condition::written`].
    pub(super) fn exclusion(self, kind: ExclusionKind, place: &Place, id: u64) -> Option<Exclusion> {
        let Place { rule_id, target, path } = place;
        let (on, everywhere) = match kind {
            ExclusionKind::ScopedShape => (format!(" on {path}"), format!("in requests for {}", described(path))),
            _ => (String::new(), "on any path".to_owned()),
        };
        let described = self.shape.described();
        Some(Exclusion {
            kind,
            seclang: self.written(kind, place, id, None)?,
            title: format!("Rule {rule_id} without {target}{on} where its value is {described}"),
            reach: format!(
                "Rule {rule_id} does not look at {target} {everywhere} while the request has it once and its value is {described}; it still \
                 looks at every other value there, and at everything else.",
            ),
            condition: Some(self),
        })
    }
}

#[cfg(test)]
mod tests;
