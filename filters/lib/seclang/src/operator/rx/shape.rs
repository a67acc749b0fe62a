//! Patterns that need no automaton.
//!
//! Rules are full of `^$`, `^(?:GET|HEAD)$`, `^.*$` and `^name_`: what these match can be read off the value. `^` and
//! `$` match at every line, so a value of several lines is left to the pattern itself.

use regex_automata::util::syntax;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// How many texts a pattern may stand for.
const TEXTS: usize = 64;
/// How long a pattern may be to be looked at.
const LENGTH: usize = 512;

/// A byte, and what else it may be: the other case of a letter, or itself.
type Text = Vec<[u8; 2]>;

/// What a pattern comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// A pattern.
    Pattern,
    /// `^.*$`.
    Anything,
    /// One of a few texts, whole.
    Whole(Vec<Text>),
    /// A value begins with one of a few texts.
    Start(Vec<Text>),
}

impl Shape {
    /// The shape of a pattern of the linear engine.
    pub(super) fn of(pattern: &str) -> Self {
        let candidate = pattern.len() <= LENGTH && (pattern.starts_with('^') || pattern.starts_with("(?i)^"));
        let hir = candidate.then(|| syntax::parse_with(pattern, &super::syntax()).ok()).flatten();
        hir.and_then(|hir| shape(&hir)).unwrap_or(Self::Pattern)
    }

    /// Where the match ends that begins with the value: `None` if only the pattern can decide, `Some(None)` if there is
    /// no match.
    pub(super) fn search(&self, value: &[u8]) -> Option<Option<usize>> {
        match self {
            Self::Pattern => None,
            Self::Anything => Some(Some(value.len())),
            _ if memchr::memchr(b'\n', value).is_some() => None,
            Self::Whole(texts) => {
                let same = texts.iter().any(|text| text.len() == value.len() && begins(value, text));
                Some(same.then_some(value.len()))
            }
            Self::Start(texts) => Some(texts.iter().find(|text| begins(value, text)).map(Vec::len)),
        }
    }
}

fn begins(value: &[u8], text: &[[u8; 2]]) -> bool {
    value.len() >= text.len() && value.iter().zip(text).all(|(byte, [one, other])| byte == one || byte == other)
}

fn shape(hir: &Hir) -> Option<Shape> {
    // Groups would have to be found.
    if hir.properties().explicit_captures_len() > 0 {
        return None;
    }
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let (first, rest) = parts.split_first()?;
    if !matches!(first.kind(), HirKind::Look(Look::StartLF)) {
        return None;
    }
    let Some((last, middle)) = rest.split_last().filter(|(last, _)| matches!(last.kind(), HirKind::Look(Look::EndLF)))
    else {
        return Some(Shape::Start(texts_of(rest)?));
    };
    debug_assert!(matches!(last.kind(), HirKind::Look(_)));
    match middle {
        [only] if is_anything(only) => Some(Shape::Anything),
        middle => Some(Shape::Whole(texts_of(middle)?)),
    }
}

fn is_anything(hir: &Hir) -> bool {
    let HirKind::Repetition(repetition) = hir.kind() else { return false };
    let HirKind::Class(Class::Bytes(class)) = repetition.sub.kind() else { return false };
    let all = class.ranges().first().is_some_and(|range| (range.start(), range.end()) == (0, 255));
    (repetition.min, repetition.max, repetition.greedy, all) == (0, None, true, true)
}

fn texts_of(parts: &[Hir]) -> Option<Vec<Text>> {
    parts.iter().try_fold(vec![Text::new()], |all, part| {
        let more = texts(part)?;
        (all.len() * more.len() <= TEXTS).then(|| {
            let joined = all.iter().flat_map(|text| more.iter().map(move |more| [text.as_slice(), more].concat()));
            joined.collect()
        })
    })
}

fn texts(hir: &Hir) -> Option<Vec<Text>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![Text::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.iter().map(|byte| [*byte; 2]).collect()]),
        HirKind::Class(Class::Bytes(class)) => {
            let bytes: Vec<u8> = class.iter().flat_map(|range| range.start()..=range.end()).take(TEXTS + 1).collect();
            match *bytes.as_slice() {
                [upper, lower] if upper.to_ascii_lowercase() == lower => Some(vec![vec![[upper, lower]]]),
                _ => (bytes.len() <= TEXTS).then(|| bytes.into_iter().map(|byte| vec![[byte; 2]]).collect()),
            }
        }
        HirKind::Concat(parts) => texts_of(parts),
        HirKind::Alternation(branches) => {
            let all = branches.iter().map(texts).collect::<Option<Vec<_>>>()?.concat();
            (all.len() <= TEXTS).then_some(all)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_simple_patterns() {
        assert_eq!(Shape::of("^.*$"), Shape::Anything);
        assert_eq!(Shape::of("^$"), Shape::Whole(vec![vec![]]));
        for pattern in ["a", "^a+$", "^.*?$", "^(a)$", "a$", "^[^a]$", "^a|b$", "(?-m)^a", "^a\\b"] {
            assert_eq!(Shape::of(pattern), Shape::Pattern, "{pattern}");
        }
    }

    #[test]
    fn answers_as_the_pattern_does() {
        let patterns =
            ["^$", "^(?:GET|HEAD)$", "(?i)^(?:get|he[ad]d)$", "(?i)^name_", "^a", "^.*$", "^(?:a|ab)", "^a[0-2]$"];
        let values =
            ["", "GET", "get", "HEAD", "HEDD", "GETS", "name_x", "NAME_", "nam", "a", "ab", "ba", "a1", "a3", "x"];
        for pattern in patterns {
            let regex = regex_automata::meta::Regex::builder().syntax(super::super::syntax()).build(pattern).unwrap();
            let shape = Shape::of(pattern);
            assert_ne!(shape, Shape::Pattern, "{pattern}");
            for value in values {
                let expected = regex.find(value).map(|found| (found.start(), found.end()));
                let found = shape.search(value.as_bytes()).expect(pattern).map(|end| (0, end));
                assert_eq!(found, expected, "{pattern} on {value:?}");
            }
            assert!(shape == Shape::Anything || shape.search(b"x\nGET").is_none(), "{pattern}");
        }
    }
}
