//! `@rx` and `@rxGlobal`.
//!
//! Patterns are those of PCRE without Unicode: they match bytes, `.` matches a line feed too (DOTALL) and `^` and `$`
//! match at every line (MULTILINE), as in ModSecurity v3. Nearly every pattern runs on an engine that takes time linear
//! in the value. Lookaround, backreferences, atomic groups and possessive quantifiers need a backtracking engine: its
//! steps are limited, per search ([`BACKTRACK_LIMIT`]) and per transaction ([`BACKTRACK_BUDGET`]), and so is what it
//! looks at ([`BACKTRACK_INPUT_LIMIT`], [`BACKTRACK_SCAN_LIMIT`]).

mod backtracking;
mod class;
mod escape;
mod interned;
mod linear;
mod outline;
mod probe;
mod shape;
mod starts;
mod translate;

use std::sync::{Arc, Mutex, PoisonError};

use regex_automata::util::syntax::parse_with;

pub(super) use backtracking::Effort;
pub use backtracking::{BACKTRACK_BUDGET, BACKTRACK_INPUT_LIMIT, BACKTRACK_LIMIT, BACKTRACK_SCAN_LIMIT};
pub(crate) use class::ByteSet;

use backtracking::Backtracking;
use interned::SharedPattern;
use linear::Linear;

/// The pieces of [`Pattern::prepare`].
pub(super) const PIECES: usize = 1 + linear::PIECES;

pub(super) use linear::syntax;

use super::captures::{Captures, MAX_CAPTURES};
use super::identifier::MAX_CANDIDATES;
use super::{OperatorArgument, OperatorError, RUN};

/// How large a compiled pattern may be, in bytes: 8 MiB. The largest of the Core Rule Set takes a fifth of it.
pub const PATTERN_SIZE_LIMIT: usize = 8 << 20;

/// How much one pattern may cache of its lazily built automaton, in bytes: 1 MiB.
pub const PATTERN_CACHE_LIMIT: usize = 1 << 20;

/// How long a pattern may be that was expanded from macros, in bytes.
const EXPANDED_LIMIT: usize = 16 * 1024;

/// How many matches `@rxGlobal` looks at in one value.
const GLOBAL_MATCHES: usize = 1000;

/// Units of work for each byte of a pattern that is compiled for a request.
const COMPILED: u64 = 20_000;

/// Units of work for a pattern that can be read off the value.
const SHAPE: u64 = 120;

const LINEAR: &[u8] = b"linear";
const BACKTRACKING: &[u8] = b"backtracking";

/// The spans of the groups of one match.
type Spans = [Option<(usize, usize)>; MAX_CAPTURES];

/// The pattern of a checked argument, if it runs on the linear engine.
pub(super) fn linear(argument: &OperatorArgument) -> Option<&str> {
    match argument.phrases.as_slice() {
        [engine, pattern] if engine == LINEAR => std::str::from_utf8(pattern).ok(),
        _ => None,
    }
}

/// How many bytes a value has at least that the pattern of a checked argument matches; 0 if that is not known.
pub(crate) fn shortest_match(argument: &OperatorArgument) -> usize {
    let parsed = linear(argument).and_then(|pattern| parse_with(pattern, &syntax()).ok());
    parsed.and_then(|hir| hir.properties().minimum_len()).unwrap_or(0)
}

/// A compiled pattern.
#[derive(Debug)]
struct Compiled {
    engine: Engine,
    /// Whether it has a `^`.
    line_starts: bool,
}

#[derive(Debug)]
enum Engine {
    Linear(Box<Linear>),
    Backtracking(Box<Backtracking>),
}

/// Checks a pattern and rewrites it: the first phrase names the engine, the second is the pattern in its dialect.
pub(super) fn check(pattern: &[u8]) -> Result<Vec<Vec<u8>>, OperatorError> {
    let translated = translate::translate(pattern).map_err(|(message, offset)| OperatorError {
        message: format!("the regular expression is invalid: {message}"),
        help: None,
        offset: Some(offset),
    })?;
    Compiled::new(&translated.pattern, translated.backtracking).map_err(|mut error| {
        // Errors of the engines are about the rewritten pattern.
        error.offset = error.offset.map(|at| translated.origins.get(at).copied().unwrap_or(pattern.len()));
        error
    })?;
    let engine = if translated.backtracking { BACKTRACKING } else { LINEAR };
    Ok(vec![engine.to_vec(), translated.pattern.into_bytes()])
}

