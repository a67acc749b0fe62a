//! Extracts the prefilter of a pattern.
//!
//! Walks the parsed pattern from the leaves up. Keeps for each part: the strings it matches, if they are few; the most
//! selective set of literals of which every match contains one; and sets of bytes of each of which every match contains
//! one.

use std::collections::BTreeSet;

use regex_automata::util::syntax;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::super::rx::{self, ByteSet};
use super::{LITERAL_LENGTH, Prefilter, frequency, share};

/// How many strings a part may stand for.
const STRINGS: usize = 128;
/// How many bytes of one class are spelled out as strings.
const SPELLED: usize = 12;
/// How many literals a prefilter may have.
const LITERALS: usize = 1024;
/// How many sets of bytes a prefilter keeps, the rarest.
const SETS: usize = 3;
/// How common a set may be to be worth a test.
const COMMON: f64 = 0.25;

type Strings = BTreeSet<Vec<u8>>;

/// What every match of a part of a pattern contains.
#[derive(Default)]
struct Part {
    /// All strings that it matches, in lower case; `None` if they are too many.
    exact: Option<Strings>,
    /// One of these occurs in every match; none is empty.
    any: Option<Strings>,
    /// A byte of each of these occurs in every match.
    sets: Vec<ByteSet>,
}

/// The prefilter of a pattern of the linear engine; `None` if it cannot be parsed.
pub(super) fn prefilter(pattern: &str) -> Option<Prefilter> {
    let hir = syntax::parse_with(pattern, &rx::syntax()).ok()?;
    let min_length = hir.properties().minimum_len().and_then(|length| u32::try_from(length).ok()).unwrap_or(0);
    let part = walk(&hir);
    let mut literals: Vec<Vec<u8>> = part.best().map(|strings| strings.into_iter().collect()).unwrap_or_default();
    let mut sets = part.sets;
    if literals.iter().all(|literal| literal.len() == 1) && !literals.is_empty() {
        // Single bytes are a set like the others: keep the rarest sets.
        let bytes = literals.drain(..).flatten().flat_map(|byte| [byte, byte.to_ascii_uppercase()]);
        sets.push(ByteSet::of_bytes(&bytes.collect::<Vec<u8>>()));
        sets = rarest(sets);
    }
    Some(Prefilter { min_length, literals, sets })
}

impl Part {
    /// The more selective of the two sets of literals.
    fn best(&self) -> Option<Strings> {
        sharper(self.exact.as_ref().and_then(usable), self.any.clone())
    }
}

fn walk(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part { exact: Some(empty()), ..Part::default() },
        HirKind::Literal(literal) => {
            let sets = literal.0.iter().map(|&byte| single(byte)).collect();
            let exact = (literal.0.len() <= LITERAL_LENGTH).then(|| [literal.0.to_ascii_lowercase()].into());
            let any = exact.is_none().then(|| [super::literal(&literal.0)].into());
            Part { exact, any, sets: rarest(sets) }
        }
        HirKind::Class(class) => of_class(class),
        HirKind::Capture(capture) => walk(&capture.sub),
        HirKind::Repetition(repetition) => of_repetition(repetition),
        HirKind::Concat(parts) => of_sequence(parts.iter().map(walk)),
        HirKind::Alternation(branches) => of_branches(branches),
    }
}

fn of_class(class: &Class) -> Part {
    let mut set = ByteSet::default();
    match class {
        Class::Bytes(class) => class.iter().for_each(|range| set.insert_range(range.start(), range.end())),
        Class::Unicode(class) => {
            for range in class.iter() {
                match (u8::try_from(range.start()), u8::try_from(range.end())) {
                    (Ok(start), Ok(end)) if end.is_ascii() => set.insert_range(start, end),
                    _ => return Part::default(),
                }
            }
        }
    }
    let folded: BTreeSet<u8> =
        (0..=255).filter(|&byte| set.contains(byte)).map(|byte| byte.to_ascii_lowercase()).collect();
    let spelled = (1..=SPELLED).contains(&folded.len());
    let exact = spelled.then(|| folded.into_iter().map(|byte| vec![byte]).collect());
    Part { exact, any: None, sets: rarest(vec![set]) }
}

fn of_repetition(repetition: &Repetition) -> Part {
    let sub = walk(&repetition.sub);
    let (min, max) = (repetition.min, repetition.max);
    if min == 0 {
        let exact = sub.exact.filter(|exact| max == Some(1) && exact.len() < STRINGS).map(|mut exact| {
            exact.insert(Vec::new());
            exact
        });
        return Part { exact, ..Part::default() };
    }
    // The first few rounds; what follows them only adds.
    let rounds = min.min(4);
    let mut power = sub.exact.as_ref().map(|_| empty());
    for _ in 0..rounds {
        power = power.and_then(|power| crossed(&power, sub.exact.as_ref()?));
    }
    let any = sharper(sharper(power.as_ref().and_then(usable), sub.exact.as_ref().and_then(usable)), sub.any);
    let exact = power.filter(|_| max == Some(min) && rounds == min);
    Part { exact, any, sets: sub.sets }
}

