//! Which requests a match of Envoy has: by path and method, and whether anything else decides.

use super::node::{Node, Notes};
use super::paths::{self, PathPattern};
use crate::facts::METHODS;

/// Requests, as far as paths and methods say which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Their paths; `None` for all.
    pub(super) path: Option<PathPattern>,
    /// Their methods; `None` for all.
    pub(super) methods: Option<Vec<&'static str>>,
    /// Something else decides as well, so that a request of such a path and method may not be one of them.
    pub(super) conditional: bool,
}

/// What a `HeaderMatcher` is about.
pub(super) enum HeaderReach {
    /// These methods.
    Methods(Vec<&'static str>),
    /// These paths, with any query.
    Path(PathPattern),
    /// Requests of these paths, those with a certain query.
    PathWithQuery(PathPattern),
    /// Something that a caller chooses.
    Other,
}

// === impl Reach ===

impl Reach {
    /// Every request.
    pub(super) fn everything() -> Reach {
        Reach::default()
    }

    /// The requests of a `RouteMatch`.
    pub(super) fn of_route_match(matching: &Node<'_>, notes: &Notes) -> Reach {
        let before = notes.faults();
        let path = paths::route_match(matching, notes).filter(|path| !path.is_everything());
        let mut reach = Reach { path, methods: None, conditional: false };
        for header in matching.list("headers", notes) {
            reach.add(HeaderReach::of(&header, notes));
        }
        let others = [
            "runtime_fraction",
            "query_parameters",
            "cookies",
            "grpc",
            "tls_context",
            "dynamic_metadata",
            "filter_state",
        ];
        reach.conditional |= others.iter().any(|field| matching.get(field).is_some_and(|node| !node.is_empty()));
        matching.only(
            &[
                &[
                    "prefix",
                    "path",
                    "safe_regex",
                    "path_separated_prefix",
                    "path_match_policy",
                    "case_sensitive",
                    "headers",
                ],
                others.as_slice(),
            ]
            .concat(),
            notes,
        );
        if notes.faults() != before {
            // Anything may be one of them, and nothing surely is.
            return Reach { path: None, methods: None, conditional: true };
        }
        reach
    }

    /// Narrows it by a header.
    pub(super) fn add(&mut self, header: HeaderReach) {
        match header {
            HeaderReach::Methods(methods) if self.methods.is_none() => self.methods = Some(methods),
            HeaderReach::Path(path) if self.path.is_none() => self.path = Some(path),
            HeaderReach::PathWithQuery(path) if self.path.is_none() => {
                self.path = Some(path);
                self.conditional = true;
            }
            _ => self.conditional = true,
        }
    }

    /// The requests that both have; more where that cannot be said.
    pub(super) fn and(self, other: Reach) -> Reach {
        let mut both = self;
        both.conditional |= other.conditional;
        match (&both.path, other.path) {
            (None, path) => both.path = path,
            (Some(own), Some(others)) if *own != others => both.conditional = true,
            _ => {}
        }
        both.methods = match (both.methods, other.methods) {
            (Some(own), Some(others)) => Some(own.into_iter().filter(|method| others.contains(method)).collect()),
            (own, others) => own.or(others),
        };
        both
    }

