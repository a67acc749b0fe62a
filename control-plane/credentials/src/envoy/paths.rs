//! Matches of paths in Envoy as regular expressions.

use super::node::{Node, Notes, short};
use crate::facts::{MAX_TEXT, compiles};

/// Paths that match something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    /// As a regular expression on the path.
    pub(super) regex: String,
    /// What all of them begin with, in this case of letters.
    prefix: String,
    /// Every path that begins so is one of them.
    whole: bool,
}

// === impl PathPattern ===

impl PathPattern {
    pub(super) fn prefix(text: &str, case: bool) -> PathPattern {
        let regex = format!("{}^{}", if case { "" } else { "(?i)" }, escaped(text));
        PathPattern { regex, prefix: if case { text.to_owned() } else { String::new() }, whole: case }
    }

    pub(super) fn exact(text: &str, case: bool) -> PathPattern {
        let PathPattern { regex, prefix, .. } = PathPattern::prefix(text, case);
        PathPattern { regex: format!("{regex}$"), prefix, whole: false }
    }

    /// A path and all below it.
    pub(super) fn separated(text: &str, case: bool) -> PathPattern {
        let PathPattern { regex, prefix, .. } = PathPattern::prefix(text, case);
        PathPattern { regex: format!("{regex}(?:/|$)"), prefix, whole: false }
    }

    pub(super) fn suffix(text: &str, case: bool) -> PathPattern {
        let regex = format!("{}{}$", if case { "" } else { "(?i)" }, escaped(text));
        PathPattern { regex, prefix: String::new(), whole: false }
    }

    pub(super) fn contains(text: &str, case: bool) -> PathPattern {
        let regex = format!("{}{}", if case { "" } else { "(?i)" }, escaped(text));
        PathPattern { regex, prefix: String::new(), whole: false }
    }

    /// A regular expression that has to match the whole path.
    fn regex(text: &str) -> PathPattern {
        let literal: String = text
            .strip_prefix('^')
            .unwrap_or(text)
            .chars()
            .take_while(|character| character.is_ascii_alphanumeric() || "/-_".contains(*character))
            .collect();
        // What a quantifier makes optional is no beginning, nor is anything before an alternative.
        let next = text.strip_prefix('^').unwrap_or(text).as_bytes().get(literal.len());
        let mut prefix = if text.contains('|') { String::new() } else { literal };
        if matches!(next, Some(b'?' | b'*' | b'{')) {
            prefix.pop();
        }
        PathPattern { regex: format!("^(?:{text})$"), prefix, whole: false }
    }

    /// Whether every path is one of them.
    pub(super) fn is_everything(&self) -> bool {
        self.whole && matches!(self.prefix.as_str(), "" | "/")
    }

    /// Whether all paths of another are among them.
    pub(super) fn covers(&self, other: &PathPattern) -> bool {
        self == other || (self.whole && other.prefix.starts_with(&self.prefix))
    }

    /// Whether no path is one of both.
    pub(super) fn is_apart_from(&self, other: &PathPattern) -> bool {
        !self.prefix.starts_with(&other.prefix) && !other.prefix.starts_with(&self.prefix)
    }

    /// The longest prefix of a route's `paths` that has all of them.
    pub(super) fn route_prefix(&self) -> &str {
        if self.prefix.starts_with('/') { &self.prefix } else { "/" }
    }
}

/// A regular expression for exactly this text.
fn escaped(text: &str) -> String {
    let mut regex = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            regex.push('\\');
        }
        if character.is_ascii() {
            regex.push(character);
        } else {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).bytes();
            regex.extend(bytes.map(|byte| format!("\\x{byte:02X}")));
        }
    }
    regex
}

/// The pattern of an `envoy.type.matcher.v3.RegexMatcher`; a fault where it cannot be used.
pub(super) fn regex_matcher(matcher: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    let text = matcher.text("regex", notes)?;
    checked(PathPattern::regex(text), matcher, notes)
}

fn checked(pattern: PathPattern, node: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    if pattern.regex.len() > MAX_TEXT {
        notes.fault(node, format!("the pattern has more than {MAX_TEXT} bytes"));
        return None;
    }
    if let Err(reason) = compiles(&pattern.regex) {
        notes.fault(node, format!("the regular expression cannot be used: {reason}"));
        return None;
    }
    Some(pattern)
}

/// The pattern of an `envoy.type.matcher.v3.StringMatcher` on a path.
pub(super) fn string_matcher(matcher: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    matcher.only(&["exact", "prefix", "suffix", "contains", "safe_regex", "ignore_case"], notes);
    let case = !matcher.flag("ignore_case", notes).unwrap_or(false);
    type Make = fn(&str, bool) -> PathPattern;
    let kinds: [(&str, Make); 4] = [
        ("exact", PathPattern::exact),
        ("prefix", PathPattern::prefix),
        ("suffix", PathPattern::suffix),
        ("contains", PathPattern::contains),
    ];
    for (field, make) in kinds {
        if let Some(text) = matcher.text(field, notes) {
            return checked(make(text, case), matcher, notes);
        }
    }
    match matcher.object("safe_regex", notes) {
        Some(regex) => regex_matcher(&regex, notes),
        None => {
            notes.fault(matcher, "the match of a text is not known to this release");
            None
        }
    }
}