impl Compiled {
    fn new(pattern: &str, backtracking: bool) -> Result<Self, OperatorError> {
        let engine = match backtracking {
            true => Engine::Backtracking(Box::new(Backtracking::new(pattern)?)),
            false => Engine::Linear(Box::new(Linear::new(pattern)?)),
        };
        // In a rewritten pattern only assertions and negated classes have this character.
        let line_starts = pattern.starts_with('^')
            || pattern.as_bytes().windows(2).any(|pair| matches!(*pair, [before, b'^'] if before != b'['));
        Ok(Self { engine, line_starts })
    }

    /// The spans of the first match from `at` on. What it costs is taken from `effort`.
    fn search(&self, value: &[u8], at: usize, groups: bool, effort: &mut Effort) -> Option<Spans> {
        let spans = self.engine.search(value, at, groups, effort)?;
        // In PCRE no line starts after a line feed that ends the value; in these engines one does.
        if self.line_starts && value.ends_with(b"\n") {
            let end = Some((value.len(), value.len()));
            if groups {
                return (spans.first() != Some(&end)).then_some(spans);
            }
            let whole = self.engine.search(value, at, true, effort)?;
            return (whole.first() != Some(&end)).then_some(whole);
        }
        Some(spans)
    }
}

impl Engine {
    fn search(&self, value: &[u8], at: usize, groups: bool, effort: &mut Effort) -> Option<Spans> {
        match self {
            Self::Linear(regex) => regex.search(value, at, groups, effort),
            Self::Backtracking(regex) => regex.search(value, at, effort),
        }
    }
}

fn too_large() -> OperatorError {
    OperatorError {
        message: format!("the regular expression is larger than {} MiB once compiled", PATTERN_SIZE_LIMIT >> 20),
        help: Some("Lower its repetition counts, or split it over several rules.".into()),
        offset: None,
    }
}

/// A text and what it was compiled to, if it can be.
type Expanded = (Vec<u8>, Arc<Option<Compiled>>);

/// The pattern of an operator.
#[derive(Debug)]
pub(super) struct Pattern {
    shared: Arc<SharedPattern>,
    /// The last pattern expanded from macros: most often it is the same for every request.
    expanded: Mutex<Option<Expanded>>,
}

impl Pattern {
    /// The pattern of a checked argument; an argument without phrases is rewritten again.
    pub(super) fn build(argument: &OperatorArgument, expands: bool) -> Result<Self, String> {
        let shared = match argument.phrases.as_slice() {
            [] if expands => SharedPattern::of("", false),
            [] => {
                let translated = translate::translate(&argument.text).map_err(|(message, _)| message.to_owned())?;
                SharedPattern::of(&translated.pattern, translated.backtracking)
            }
            [engine, pattern] if engine == LINEAR || engine == BACKTRACKING => {
                let pattern = std::str::from_utf8(pattern).map_err(|_| "the stored pattern is not text")?;
                SharedPattern::of(pattern, engine == BACKTRACKING)
            }
            _ => return Err("the stored pattern has no known engine".into()),
        };
        Ok(Self { shared, expanded: Mutex::new(None) })
    }

    /// Builds a piece of what the first values that are searched would have to wait for, of [`PIECES`]; `false` if there is
    /// nothing to build, or another rule set has built it. A pattern with macros is known with its first request.
    pub(super) fn prepare(&self, piece: usize) -> bool {
        if self.shared.text.is_empty() {
            return false;
        }
        let Some(piece) = piece.checked_sub(1) else {
            let is_new = !self.shared.is_compiled();
            self.shared.shape();
            return self.shared.compiled().is_some() && is_new;
        };
        match self.shared.compiled() {
            Some(Compiled { engine: Engine::Linear(linear), .. }) => linear.prepare(piece),
            _ => false,
        }
    }

    /// The memory of its automata that grows with the values that were searched, in bytes.
    pub(super) fn cached(&self) -> usize {
        self.linear().map_or(0, Linear::cached)
    }

    /// Releases that memory: the automata begin anew.
    pub(super) fn forget(&self) {
        if let Some(linear) = self.linear() {
            linear.forget();
        }
    }

