//! Which paths a step acts on.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

/// The largest automaton that one pattern may grow to, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// Include and exclude patterns on the path without its query. A pattern finds its match anywhere: anchor it with `^`
/// and `$` where that matters. An exclusion wins over an inclusion; with no inclusion at all every path is included.
#[derive(Debug, Default)]
pub struct Scope {
    include: Option<Regex>,
    exclude: Option<Regex>,
}

impl Scope {
    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// The pattern that does not compile, and why.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, String> {
        Ok(Self { include: compile(include)?, exclude: compile(exclude)? })
    }

    /// Whether the step acts on `path`.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(path))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(path))
    }
}

fn compile(patterns: &[String]) -> Result<Option<Regex>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    // One by one first, so that an error can name its pattern.
    for pattern in patterns {
        if let Err(error) = build(&[pattern.as_str()]) {
            return Err(match error.syntax_error() {
                Some(syntax) => format!("the pattern `{pattern}` is no regular expression: {syntax}"),
                None => format!("the pattern `{pattern}` is too large: {error}"),
            });
        }
    }
    let all: Vec<&str> = patterns.iter().map(String::as_str).collect();
    build(&all).map(Some).map_err(|error| format!("the patterns are too large together: {error}"))
}

fn build(patterns: &[&str]) -> Result<Regex, Box<regex_automata::meta::BuildError>> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(PATTERN_SIZE)))
        .build_many(patterns)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn scope(include: &[&str], exclude: &[&str]) -> Scope {
        let owned = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>();
        Scope::new(&owned(include), &owned(exclude)).unwrap()
    }

    #[test]
    fn exclusions_win_and_nothing_included_means_everything() {
        assert!(scope(&[], &[]).covers(b"/"));
        assert!(scope(&["^/api/"], &[]).covers(b"/api/x"));
        assert!(!scope(&["^/api/"], &[]).covers(b"/v1/api/x"));
        assert!(!scope(&["^/api/"], &["^/api/health$"]).covers(b"/api/health"));
    }

    #[test]
    fn paths_are_bytes() {
        assert!(scope(&[r"^/.\xff$"], &[]).covers(b"/a\xff"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = Scope::new(&["ok".into(), "(".into()], &[]).unwrap_err();
        assert!(error.contains("`(`"), "{error}");
    }
}
