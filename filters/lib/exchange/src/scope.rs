//! Which paths a step acts on.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::PathReadings;

/// The largest automaton that one pattern may grow to, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// Include and exclude patterns on the path without its query. A pattern finds its match anywhere: anchor it with `^`
/// and `$` where that matters. An exclusion wins over an inclusion; with no inclusion at all every path is included.
///
/// A path that backends may read in several ways is included where one of the readings is, and excluded only where all
/// of them are: what a pattern leaves out of inspection must not depend on how the backend decodes. For the same reason
/// inclusions hold in any case of ASCII letters, exclusions only in theirs.
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
        // Backends that do not tell cases apart take `/API/` for `/api/`. A class that is negated covers less without cases,
        // so each pattern counts as it is written as well.
        let any_case: Vec<String> = include.iter().map(|pattern| format!("(?i){pattern}")).collect();
        compile(include, PATTERN_SIZE)?;
        let include = compile(&[include, &any_case].concat(), 4 * PATTERN_SIZE)?;
        Ok(Self { include, exclude: compile(exclude, PATTERN_SIZE)? })
    }

    /// It has no patterns: the step acts on every path.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }

    /// Whether the step acts on a path.
    #[must_use]
    pub fn covers(&self, path: &PathReadings<'_>) -> bool {
        self.include.as_ref().is_none_or(|include| path.may_match(|reading| include.is_match(reading)))
            && !self.exclude.as_ref().is_some_and(|exclude| path.surely_matches(|reading| exclude.is_match(reading)))
    }

    /// Whether the step acts on a path whatever a backend takes it for: what makes a check milder must not depend on that.
    #[must_use]
    pub fn surely_covers(&self, path: &PathReadings<'_>) -> bool {
        self.include.as_ref().is_none_or(|include| path.surely_matches(|reading| include.is_match(reading)))
            && !self.exclude.as_ref().is_some_and(|exclude| path.may_match(|reading| exclude.is_match(reading)))
    }
}

fn compile(patterns: &[String], size: usize) -> Result<Option<Regex>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    // One by one first, so that an error can name its pattern.
    for pattern in patterns {
        if let Err(error) = build(&[pattern.as_str()], size) {
            return Err(match error.syntax_error() {
                Some(syntax) => format!("the pattern `{pattern}` is no regular expression: {syntax}"),
                None => format!("the pattern `{pattern}` is too large: {error}"),
            });
        }
    }
    let all: Vec<&str> = patterns.iter().map(String::as_str).collect();
    build(&all, size).map(Some).map_err(|error| format!("the patterns are too large together: {error}"))
}

fn build(patterns: &[&str], size: usize) -> Result<Regex, Box<regex_automata::meta::BuildError>> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(size)))
        .build_many(patterns)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(include: &[&str], exclude: &[&str]) -> Scope {
        let owned = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>();
        Scope::new(&owned(include), &owned(exclude)).unwrap()
    }

    fn covers(scope: &Scope, path: &str) -> bool {
        scope.covers(&PathReadings::of(path.as_bytes()))
    }

    #[test]
    fn exclusions_win_and_nothing_included_means_everything() {
        assert!(covers(&scope(&[], &[]), "/"));
        assert!(covers(&scope(&["^/api/"], &[]), "/api/x"));
        assert!(covers(&scope(&["^/api/"], &[]), "/API/x") && covers(&scope(&["^/[^A]"], &[]), "/a"));
        assert!(covers(&scope(&[], &["^/public/"]), "/Public/x"));
        assert!(!covers(&scope(&["^/api/"], &[]), "/v1/api/x"));
        assert!(!covers(&scope(&["^/api/"], &["^/api/health$"]), "/api/health"));
    }

    #[test]
    fn paths_are_bytes() {
        assert!(scope(&[r"^/.\xff$"], &[]).covers(&PathReadings::of(b"/a\xff")));
    }

    #[test]
    fn an_exclusion_needs_every_reading() {
        let public = scope(&[], &["^/public/", r"\.css$"]);
        for excluded in
            ["/public/a", "/public/a%20b", "/public/%61", "/%70ublic/a", "/public/a;v=1", "/public/100%25", "/a.css"]
        {
            assert!(!covers(&public, excluded), "{excluded}");
        }
        let inspected = [
            "/public/..%2fadmin",
            "/public/..%5Cadmin",
            "/public/..\\admin",
            "/public/..%252fadmin",
            "/public/%2e%2e/admin",
            "/public/..;/admin",
            "/public//../admin",
            "/public/..%00/admin",
            "/public/..#/admin",
            "http://x/public/a",
            "/admin;x.css",
            "/admin%3b.css",
            "/admin%3F.css",
            "/admin%23.css",
            "/public/../admin",
            "/public/.%2e/admin",
        ];
        for path in inspected {
            assert!(covers(&public, path), "{path}");
        }
        // Patterns may be written with escapes or without.
        for pattern in ["^/a%20b/", "^/a b/"] {
            assert!(!covers(&scope(&[], &[pattern]), "/a%20b/c"), "{pattern}");
        }
        assert!(covers(&scope(&[], &["^/[^@]"]), "/%40admin"));
    }

    #[test]
    fn an_inclusion_needs_one_reading() {
        let admin = scope(&["^/admin/"], &[]);
        for included in
            ["/admin/x", "/%61dmin/x", "/admin;x/y", "//admin/x", "/x/..%2fadmin/y", "/%2561dmin/x", "\\admin/x"]
        {
            assert!(covers(&admin, included), "{included}");
        }
        assert!(!covers(&admin, "/public/a%20b;c"));
        assert!(covers(&scope(&["^/@x"], &[]), "/%40x"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = Scope::new(&["ok".into(), "(".into()], &[]).unwrap_err();
        assert!(error.contains("`(`"), "{error}");
    }
}