    pub(super) fn has_method(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }
}

// === impl HeaderReach ===

impl HeaderReach {
    /// What an `envoy.config.route.v3.HeaderMatcher` is about.
    pub(super) fn of(header: &Node<'_>, notes: &Notes) -> HeaderReach {
        let name = header.text("name", notes).unwrap_or_default();
        if header.flag("invert_match", notes).unwrap_or(false) {
            return HeaderReach::Other;
        }
        let matcher = header.object("string_match", notes);
        let own = |field: &str, of_matcher: &str| {
            header.get(field).or_else(|| matcher.as_ref()?.get(of_matcher)).and_then(|node| node.own_text(notes))
        };
        match name {
            ":method" => {
                if let Some(method) = own("exact_match", "exact") {
                    // A method that no contract has is none of those that are compared.
                    return HeaderReach::Methods(METHODS.into_iter().filter(|known| *known == method).collect());
                }
                let regex = header
                    .object("safe_regex_match", notes)
                    .or_else(|| matcher.as_ref()?.object("safe_regex", notes))
                    .and_then(|regex| regex.text("regex", notes));
                regex.and_then(alternatives).map_or(HeaderReach::Other, HeaderReach::Methods)
            }
            ":path" => {
                // The header has the query as well.
                let case = !ignores_case(matcher.as_ref(), notes);
                match (own("prefix_match", "prefix"), own("exact_match", "exact")) {
                    (Some(prefix), _) if !prefix.contains('?') => HeaderReach::Path(PathPattern::prefix(prefix, case)),
                    (None, Some(exact)) => {
                        let path = exact.split('?').next().unwrap_or_default();
                        HeaderReach::PathWithQuery(PathPattern::exact(path, case))
                    }
                    _ => HeaderReach::Other,
                }
            }
            _ => HeaderReach::Other,
        }
    }
}

fn ignores_case(matcher: Option<&Node<'_>>, notes: &Notes) -> bool {
    matcher.and_then(|matcher| matcher.flag("ignore_case", notes)).unwrap_or(false)
}

/// The methods of a regular expression that is nothing but a choice of them.
fn alternatives(regex: &str) -> Option<Vec<&'static str>> {
    let inner = regex.trim_start_matches('^').trim_end_matches('$');
    let inner = inner
        .strip_prefix("(?:")
        .or_else(|| inner.strip_prefix('('))
        .map_or(inner, |inner| inner.trim_end_matches(')'));
    let words: Vec<&str> = inner.split('|').collect();
    let plain = words.iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()));
    plain.then(|| METHODS.into_iter().filter(|method| words.contains(method)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reach(value: &Value) -> (Reach, usize) {
        let notes = Notes::default();
        let reach = Reach::of_route_match(&Node::root(value), &notes);
        (reach, notes.faults())
    }

    #[test]
    fn matches_are_read() {
        let shown = |value: Value| {
            let (reach, faults) = reach(&value);
            assert_eq!(faults, 0, "{value}");
            (reach.path.map(|path| path.regex).unwrap_or_default(), reach.methods, reach.conditional)
        };
        let all = (String::new(), None, false);
        assert_eq!(shown(json!({"prefix": "/"})), all);
        assert_eq!(shown(json!({"prefix": "/a"})), ("^/a".to_owned(), None, false));
        assert_eq!(shown(json!({"path": "/a", "caseSensitive": false})), ("(?i)^/a$".to_owned(), None, false));
        assert_eq!(shown(json!({"safeRegex": {"regex": "/a/[0-9]+"}})), ("^(?:/a/[0-9]+)$".to_owned(), None, false));
        assert_eq!(shown(json!({"pathSeparatedPrefix": "/a"})), ("^/a(?:/|$)".to_owned(), None, false));
        let template = json!({"path_match_policy": {"name": "t", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig", "path_template": "/a/{x}"}}});
        assert_eq!(shown(template), ("^/a/[^/]+$".to_owned(), None, false));
        let with = |header: Value| shown(json!({"prefix": "/", "headers": [header]}));
        let get = (String::new(), Some(vec!["GET"]), false);
        assert_eq!(with(json!({"name": ":method", "exact_match": "GET"})), get);
        assert_eq!(with(json!({"name": ":method", "stringMatch": {"exact": "GET"}})), get);
        let two = Some(vec!["GET", "POST"]);
        let regex = json!({"name": ":method", "string_match": {"safe_regex": {"regex": "^(GET|POST)$"}}});
        assert_eq!(with(regex), (String::new(), two, false));
        assert_eq!(with(json!({"name": ":path", "prefix_match": "/a"})), ("^/a".to_owned(), None, false));
        assert_eq!(with(json!({"name": ":path", "exact_match": "/a?b"})), ("^/a$".to_owned(), None, true));
        for conditional in [
            json!({"name": ":path", "suffix_match": "/a"}),
            json!({"name": ":path", "prefix_match": "/a?b"}),
            json!({"name": ":method", "exact_match": "GET", "invert_match": true}),
            json!({"name": "x-internal", "present_match": true}),
            json!({"name": ":method", "safe_regex_match": {"regex": "G.*"}}),
        ] {
            assert!(with(conditional).2);
        }
        assert!(shown(json!({"prefix": "/", "query_parameters": [{"name": "a"}]})).2);
        assert!(shown(json!({"prefix": "/", "grpc": {}})) == all, "an empty object would match all");
    }

    #[test]
    fn what_is_not_understood_is_conditional() {
        for value in [
            json!({"prefix": 1}),
            json!({}),
            json!({"connect_matcher": {}}),
            json!({"prefix": "/", "later": 1}),
            json!({"safe_regex": {"regex": "("}}),
            json!({"prefix": "/", "headers": {}}),
            json!([]),
        ] {
            let (reach, faults) = reach(&value);
            assert!(faults > 0 && reach.conditional && reach.path.is_none(), "{value}");
        }
    }
}