fn of_sequence(parts: impl Iterator<Item = Part>) -> Part {
    let mut run = empty();
    let mut whole = true;
    let mut any: Option<Strings> = None;
    let mut sets = Vec::new();
    for part in parts {
        any = sharper(any, part.best());
        sets.extend(part.sets);
        let Some(exact) = part.exact else {
            (run, whole) = (empty(), false);
            continue;
        };
        match crossed(&run, &exact) {
            Some(longer) => run = longer,
            None => (run, whole) = (exact, false),
        }
        any = sharper(any, usable(&run));
    }
    Part { exact: whole.then_some(run), any, sets: rarest(sets) }
}

fn of_branches(branches: &[Hir]) -> Part {
    let parts: Vec<Part> = branches.iter().map(walk).collect();
    let mut exact = Some(Strings::new());
    let mut any = Some(Strings::new());
    let mut set = Some(ByteSet::default());
    for part in &parts {
        exact = exact.zip(part.exact.as_ref()).map(|(mut all, more)| {
            all.extend(more.iter().cloned());
            all
        });
        any = any.zip(part.best()).map(|(mut all, more)| {
            all.extend(more);
            all
        });
        set = set.zip(part.sets.first()).map(|(mut all, more)| {
            all.add(*more);
            all
        });
    }
    Part {
        exact: exact.filter(|exact| exact.len() <= STRINGS),
        any: any.filter(|any| any.len() <= LITERALS),
        sets: rarest(set.into_iter().collect()),
    }
}

fn empty() -> Strings {
    [Vec::new()].into()
}

fn single(byte: u8) -> ByteSet {
    let mut set = ByteSet::default();
    set.insert(byte);
    set
}

/// Every string of the one followed by every string of the other, unless that is too much.
fn crossed(left: &Strings, right: &Strings) -> Option<Strings> {
    let longest = |strings: &Strings| strings.iter().map(Vec::len).max().unwrap_or(0);
    if left.len() * right.len() > STRINGS || longest(left) + longest(right) > LITERAL_LENGTH {
        return None;
    }
    Some(left.iter().flat_map(|start| right.iter().map(move |end| [start.as_slice(), end].concat())).collect())
}

/// The strings as literals: none empty, and none that holds another.
fn usable(strings: &Strings) -> Option<Strings> {
    if strings.is_empty() || strings.iter().any(Vec::is_empty) {
        return None;
    }
    let holds_other = |string: &Vec<u8>| {
        strings.iter().any(|other| other.len() < string.len() && memchr::memmem::find(string, other).is_some())
    };
    Some(strings.iter().filter(|string| !holds_other(string)).cloned().collect())
}

fn sharper(one: Option<Strings>, other: Option<Strings>) -> Option<Strings> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if cost(&other) < cost(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// How often one of the literals may be expected at one place of a value.
fn cost(strings: &Strings) -> f64 {
    strings.iter().map(|string| string.iter().map(|&byte| frequency(byte)).product::<f64>()).sum()
}

/// The rarest sets, each once, without those that are met everywhere.
fn rarest(mut sets: Vec<ByteSet>) -> Vec<ByteSet> {
    sets.retain(|set| share(set) < COMMON);
    sets.sort_by(|one, other| share(one).total_cmp(&share(other)));
    sets.dedup();
    sets.truncate(SETS);
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(pattern: &str) -> Vec<String> {
        let prefilter = prefilter(pattern).unwrap();
        prefilter.literals.into_iter().map(|literal| String::from_utf8(literal).unwrap()).collect()
    }

    #[test]
    fn finds_what_every_match_holds() {
        for (pattern, expected) in [
            ("(?i)union\\s+SELECT", &["select"][..]),
            ("a?bcd", &["bcd"]),
            ("(?:foo|bar)\\d*", &["bar", "foo"]),
            ("x(?:ab|abc)y", &["xabcy", "xaby"]),
            ("(?:foo|b*)", &[]),
            ("^$", &[]),
            ("\\bexec\\(", &["exec("]),
            ("(?:ab){3}", &["ababab"]),
            ("[<>]", &[]),
        ] {
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn finds_lengths_and_sets() {
        assert_eq!(prefilter("[<>]").unwrap().sets, [ByteSet::of_bytes(b"<>")]);
        let found = prefilter("[;|][a-z]+[{(]").unwrap();
        assert_eq!(found.min_length, 3);
        assert!(found.sets.iter().any(|set| set.contains(b'{') && set.contains(b'(')));
        assert!(found.sets.iter().all(|set| !set.contains(b'a')));
    }
}