/// The pattern of an `envoy.type.matcher.v3.PathMatcher`.
pub(super) fn path_matcher(matcher: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    string_matcher(&matcher.object("path", notes)?, notes)
}

/// What the path specifier of a `RouteMatch` matches; `None` where it is not understood.
pub(super) fn route_match(matching: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    let case = matching.flag("case_sensitive", notes).unwrap_or(true);
    type Make = fn(&str, bool) -> PathPattern;
    let kinds: [(&str, Make); 3] = [
        ("prefix", PathPattern::prefix),
        ("path", PathPattern::exact),
        ("path_separated_prefix", PathPattern::separated),
    ];
    for (field, make) in kinds {
        if let Some(text) = matching.text(field, notes) {
            return checked(make(text, case), matching, notes);
        }
    }
    if let Some(regex) = matching.object("safe_regex", notes) {
        return regex_matcher(&regex, notes);
    }
    if let Some(policy) = matching.object("path_match_policy", notes) {
        return template(&policy, notes);
    }
    let what = matching.each().next().map(|(name, _)| format!(" `{}`", short(name))).unwrap_or_default();
    notes.fault(matching, format!("the match{what} has no path that this release knows"));
    None
}

/// The pattern of an `UriTemplateMatchConfig`, in a `TypedExtensionConfig`.
pub(super) fn template(extension: &Node<'_>, notes: &Notes) -> Option<PathPattern> {
    let (kind, config) = extension.object("typed_config", notes)?.any(notes)?;
    if kind != "envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig" {
        notes.fault(extension, format!("the match of paths `{}` is not known to this release", short(kind)));
        return None;
    }
    let text = config.text("path_template", notes)?;
    let Some(regex) = template_regex(text) else {
        notes.fault(&config, "the template of paths cannot be read");
        return None;
    };
    let prefix = text.split(['{', '*']).next().unwrap_or_default().to_owned();
    checked(PathPattern { regex, prefix, whole: false }, &config, notes)
}

/// `*` is a segment, `**` the rest; a variable has a pattern of its own.
fn template_regex(text: &str) -> Option<String> {
    let mut regex = "^".to_owned();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('{') {
            let (variable, behind) = after.split_once('}')?;
            let pattern = variable.split_once('=').map_or("*", |(_, pattern)| pattern);
            regex.push_str(&wildcards(pattern)?);
            rest = behind;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            let (literal, behind) = rest.split_at_checked(end)?;
            regex.push_str(&wildcards(literal)?);
            rest = behind;
        }
    }
    regex.push('$');
    Some(regex)
}

fn wildcards(text: &str) -> Option<String> {
    if text.contains(['{', '}']) {
        return None;
    }
    let parts: Vec<String> =
        text.split("**").map(|part| part.split('*').map(escaped).collect::<Vec<_>>().join("[^/]+")).collect();
    Some(parts.join(".*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_envoy_matches() {
        assert_eq!(PathPattern::prefix("/a.b", true).regex, r"^/a\.b");
        assert_eq!(PathPattern::prefix("/a", false).regex, "(?i)^/a");
        assert_eq!(PathPattern::exact("/ü", true).regex, r"^/\xC3\xBC$");
        assert_eq!(PathPattern::separated("/a", true).regex, "^/a(?:/|$)");
        assert_eq!(PathPattern::regex("/a|/b").regex, "^(?:/a|/b)$");
        for pattern in [PathPattern::exact("/a-b&c~d#e", true), PathPattern::suffix(".x", true)] {
            compiles(&pattern.regex).unwrap();
        }
    }

    #[test]
    fn beginnings_decide_what_is_covered_and_what_apart() {
        let api = PathPattern::prefix("/api", true);
        let users = PathPattern::exact("/api/users", true);
        assert!(api.covers(&users) && !users.covers(&api) && users.covers(&users));
        assert!(PathPattern::prefix("/", true).is_everything() && !api.is_everything());
        assert!(users.is_apart_from(&PathPattern::prefix("/health", true)) && !users.is_apart_from(&api));
        assert!(!PathPattern::prefix("/API", false).is_apart_from(&users));
        assert!(!PathPattern::prefix("/api", false).covers(&users));
        assert_eq!(PathPattern::regex("/api/v[0-9]+").route_prefix(), "/api/v");
        assert_eq!(PathPattern::regex("/api?").route_prefix(), "/ap");
        assert_eq!(PathPattern::regex("/a|/b").route_prefix(), "/");
        assert_eq!(PathPattern::regex("(?i)/x").route_prefix(), "/");
    }

    #[test]
    fn templates_of_paths() {
        assert_eq!(template_regex("/a/{x}/*/b").unwrap(), "^/a/[^/]+/[^/]+/b$");
        assert_eq!(template_regex("/a/{rest=**}").unwrap(), "^/a/.*$");
        assert_eq!(template_regex("/{x=v1/*}/b").unwrap(), "^/v1/[^/]+/b$");
        assert_eq!(template_regex("/{x"), None);
        assert_eq!(template_regex("/x}"), None);
    }
}
