//! Rules of which the first that a request matches decides, as checks with include and exclude patterns.

use super::matching::Reach;
use super::paths::PathPattern;
use crate::facts::{CredentialCheck, CredentialKind, MAX_PATTERNS, METHODS};

/// What a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// One of these kinds of credentials.
    pub(super) kinds: Vec<CredentialKind>,
    /// Where the credential is found, if that is known.
    pub(super) carriers: Vec<String>,
}

/// A rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The requests that it is about.
    pub(super) reach: Reach,
    /// `None`: its requests pass without a credential.
    pub(super) demand: Option<Demand>,
}

/// The checks of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    demand: Demand,
    /// The paths that are checked; `None` for all.
    include: Option<Vec<String>>,
    exclude: Vec<String>,
}

/// The checks that rules make on a route. A rule with a demand that something else than path and method decides is none; one without
/// a demand frees all that it may match.
pub(super) fn checks(rules: &[Rule], route: &Reach, checked_by: &str) -> Vec<CredentialCheck> {
    let mut by_groups: Vec<(Vec<Group>, Vec<&'static str>)> = Vec::new();
    for method in METHODS.into_iter().filter(|method| route.has_method(method)) {
        let groups = of_method(rules, route, method);
        match by_groups.iter_mut().find(|(known, _)| *known == groups) {
            Some((_, methods)) => methods.push(method),
            None => by_groups.push((groups, vec![method])),
        }
    }
    let all = by_groups.len() == 1;
    let mut checks = Vec::new();
    for (groups, methods) in by_groups {
        for Group { demand, include, exclude } in groups {
            let include = include.unwrap_or_default();
            if include.len() > MAX_PATTERNS || exclude.len() > MAX_PATTERNS {
                continue;
            }
            let methods = if all { Vec::new() } else { methods.iter().map(|method| (*method).to_owned()).collect() };
            let Demand { kinds, carriers } = demand;
            checks.push(CredentialCheck {
                carriers,
                methods,
                include,
                exclude,
                ..CredentialCheck::new(kinds, checked_by)
            });
        }
    }
    checks
}

fn of_method(rules: &[Rule], route: &Reach, method: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut free: Vec<String> = Vec::new();
    let in_route = |path: &PathPattern| route.path.as_ref().is_none_or(|own| !own.is_apart_from(path));
    for Rule { reach, demand } in rules.iter().filter(|rule| rule.reach.has_method(method)) {
        let path = match &reach.path {
            Some(path) if !in_route(path) => continue,
            Some(path) if route.path.as_ref().is_some_and(|own| path.covers(own)) => None,
            path => path.as_ref(),
        };
        match (demand, path) {
            (None, None) => break,
            (None, Some(path)) => free.push(path.regex.clone()),
            (Some(_), _) if reach.conditional => {}
            (Some(demand), path) => {
                let last = groups.last_mut().filter(|last| last.demand == *demand && last.exclude == free);
                match (last, path) {
                    (Some(Group { include: None, .. }), _) => {}
                    (Some(Group { include: Some(include), .. }), Some(path)) => include.push(path.regex.clone()),
                    (Some(last), None) => last.include = None,
                    (None, path) => groups.push(Group {
                        demand: demand.clone(),
                        include: path.map(|path| vec![path.regex.clone()]),
                        exclude: free.clone(),
                    }),
                }
                if path.is_none() {
                    break;
                }
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefix: &str, kind: Option<CredentialKind>) -> Rule {
        let path = Some(PathPattern::prefix(prefix, true)).filter(|path| !path.is_everything());
        Rule {
            reach: Reach { path, ..Reach::everything() },
            demand: kind.map(|kind| Demand { kinds: vec![kind], carriers: Vec::new() }),
        }
    }

    fn shown(rules: &[Rule], route: &str) -> Vec<String> {
        let path = Some(PathPattern::prefix(route, true)).filter(|path| !path.is_everything());
        let route = Reach { path, ..Reach::everything() };
        let show = |check: &CredentialCheck| {
            format!(
                "{:?} {} +{} -{}",
                check.kinds,
                check.methods.join(","),
                check.include.join(","),
                check.exclude.join(",")
            )
        };
        checks(rules, &route, "x").iter().map(show).collect()
    }

    #[test]
    fn the_first_rule_decides() {
        use CredentialKind::{Basic, Jwt};
        let rules = [
            rule("/health", None),
            rule("/api", Some(Jwt)),
            rule("/adm", Some(Jwt)),
            rule("/", None),
            rule("/x", Some(Jwt)),
        ];
        assert_eq!(shown(&rules, "/"), ["[Jwt]  +^/api,^/adm -^/health"]);
        assert_eq!(shown(&rules, "/api/v1"), ["[Jwt]  + -"]);
        assert_eq!(shown(&rules, "/health/x"), [""; 0]);
        assert_eq!(shown(&rules, "/other"), [""; 0]);
        let rules = [rule("/a", Some(Jwt)), rule("/b", None), rule("/c", Some(Basic)), rule("/", Some(Jwt))];
        assert_eq!(shown(&rules, "/"), ["[Jwt]  +^/a -", "[Basic]  +^/c -^/b", "[Jwt]  + -^/b"]);
    }

    #[test]
    fn methods_and_conditions() {
        use CredentialKind::Jwt;
        let mut get = rule("/", None);
        get.reach.methods = Some(vec!["GET", "HEAD"]);
        assert_eq!(shown(&[get, rule("/", Some(Jwt))], "/"), ["[Jwt] PUT,POST,DELETE,OPTIONS,PATCH,TRACE + -"]);
        let mut demanded = rule("/", Some(Jwt));
        demanded.reach.conditional = true;
        assert_eq!(shown(&[demanded], "/"), [""; 0]);
        let mut freed = rule("/x", None);
        freed.reach.conditional = true;
        assert_eq!(shown(&[freed, rule("/", Some(Jwt))], "/"), ["[Jwt]  + -^/x"]);
    }

    #[test]
    fn too_many_patterns_are_no_check() {
        let mut rules: Vec<Rule> = (0..=MAX_PATTERNS).map(|number| rule(&format!("/{number}/"), None)).collect();
        rules.push(rule("/", Some(CredentialKind::Jwt)));
        assert_eq!(shown(&rules, "/"), [""; 0]);
        assert_eq!(shown(&rules, "/7/x"), [""; 0]);
        assert_eq!(shown(&rules, "/y/x"), ["[Jwt]  + -"]);
    }
}