    /// The linear engine, once it is compiled: of a backtracking pattern, the one that searches for its outline.
    fn linear(&self) -> Option<&Linear> {
        match &self.shared.compiled_before()?.engine {
            Engine::Linear(linear) => Some(linear),
            Engine::Backtracking(backtracking) => backtracking.outline(),
        }
    }

    /// Whether the pattern needs the backtracking engine.
    pub(super) fn is_backtracking(&self) -> bool {
        self.shared.backtracking
    }

    /// Searches a value. A pattern expanded from macros that cannot be compiled matches nothing.
    pub(super) fn evaluate(
        &self,
        value: &[u8],
        expanded: Option<&[u8]>,
        global: bool,
        captures: &mut Captures,
    ) -> bool {
        if expanded.is_none()
            && let Some(found) = self.shared.shape().search(value)
        {
            captures.charge(RUN + SHAPE);
            if let Some(end) = found {
                captures.set(0, value.get(..end).unwrap_or_default());
            }
            return found.is_some();
        }
        let compiled;
        let pattern = match expanded {
            Some(expanded) => {
                compiled = self.expanded(expanded, captures);
                compiled.as_ref().as_ref()
            }
            None => self.shared.compiled(),
        };
        let Some(pattern) = pattern else {
            captures.set_limit_exceeded();
            return false;
        };
        let mut effort = captures.effort();
        effort.charge(RUN);
        let groups = captures.is_wanted();
        let mut found = pattern.search(value, 0, groups, &mut effort);
        let mut spans = found;
        if global && groups {
            // The captures of later matches replace those of earlier ones.
            for _ in 0..GLOBAL_MATCHES {
                let Some(latest) = found else { break };
                if let Some(spans) = &mut spans {
                    for (span, new) in spans.iter_mut().zip(latest) {
                        *span = new.or(*span);
                    }
                }
                let Some(Some((start, end))) = latest.first().copied() else {
                    break;
                };
                let next = if end > start { end } else { end + 1 };
                found = if next > value.len() { None } else { pattern.search(value, next, true, &mut effort) };
            }
        }
        captures.spend(effort);
        let Some(spans) = spans else { return false };
        for (index, span) in spans.into_iter().enumerate() {
            if let Some((start, end)) = span {
                captures.set(index, value.get(start..end).unwrap_or_default());
            }
        }
        true
    }

    /// Whether any match is confirmed by `verify`; captures the first that is.
    pub(super) fn confirm(&self, value: &[u8], verify: impl Fn(&[u8]) -> bool, captures: &mut Captures) -> bool {
        let Some(pattern) = self.shared.compiled() else {
            captures.set_limit_exceeded();
            return false;
        };
        let mut effort = captures.effort();
        effort.charge(RUN);
        let (mut at, mut candidates) = (0, 0);
        loop {
            if candidates == MAX_CANDIDATES {
                captures.set_limit_exceeded();
                break;
            }
            candidates += 1;
            let found = pattern.search(value, at, true, &mut effort);
            let Some(Some((start, end))) = found.and_then(|spans| spans.first().copied()) else {
                break;
            };
            let candidate = value.get(start..end).unwrap_or_default();
            if verify(candidate) {
                captures.spend(effort);
                captures.set(0, candidate);
                return true;
            }
            // A longer run of digits may hold a valid number that starts later.
            at = start + 1;
            if at > value.len() {
                break;
            }
        }
        captures.spend(effort);
        false
    }

    fn expanded(&self, expanded: &[u8], captures: &mut Captures) -> Arc<Option<Compiled>> {
        let mut last = self.expanded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, compiled)) = last.as_ref()
            && text == expanded
        {
            return Arc::clone(compiled);
        }
        captures.charge(COMPILED.saturating_mul(u64::try_from(expanded.len()).unwrap_or(u64::MAX)));
        let compiled = (expanded.len() <= EXPANDED_LIMIT)
            .then(|| translate::translate(expanded).ok())
            .flatten()
            .and_then(|translated| Compiled::new(&translated.pattern, translated.backtracking).ok());
        let compiled = Arc::new(compiled);
        *last = Some((expanded.to_vec(), Arc::clone(&compiled)));
        compiled
    }
}
